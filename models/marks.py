"""What stands beside a unit: its tags, the votes it got, and the flags."""

from sqlalchemy import ForeignKey, Index, func, select
from sqlalchemy.orm import Mapped, mapped_column

from models.base import db, offset


class UnitDomain(db.Model):
    """The tags of units, to look units up by; their order stands in `Unit.domains`."""

    __tablename__ = "unit_domains"
    __table_args__ = (Index("ix_unit_domains_domain", "domain", "unit_pk"),)

    unit_pk: Mapped[int] = mapped_column(
        ForeignKey("units.pk", ondelete="CASCADE"), primary_key=True
    )
    domain: Mapped[str] = mapped_column(primary_key=True)


class Vote(db.Model):
    """One confirmation, or one flag by its reason."""

    __tablename__ = "votes"
    __table_args__ = (
        Index("ix_votes_unit", "unit_pk", "user_id", "kind", "at"),
        Index("ix_votes_user", "user_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    unit_pk: Mapped[int] = mapped_column(ForeignKey("units.pk", ondelete="CASCADE"))
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    kind: Mapped[str]
    at: Mapped[str]

    @classmethod
    def counts(cls, unit):
        """How often each kind of vote was given."""
        rows = db.session.execute(
            select(cls.kind, func.count()).where(cls.unit_pk == unit.pk).group_by(cls.kind)
        )
        return dict(rows.all())


class Flag(db.Model):
    """What somebody found wrong; unanswered until a reviewer has looked."""

    __tablename__ = "flags"
    __table_args__ = (Index("ix_flags_unit", "unit_pk", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    unit_pk: Mapped[int] = mapped_column(ForeignKey("units.pk", ondelete="CASCADE"))
    by: Mapped[str]
    reason: Mapped[str]
    detail: Mapped[str | None]
    duplicate_of: Mapped[str | None]
    at: Mapped[str]
    answered_by: Mapped[str | None]
    answered_at: Mapped[str | None]

    def wire(self, reviewer):
        """The words of whoever flagged are for reviewers, never for agents."""
        return {
            "reason": self.reason,
            "timestamp": self.at,
            "detail": self.detail if reviewer else None,
            "duplicate_of": self.duplicate_of,
        }

    def told(self):
        """A flag as reviewers see it: with its author and what became of it."""
        return {
            **self.wire(reviewer=True),
            "by": self.by,
            "answered_by": self.answered_by,
            "answered_at": offset(self.answered_at),
        }
