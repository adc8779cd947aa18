"""The vectors of units, made by whoever holds the model; here they are only kept and read."""

from sqlalchemy import ForeignKey, Index, LargeBinary, and_, delete, insert, select
from sqlalchemy.orm import Mapped, mapped_column

from models import near
from models.base import VECTORS, db, write
from models.unit import LIVE, Unit


class Vector(db.Model):
    """One row of a unit's vectors by one model: little-endian float32 of length 1.

    `content_hash` tells of which words it was made. A unit's rows are written together.
    """

    __tablename__ = "vectors"
    __table_args__ = (Index("ix_vectors_changed", "model", "changed"),)

    unit_pk: Mapped[int] = mapped_column(
        ForeignKey("units.pk", ondelete="CASCADE"), primary_key=True
    )
    model: Mapped[str] = mapped_column(primary_key=True)
    part: Mapped[int] = mapped_column(primary_key=True)
    dimension: Mapped[int]
    content_hash: Mapped[str]
    changed: Mapped[int]
    vector: Mapped[bytes] = mapped_column(LargeBinary)

    @classmethod
    def put(cls, model, dimension, made):
        """Write the rows of some units instead of earlier ones by the same model.

        `made` is {row number of the unit: (content hash, [the bytes of each row])}.
        """
        change = write(VECTORS)
        # A unit may be gone by now.
        there = set(db.session.scalars(select(Unit.pk).where(Unit.pk.in_(made))))
        db.session.execute(delete(cls).where(cls.model == model, cls.unit_pk.in_(there)))
        rows = [
            {
                "unit_pk": pk,
                "model": model,
                "part": part,
                "dimension": dimension,
                "content_hash": content_hash,
                "changed": change,
                "vector": vector,
            }
            for pk, (content_hash, vectors) in made.items()
            if pk in there
            for part, vector in enumerate(vectors)
        ]
        if rows and near.serves(db.engine):
            near.put(rows)
        elif rows:
            db.session.execute(insert(cls), rows)

    @classmethod
    def drop_others(cls, model):
        """Delete what every other model made; how many rows that were."""
        write(VECTORS)
        if near.serves(db.engine):
            near.drop_other_indexes(model)
        return db.session.execute(delete(cls).where(cls.model != model)).rowcount

    @classmethod
    def read(cls, connection, model, dimension, *where, blobs=True):
        """(unit_pk, vector, status, tier) of the model's rows of live units, a unit's together.

        Without `blobs`, whether pgvector has the vector stands instead of it.
        """
        vector = cls.vector if blobs else near.HAS.label("vector")
        statement = (
            select(cls.unit_pk, vector, Unit.status, Unit.tier)
            .join(Unit, Unit.pk == cls.unit_pk)
            .where(cls.model == model, cls.dimension == dimension, Unit.status.in_(LIVE), *where)
            .order_by(cls.unit_pk, cls.part)
        )
        return connection.execution_options(yield_per=2000).execute(statement)

    @classmethod
    def first(cls, pk, model):
        """The bytes of the row that stands for a unit, or None."""
        return db.session.scalar(
            select(cls.vector).where(cls.unit_pk == pk, cls.model == model, cls.part == 0)
        )

    @classmethod
    def texts(cls, model, dimension, where, order, limit):
        """(pk, changed, summary, detail, content_hash) of live units; the hash is that of the
        model's rows, None if there are none.
        """
        # The status is asked for so that no index serves it: the order shall be an index's.
        live = (Unit.status + "").in_(LIVE)
        joined = and_(
            cls.unit_pk == Unit.pk, cls.model == model, cls.dimension == dimension, cls.part == 0
        )
        return db.session.execute(
            select(Unit.pk, Unit.changed, Unit.summary, Unit.detail, cls.content_hash)
            .outerjoin(cls, joined)
            .where(live, where)
            .order_by(*order)
            .limit(limit)
        ).all()
