"""What happened to a unit: the append-only events of its review, and the texts it had."""

from sqlalchemy import ForeignKey, Index, select
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Json, db, now, offset


class Event(db.Model):
    """One step of a review. Rows are only ever added; `by` is a name, for people may go."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_unit", "unit_pk", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    unit_pk: Mapped[int] = mapped_column(ForeignKey("units.pk", ondelete="CASCADE"))
    type: Mapped[str]
    by: Mapped[str]
    channel: Mapped[str]
    at: Mapped[str]
    reason: Mapped[str | None]
    self_reviewed: Mapped[bool] = mapped_column(default=False)
    details: Mapped[dict | None] = mapped_column(Json)

    @classmethod
    def add(cls, unit, type, by, reason=None, at=None, **details):
        event = cls(
            unit_pk=unit.pk,
            type=type,
            by=by.name,
            channel=by.channel,
            at=at or now(),
            reason=reason,
            self_reviewed=type != "proposed" and unit.author_id == by.id,
            details=details or None,
        )
        db.session.add(event)
        return event

    @classmethod
    def of(cls, unit, limit=500):
        rows = db.session.scalars(
            select(cls).where(cls.unit_pk == unit.pk).order_by(cls.id.desc()).limit(limit)
        )
        return rows.all()[::-1]

    def wire(self):
        return {
            "type": self.type,
            "by": self.by,
            "channel": self.channel,
            "at": offset(self.at),
            "reason": self.reason,
            "self_reviewed": self.self_reviewed,
            **(self.details or {}),
        }


class Revision(db.Model):
    """A text that a unit had: number 1 is what was proposed, kept once somebody edits it."""

    __tablename__ = "revisions"

    unit_pk: Mapped[int] = mapped_column(
        ForeignKey("units.pk", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[dict] = mapped_column(Json)
    by: Mapped[str]
    at: Mapped[str]

    @classmethod
    def of(cls, unit, limit=100):
        """The original and the newest ones after it, in order."""
        rows = db.session.scalars(
            select(cls).where(cls.unit_pk == unit.pk).order_by(cls.number.desc()).limit(limit)
        ).all()[::-1]
        if rows and rows[0].number > 1:
            rows[0] = db.session.get(cls, (unit.pk, 1))
        return rows

    def wire(self):
        return {"revision": self.number, "by": self.by, "at": offset(self.at), **self.content}
