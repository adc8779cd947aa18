"""The nearest vectors by pgvector, where PostgreSQL has it: a column beside the blobs, and HNSW.

Whether it serves is settled once, when a server starts. Knows no text of units.
"""

import hashlib
import logging
import struct
from weakref import WeakKeyDictionary

from sqlalchemy import (
    Boolean,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    cast,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import UserDefinedType

from models.base import VECTORS, db, write
from models.connection import BUILDING
from models.unit import Unit

# Older ones do not look further where rows that may not be shown are nearest.
LEAST = (0, 8)
# Rows that are filled in at once.
BATCH = 500
log = logging.getLogger("cq.vectors")


class Numbers(UserDefinedType):
    """pgvector's type, written as text; bytes are little-endian float32."""

    cache_ok = True

    def __init__(self, dimension=None):
        self.dimension = dimension

    def get_col_spec(self, **_):
        return "vector" if self.dimension is None else f"vector({self.dimension})"

    def bind_processor(self, dialect):
        return lambda blob: blob if blob is None else written(blob)

    def bind_expression(self, bindvalue):
        return cast(bindvalue, self)


# Else Alembic warns of a column that it does not know.
ischema_names["vector"] = Numbers


def written(blob):
    """The bytes of a vector as pgvector reads it, to the last bit."""
    return f"[{','.join(map(repr, struct.unpack(f'<{len(blob) // 4}f', blob)))}]"


# The columns of `Vector`, and the one that only PostgreSQL may have.
TABLE = Table(
    "vectors",
    MetaData(),
    Column("unit_pk", Integer, primary_key=True),
    Column("model", String, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("dimension", Integer),
    Column("content_hash", String),
    Column("changed", Integer),
    Column("vector", LargeBinary),
    Column("near", Numbers()),
)
HAS = literal_column("vectors.near IS NOT NULL", Boolean)
_there = WeakKeyDictionary()


def serves(engine):
    """Whether pgvector answers for this engine's database, as `prepare` found it."""
    return _there.get(engine, False)


def prepare(engine):
    """Have the column where the database has pgvector, or may be given it."""
    _there[engine] = engine.dialect.name == "postgresql" and _prepared(engine)


def _prepared(engine):
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        run = connection.exec_driver_sql
        offered = run("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").first()
        if not offered:
            return False
        version = run("SELECT extversion FROM pg_extension WHERE extname = 'vector'").scalar()
        if version is None:
            try:
                run("CREATE EXTENSION IF NOT EXISTS vector")
            except DBAPIError as fault:
                why = " ".join(str(fault.orig).split())
                log.info("pgvector may not be added (%s): numpy serves", why)
                return False
            version = run("SELECT extversion FROM pg_extension WHERE extname = 'vector'").scalar()
        if tuple(map(int, version.split(".")[:2])) < LEAST:
            log.warning("pgvector %s is too old, 0.8 is the least: numpy serves", version)
            return False
        column = (
            "SELECT 1 FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'near'"
        )
        # Even where there is nothing to add, an ALTER would wait for whoever reads the table.
        if not run(column).first():
            run("ALTER TABLE vectors ADD COLUMN near vector")
        return True


def put(rows):
    """Write rows of `Vector` and what pgvector reads of them."""
    db.session.execute(insert(TABLE), [{**row, "near": row["vector"]} for row in rows])


def fill(model, dimension, whole):
    """Give pgvector the vectors of a model that were written without it. `whole(blob)` tells
    whether a vector is one; others are left for whoever makes them anew.
    """
    own = (TABLE.c.model == model, TABLE.c.dimension == dimension, TABLE.c.near.is_(None))
    place = (TABLE.c.unit_pk, TABLE.c.part)
    last = (-1, -1)
    while True:
        waiting = (
            select(*place, TABLE.c.vector)
            .where(*own, tuple_(*place) > tuple_(*last))
            .order_by(*place)
            .limit(BATCH)
        )
        if not db.session.execute(waiting).first():
            db.session.rollback()
            return
        change = write(VECTORS)
        rows = db.session.execute(waiting).all()
        good = [
            {"pk": row.unit_pk, "place": row.part, "blob": row.vector}
            for row in rows
            if whole(row.vector)
        ]
        if good:
            here = (place[0] == bindparam("pk"), place[1] == bindparam("place"))
            values = {"near": bindparam("blob", type_=Numbers()), "changed": change}
            db.session.execute(
                update(TABLE).where(TABLE.c.model == model, *here).values(values), good
            )
            db.session.commit()
        last = (rows[-1].unit_pk, rows[-1].part) if rows else last


def index(model, dimension):
    """Have the HNSW index of a model's rows, and none of other models. Minutes, for many rows.

    Who comes while another process builds it goes on without: slower, and as right.
    """
    name = _name(model, dimension)
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        run = connection.exec_driver_sql
        run("SET statement_timeout = 0")
        # Building waits until the last transaction that was there before it has ended.
        run("SET lock_timeout = 0")
        try:
            if not run(f"SELECT pg_try_advisory_lock({BUILDING})").scalar():
                return
            indexes = dict(
                map(
                    tuple,
                    run(
                        "SELECT relname, indisvalid FROM pg_index JOIN pg_class"
                        " ON pg_class.oid = indexrelid WHERE indrelid = 'vectors'::regclass"
                        " AND starts_with(relname, 'ix_vectors_near')"
                    ).all(),
                )
            )
            # One that was not built to its end is no good.
            if not indexes.get(name):
                run(f"DROP INDEX IF EXISTS {name}")
                run(
                    f"CREATE INDEX CONCURRENTLY {name} ON vectors USING hnsw"
                    f" ((near::vector({dimension})) vector_ip_ops)"
                    f" WHERE model = {_quoted(model).replace('%', '%%')}"
                    f" AND dimension = {dimension}"
                )
        finally:
            # Its settings and its lock end with it.
            connection.invalidate()


def drop_other_indexes(model):
    """The index of no other model is kept up."""
    rows = db.session.execute(
        db.text(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'vectors'"
            " AND schemaname = current_schema() AND starts_with(indexname, 'ix_vectors_near')"
        )
    )
    for name, _ in rows.all():
        if not name.startswith(_name(model, "")):
            db.session.execute(db.text(f"DROP INDEX {name}"))


def _name(model, dimension):
    digest = hashlib.sha256(model.encode()).hexdigest()[:12]
    return f"ix_vectors_near_{digest}_{dimension}"


def _quoted(words):
    return "'" + words.replace("'", "''") + "'"


def _apart(blob, model, dimension):
    """(minus the similarity, what holds for the rows of a model): in the words of its index."""
    kind = Numbers(dimension)
    apart = cast(TABLE.c.near, kind).op("<#>", return_type=db.Double())(
        bindparam("asked", blob, type_=kind)
    )
    own = (
        TABLE.c.model == literal_column(_quoted(model)),
        TABLE.c.dimension == literal_column(str(dimension)),
        TABLE.c.near.is_not(None),
    )
    return apart, own


def nearest(connection, blob, model, dimension, limit, *shown):
    """[(row number of a unit, similarity)] of a model's rows, nearest first, a unit as often as it
    has rows; `shown` is asked of units.
    """
    apart, own = _apart(blob, model, dimension)
    rows = connection.execute(
        select(TABLE.c.unit_pk, apart.label("apart"))
        .join(Unit, Unit.pk == TABLE.c.unit_pk)
        .where(*own, *shown)
        .order_by(apart)
        .limit(limit)
    )
    return [(pk, -apart) for pk, apart in rows]


def similarities(connection, blob, model, dimension, pks):
    """{row number: similarity of its nearest row} of those of these units that have rows."""
    apart, own = _apart(blob, model, dimension)
    rows = connection.execute(
        select(TABLE.c.unit_pk, -func.min(apart))
        .where(*own, TABLE.c.unit_pk.in_(pks))
        .group_by(TABLE.c.unit_pk)
    )
    return dict(map(tuple, rows))
