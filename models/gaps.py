"""What agents asked for and were served, counted: by day and tags, and by unit. No question and no
person is in it. It stands apart from units: no count changes a confidence or an order.
"""

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy import ForeignKey, Index, delete, func, select, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Json, db
from models.marks import Vote
from models.unit import Unit

DAYS = 90
# So many sets of tags are told apart in a day: whoever asks for ever new ones fills no disk.
SETS = 5000


def today(ago=0):
    """The day, or that of `ago` days past, in UTC."""
    return (datetime.now(UTC) - timedelta(days=ago)).strftime("%Y-%m-%d")


class Query(db.Model):
    """How often a set of tags was asked for on a day, and how often nothing was found.

    `tags` are in order; [] stands for questions without tags.
    """

    __tablename__ = "queries"

    day: Mapped[str] = mapped_column(primary_key=True)
    tags: Mapped[list] = mapped_column(Json, primary_key=True)
    asked: Mapped[int]
    missed: Mapped[int]

    @classmethod
    def add(cls, counts):
        """Add {(day, tags): (asked, missed)}; what other processes counted stays.

        What is too much for a day is left out.
        """
        room = {day: SETS - cls._sets(day) for day in {day for day, _ in counts}}
        for (day, tags), (asked, missed) in counts.items():
            values = {"day": day, "tags": _text(tags), "asked": asked, "missed": missed}
            known = db.session.execute(_MORE, values).rowcount
            if not known and room[day] > 0:
                db.session.execute(_FIRST, values)
                room[day] -= 1

    @classmethod
    def _sets(cls, day):
        return db.session.scalar(select(func.count()).select_from(cls).where(cls.day == day))

    @classmethod
    def sweep(cls):
        """Delete what is older than DAYS."""
        db.session.execute(delete(cls).where(cls.day <= today(DAYS)))

    @classmethod
    def gaps(cls, limit, offset):
        """([{"tags", "missed", "asked", "last"}], how many there are): sets of tags for which
        nothing was found in DAYS, most often first; `last` is the last day of it.
        """
        missed = func.sum(cls.missed)
        last = func.max(cls.day).filter(cls.missed > 0)
        grouped = (
            select(
                cls.tags,
                missed.label("missed"),
                func.sum(cls.asked).label("asked"),
                last.label("last"),
            )
            .where(cls.day > today(DAYS))
            .group_by(cls.tags)
            .having(missed > 0)
        )
        total = db.session.scalar(select(func.count()).select_from(grouped.subquery()))
        rows = db.session.execute(
            grouped.order_by(missed.desc(), last.desc(), cls.tags).limit(limit).offset(offset)
        )
        return [row._asdict() for row in rows], total


# The same in SQLite and PostgreSQL.
_MORE = text(
    "UPDATE queries SET asked = asked + :asked, missed = missed + :missed"
    " WHERE day = :day AND tags = :tags"
)
_FIRST = text(
    "INSERT INTO queries (day, tags, asked, missed) VALUES (:day, :tags, :asked, :missed)"
    " ON CONFLICT (day, tags) DO UPDATE"
    " SET asked = queries.asked + excluded.asked, missed = queries.missed + excluded.missed"
)


def _text(tags):
    return json.dumps(tags, ensure_ascii=False, separators=(",", ":"))


class Use(db.Model):
    """How often a unit was among what a query found, and the last day of it."""

    __tablename__ = "uses"
    __table_args__ = (Index("ix_uses_served", "served", "unit_pk"),)

    unit_pk: Mapped[int] = mapped_column(
        ForeignKey("units.pk", ondelete="CASCADE"), primary_key=True
    )
    served: Mapped[int]
    last: Mapped[str]

    @classmethod
    def add(cls, day, counts):
        """Add {row number of a unit: how often it was served} to what others counted."""
        rows = [{"pk": pk, "served": served, "day": day} for pk, served in counts.items()]
        if rows:
            db.session.execute(_SERVED, rows)

    @classmethod
    def page(cls, limit, offset):
        """([unit's use], how many there are in all) of the units that were served, most first."""
        order = (cls.served.desc(), cls.unit_pk.desc())
        rows = db.session.execute(
            _told(cls.served, cls.last)
            .join(cls, cls.unit_pk == Unit.pk)
            .order_by(*order)
            .limit(limit)
            .offset(offset)
        ).all()
        return _voted(rows), db.session.scalar(select(func.count()).select_from(cls))

    @classmethod
    def never(cls, limit, offset):
        """The same of approved units that no query found yet, the oldest first."""
        unserved = (Unit.status == "approved", ~select(cls).where(cls.unit_pk == Unit.pk).exists())
        rows = db.session.execute(
            _told(db.literal(0), db.null())
            .where(*unserved)
            .order_by(Unit.created_at, Unit.id)
            .limit(limit)
            .offset(offset)
        ).all()
        return _voted(rows), Unit.count(*unserved)

    @classmethod
    def of(cls, unit):
        """How often a unit was served, and the last day."""
        use = db.session.get(cls, unit.pk)
        return {"served": use.served if use else 0, "last": use and use.last}


# A unit may be gone since it was served: then there is nothing to count.
_SERVED = text(
    "INSERT INTO uses (unit_pk, served, last) SELECT pk, CAST(:served AS INTEGER),"
    " CAST(:day AS VARCHAR) FROM units WHERE pk = :pk"
    " ON CONFLICT (unit_pk) DO UPDATE"
    " SET served = uses.served + excluded.served, last = excluded.last"
)


def _told(served, last):
    return select(
        Unit.pk, Unit.id, Unit.summary, Unit.status, served.label("served"), last.label("last")
    )


def _voted(rows):
    """The rows with how often each unit was confirmed and flagged."""
    votes = db.session.execute(
        select(Vote.unit_pk, Vote.kind, func.count())
        .where(Vote.unit_pk.in_([row.pk for row in rows]))
        .group_by(Vote.unit_pk, Vote.kind)
    )
    confirmed, flagged = {}, {}
    for pk, kind, count in votes:
        counted = confirmed if kind == "confirm" else flagged
        counted[pk] = counted.get(pk, 0) + count
    return [
        {
            "unit_id": row.id,
            "summary": row.summary,
            "status": row.status,
            "served": row.served,
            "confirmed": confirmed.get(row.pk, 0),
            "flagged": flagged.get(row.pk, 0),
            "last": row.last,
        }
        for row in rows
    ]
