"""A knowledge unit in columns: how it is found and how it looks in JSON.

What is done to it stands in `proposing` and `reviewing`.
"""

from sqlalchemy import ForeignKey, Index, and_, exists, false, func, select, tuple_
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cq import unit as rules
from errors import NotFound
from models import door
from models.base import Json, db, now, offset
from models.marks import Flag, UnitDomain
from models.proposing import Proposing
from models.reviewing import Reviewing

# What reviewers have before them and what agents are served.
LIVE = ("pending", "approved")


class Unit(Proposing, Reviewing, db.Model):
    __tablename__ = "units"

    pk: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(unique=True)
    version: Mapped[int] = mapped_column(default=1)
    status: Mapped[str] = mapped_column(default="pending")
    tier: Mapped[str] = mapped_column(default="private")
    domains: Mapped[list] = mapped_column(Json)
    summary: Mapped[str]
    detail: Mapped[str]
    action: Mapped[str]
    languages: Mapped[list] = mapped_column(Json)
    frameworks: Mapped[list] = mapped_column(Json)
    pattern: Mapped[str]
    confidence: Mapped[float] = mapped_column(default=rules.START)
    confirmations: Mapped[int] = mapped_column(default=1)
    first_observed: Mapped[str]
    last_confirmed: Mapped[str]
    extensions: Mapped[dict | None] = mapped_column(Json)
    # None for words that came in another way than through the door.
    findings: Mapped[list | None] = mapped_column(Json)
    superseded_by: Mapped[str | None]
    created_at: Mapped[str]
    created_by: Mapped[str]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    reviewed_by: Mapped[str | None]
    reviewed_at: Mapped[str | None]
    reason: Mapped[str | None]
    revision: Mapped[int] = mapped_column(default=1)
    open_flags: Mapped[int] = mapped_column(default=0)
    idempotency_key: Mapped[str | None]
    content_hash: Mapped[str]
    changed: Mapped[int]

    flags: Mapped[list[Flag]] = relationship(order_by=Flag.id, lazy="joined", viewonly=True)

    __table_args__ = (
        Index("ix_units_queue", "status", "created_at", "id"),
        Index("ix_units_newest", "created_at", "id"),
        Index("ix_units_reviewed", "status", "reviewed_at"),
        Index("ix_units_confidence", "status", "confidence"),
        Index("ix_units_confirmed", "status", "last_confirmed"),
        Index("ix_units_author", "author_id", "created_at", "id"),
        Index("ix_units_repeat", "author_id", "content_hash", "created_at"),
        Index("ix_units_idempotency", "author_id", "idempotency_key", unique=True),
        Index("ix_units_changed", "changed"),
        Index(
            "ix_units_disputed",
            "created_at",
            "id",
            sqlite_where=db.text("open_flags > 0"),
            postgresql_where=db.text("open_flags > 0"),
        ),
    )

    # Finding

    @classmethod
    def named(cls, unit_id):
        """The unit as it stands in the database now, or None."""
        if not rules.is_id(unit_id):
            return None
        return (
            db.session.scalars(
                select(cls).where(cls.id == unit_id).execution_options(populate_existing=True)
            )
            .unique()
            .one_or_none()
        )

    @classmethod
    def find(cls, unit_id):
        unit = cls.named(unit_id)
        if unit is None:
            raise NotFound("Knowledge unit not found")
        return unit

    @classmethod
    def served(cls, unit_id, private=True):
        """A unit that agents see: approved, and public unless `private` ones are shown too."""
        unit = cls.find(unit_id)
        if not unit.shown(private):
            raise NotFound("Knowledge unit not found")
        return unit

    def shown(self, private):
        """Whether agents see it: approved, and public unless private ones are shown too."""
        return self.status == "approved" and (private or self.tier == "public")

    @classmethod
    def numbered(cls, pks):
        """The units of these row numbers, by row number."""
        rows = db.session.scalars(select(cls).where(cls.pk.in_(pks))).unique()
        return {unit.pk: unit for unit in rows}

    @classmethod
    def live(cls, pks):
        """Those of these row numbers whose units are pending or approved."""
        return set(db.session.scalars(select(cls.pk).where(cls.pk.in_(pks), cls.status.in_(LIVE))))

    @classmethod
    def page(cls, *where, limit, offset=0, after=None, newest=False):
        """(units, place of the last if more follow): oldest first, or newest, by (created_at, id).

        `after` is such a place; what others decide meanwhile neither skips nor repeats a unit.
        """
        place = tuple_(cls.created_at, cls.id)
        if after:
            where = (*where, place < tuple_(*after) if newest else place > tuple_(*after))
        order = (cls.created_at.desc(), cls.id.desc()) if newest else (cls.created_at, cls.id)
        rows = (
            db.session.scalars(
                select(cls).where(*where).order_by(*order).limit(limit + 1).offset(offset)
            )
            .unique()
            .all()
        )
        more = 0 < limit < len(rows)
        rows = rows[:limit]
        return rows, (rows[-1].created_at, rows[-1].id) if more else None

    @classmethod
    def count(cls, *where):
        return db.session.scalar(select(func.count()).select_from(cls).where(*where))

    @classmethod
    def disputed(cls):
        # The status is asked for so that no index serves it: the small one of flagged units shall.
        return and_(cls.status + "" == "approved", cls.open_flags > db.literal_column("0"))

    @classmethod
    def stale(cls, after):
        """Approved, and not confirmed for so many seconds; 0 stands for never."""
        return and_(cls.status == "approved", cls.last_confirmed < now(after)) if after else false()

    @classmethod
    def tagged(cls, domain):
        return exists().where(UnitDomain.unit_pk == cls.pk, UnitDomain.domain == rules.fold(domain))

    # Showing

    def content(self):
        """The words of the unit, as a proposal or an edit brings them."""
        return {
            "domains": self.domains,
            "insight": {"summary": self.summary, "detail": self.detail, "action": self.action},
            "context": {
                "languages": self.languages,
                "frameworks": self.frameworks,
                "pattern": self.pattern,
            },
        }

    def wire(self, author=True, reviewer=False):
        """The knowledge unit of the wire, in canonical order; `author` tells who proposed it."""
        content = self.content()
        return {
            "id": self.id,
            "version": self.version,
            **content,
            "evidence": {
                "confidence": self.confidence,
                "confirmations": self.confirmations,
                "first_observed": self.first_observed,
                "last_confirmed": self.last_confirmed,
            },
            "tier": self.tier,
            **({"created_by": self.created_by} if author else {}),
            "superseded_by": self.superseded_by,
            "extensions": self.extensions,
            "flags": [flag.wire(reviewer) for flag in self.flags],
        }

    def item(self, stale_after=0):
        """A unit as reviewers see it; not confirmed for `stale_after` seconds, it is stale."""
        approved = self.status == "approved"
        return {
            "knowledge_unit": self.wire(reviewer=True),
            "status": self.status,
            "reviewed_by": self.reviewed_by,
            "reviewed_at": offset(self.reviewed_at),
            "reason": self.reason,
            "revision": self.revision,
            "created_at": offset(self.created_at),
            "disputed": approved and self.open_flags > 0,
            "flags": [flag.told() for flag in self.flags],
            "findings": door.findings(self) if self.findings is None else self.findings,
            "stale": bool(approved and stale_after and self.last_confirmed < now(stale_after)),
        }

    def proposal(self):
        """A unit as its author sees it: flags without the words of whoever flagged, no findings."""
        return {**self.item(), "knowledge_unit": self.wire(), "flags": [], "findings": []}

    def decision(self):
        return {
            "unit_id": self.id,
            "status": self.status,
            "reviewed_by": self.reviewed_by,
            "reviewed_at": offset(self.reviewed_at),
        }
