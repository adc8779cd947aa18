"""The vectors of live units as one matrix that follows the database's change counters."""

import logging
import threading

from sqlalchemy import func, select

from embeddings import GONE, PENDING, PRIVATE, PUBLIC, Matrix, unpack
from models import UNITS, VECTORS, Change, Unit, Vector, db

_TIERS = {"private": PRIVATE, "public": PUBLIC}
# Above this, units are asked for by rows of numbers in several statements.
AT_ONCE = 500
log = logging.getLogger("cq.index")


class Vectors:
    """The rows of one model. Until `load` has run there is nothing in it. Safe across threads."""

    # What finds the nearest.
    store = "numpy"

    def __init__(self):
        self._lock = threading.Lock()
        self._matrix = None
        self._model = None
        self._seen = {}

    @property
    def seen(self):
        """The numbers of the last changes that were taken in."""
        return tuple(self._seen.values())

    @property
    def loaded(self):
        return self._matrix is not None

    def load(self, model, dimension):
        """Read all rows that this model made. Seconds, for many."""
        seen = {kind: Change.last(kind) for kind in (UNITS, VECTORS)}
        with db.engine.connect() as connection:
            matrix = self._empty(connection, model, dimension)
            self._take(matrix, self._rows(connection, model, dimension))
        with self._lock:
            self._matrix, self._model, self._seen = matrix, model, seen

    def _empty(self, connection, model, dimension):
        """Where rows are put, with room for those that there are."""
        rows = select(func.count()).where(Vector.model == model, Vector.dimension == dimension)
        matrix = Matrix(dimension)
        matrix.reserve(connection.scalar(rows))
        return matrix

    def _rows(self, connection, model, dimension, *where):
        """(row, its vector), None for one that is damaged."""
        for row in Vector.read(connection, model, dimension, *where):
            yield row, unpack(row.vector, dimension)

    def _take(self, matrix, rows):
        """Put in the rows of units, which stand together; a bad one leaves its unit without any."""
        pk, kind, vectors = None, GONE, []

        def put():
            if vectors and all(vector is not None for vector in vectors):
                matrix.put(pk, kind, vectors)
            elif vectors:
                matrix.drop(pk)
                log.error("a vector of unit %s is damaged; `flask reindex` makes it anew", pk)

        for row, vector in rows:
            if row.unit_pk != pk:
                put()
                pk, vectors = row.unit_pk, []
            kind = _kind(row.status, row.tier)
            vectors.append(vector)
        put()

    def follow(self):
        """Take in what was committed since: what units are now, and vectors that were made."""
        numbers = {kind: Change.last(kind) for kind in (UNITS, VECTORS)}
        if numbers == self._seen or not self.loaded:
            return
        with self._lock, db.engine.connect() as connection:
            if numbers[UNITS] > self._seen[UNITS]:
                self._follow_units(connection)
            if numbers[VECTORS] > self._seen[VECTORS]:
                fresh = Vector.changed > self._seen[VECTORS]
                self._read(connection, fresh)
            self._seen = {kind: max(numbers[kind], self._seen[kind]) for kind in numbers}

    def _follow_units(self, connection):
        changed = select(Unit.pk, Unit.status, Unit.tier).where(Unit.changed > self._seen[UNITS])
        missing = []
        for pk, status, tier in connection.execute(changed).all():
            kind = _kind(status, tier)
            if kind == GONE:
                self._matrix.drop(pk)
            elif not self._matrix.mark(pk, kind):
                missing.append(pk)
        # A unit that came back brings the vectors it had.
        for start in range(0, len(missing), AT_ONCE):
            self._read(connection, Vector.unit_pk.in_(missing[start : start + AT_ONCE]))

    def _read(self, connection, where):
        matrix = self._matrix
        self._take(matrix, self._rows(connection, self._model, matrix.dimension, where))

    def count(self):
        """How many approved units have vectors."""
        return self._matrix.count(PRIVATE) if self.loaded else 0

    def has(self, pk):
        """Whether the unit has vectors."""
        with self._lock:
            return pk in self._matrix.places

    def nearest(self, vector, limit, private=True):
        """[(pk, similarity)] of the approved units nearest to a vector, nearest first."""
        with self._lock:
            return self._matrix.nearest(vector, limit, PRIVATE if private else PUBLIC)

    def similarities(self, pks, vector):
        """{pk: similarity} of those of these units that have vectors."""
        with self._lock:
            return self._matrix.similarities(pks, vector)

    def alike(self, pk, limit):
        """[(pk, similarity)] of the pending and approved units nearest to a unit, without itself.

        None if it has no vector.
        """
        with self._lock:
            vector = self._matrix.of(pk) if self.loaded else None
            if vector is None:
                return None
            near = self._matrix.nearest(vector, limit + 1, PENDING)
        return [(other, similarity) for other, similarity in near if other != pk][:limit]


def _kind(status, tier):
    if status == "pending":
        return PENDING
    return _TIERS[tier] if status == "approved" else GONE
