"""Which units have vectors, in memory, while pgvector holds the vectors and finds the nearest."""

from embeddings import PENDING, PRIVATE, PUBLIC, pack, unpack
from index.vectors import Vectors
from models import LIVE, Unit, Vector, db, near

SHOWN = {
    PENDING: (Unit.status.in_(LIVE),),
    PRIVATE: (Unit.status == "approved",),
    PUBLIC: (Unit.status == "approved", Unit.tier == "public"),
}


class Kinds:
    """What each unit is that has vectors: the part of a `Matrix` that stays in memory."""

    def __init__(self, dimension):
        self.dimension = dimension
        self.places = {}
        self.units = [0, 0, 0, 0]

    def put(self, pk, kind, vectors):
        self.drop(pk)
        self.places[pk] = kind
        self.units[kind] += 1

    def drop(self, pk):
        if pk in self.places:
            self.units[self.places.pop(pk)] -= 1

    def mark(self, pk, kind):
        """What the unit is now. False if it has no vectors."""
        if pk not in self.places:
            return False
        self.put(pk, kind, ())
        return True

    def count(self, least):
        return sum(self.units[least:])


class Near(Vectors):
    """As `Vectors` is, but what is nearest is asked of the database as it stands."""

    store = "pgvector"

    def load(self, model, dimension):
        """Read which units have vectors, once pgvector has them all and their index."""
        near.fill(model, dimension, lambda blob: unpack(blob, dimension) is not None)
        near.index(model, dimension)
        super().load(model, dimension)

    def _empty(self, connection, model, dimension):
        return Kinds(dimension)

    def _rows(self, connection, model, dimension, *where):
        for row in Vector.read(connection, model, dimension, *where, blobs=False):
            yield row, row.vector or None

    def nearest(self, vector, limit, private=True):
        return self._nearest(vector, limit, PRIVATE if private else PUBLIC)

    def _nearest(self, vector, limit, least):
        if not self.loaded:
            return []
        best, wanted = {}, 2 * limit
        while True:
            found = near.nearest(
                db.session, pack(vector), self._model, self._matrix.dimension, wanted, *SHOWN[least]
            )
            for pk, similarity in found:
                best.setdefault(pk, similarity)
            if len(best) >= limit or len(found) < wanted:
                return list(best.items())[:limit]
            # Units with many rows filled the list.
            wanted *= 4

    def similarities(self, pks, vector):
        if not pks:
            return {}
        dimension = self._matrix.dimension
        return near.similarities(db.session, pack(vector), self._model, dimension, pks)

    def alike(self, pk, limit):
        blob = Vector.first(pk, self._model) if self.loaded else None
        vector = None if blob is None else unpack(blob, self._matrix.dimension)
        if vector is None:
            return None
        found = self._nearest(vector, limit + 1, PENDING)
        return [(other, similarity) for other, similarity in found if other != pk][:limit]
