"""What reviewers do to units: each step is one conditional UPDATE."""

from sqlalchemy import BigInteger, case, func, literal, or_, select, update

from cq import unit as rules
from errors import Conflict, Forbidden, Invalid
from models import door
from models.base import db, now, offset, write
from models.history import Event, Revision
from models.marks import Flag, Vote
from models.proposing import shifted


class Reviewing:
    """The reviewers' half of `Unit`."""

    @classmethod
    def decide(cls, unit_id, status, by, tier=None, reason=None, revision=None, own=True):
        """Approve or reject a pending unit; of two reviewers one wins and the other hears of it.

        `revision` is the one that was read, if that matters; `own=False` forbids one's own.
        """
        values = {"tier": tier or "private"} if status == "approved" else {}
        unit = cls._move(
            unit_id,
            by,
            ("pending",),
            own,
            seen=revision,
            status=status,
            reviewed_by=by.name,
            reviewed_at=now(),
            reason=reason,
            **values,
        )
        Event.add(unit, status, by, reason, at=unit.reviewed_at, tier=unit.tier)
        return unit

    @classmethod
    def reopen(cls, unit_id, by, reason=None, own=True):
        """Undo a decision: the unit is pending again. Its votes and flags stay."""
        before = ("approved", "rejected", "retired")
        unit = cls._move(
            unit_id,
            by,
            before,
            own,
            status="pending",
            reviewed_by=None,
            reviewed_at=None,
            reason=None,
        )
        Event.add(unit, "reopened", by, reason)
        return unit

    @classmethod
    def keep(cls, unit_id, by, reason=None, own=True, stale_after=0):
        """A disputed or stale unit is right as it stands: its flags are answered, and a stale one
        counts as confirmed now. Its confidence stays.
        """
        stale = cls.stale(stale_after)
        unit = cls._move(
            unit_id,
            by,
            ("approved",),
            own,
            or_(cls.open_flags > 0, stale),
            open_flags=0,
            last_confirmed=case((stale, now()), else_=cls.last_confirmed),
        )
        unit._answer(by)
        Event.add(unit, "kept", by, reason)
        return unit

    @classmethod
    def retire(cls, unit_id, by, reason=None, own=True):
        """Take an approved unit out of every answer."""
        unit = cls._move(
            unit_id,
            by,
            ("approved",),
            own,
            status="retired",
            reviewed_by=by.name,
            reviewed_at=now(),
            reason=reason,
            open_flags=0,
        )
        unit._answer(by)
        Event.add(unit, "retired", by, reason)
        return unit

    @classmethod
    def supersede(cls, unit_id, by, replacement, reason=None, own=True):
        """Retire a unit in favour of another approved one, which takes over its confirmations.

        A person who confirmed both counts once. Flags stay behind: they were about the old text.
        """
        write()
        heir = cls.named(replacement)
        if replacement == unit_id or heir is None or heir.status != "approved":
            raise Invalid.at("body", "replacement", because="names no other approved unit")
        unit = cls._move(
            unit_id,
            by,
            ("approved",),
            own,
            status="superseded",
            superseded_by=heir.id,
            reviewed_by=by.name,
            reviewed_at=now(),
            reason=reason,
            open_flags=0,
        )
        unit._answer(by)
        already = select(Vote.user_id).where(
            Vote.unit_pk == heir.pk, Vote.kind == "confirm", Vote.user_id.is_not(None)
        )
        # Who left has no number any more: each such vote is somebody's own.
        person = func.coalesce(Vote.user_id, -Vote.id)
        first = (
            select(func.min(Vote.id))
            .where(Vote.unit_pk == unit.pk, Vote.kind == "confirm")
            .group_by(person)
        )
        carried = db.session.execute(
            update(Vote)
            .where(Vote.id.in_(first), or_(Vote.user_id.is_(None), Vote.user_id.not_in(already)))
            .values(unit_pk=heir.pk)
            .execution_options(synchronize_session=False)
        ).rowcount
        db.session.execute(
            update(cls)
            .where(cls.pk == heir.pk)
            .values(
                confidence=shifted(cls.confidence, carried * rules.CONFIRM),
                confirmations=cls.confirmations + carried,
                changed=unit.changed,
            )
        )
        Event.add(unit, "superseded", by, reason, superseded_by=heir.id)
        return unit

    @classmethod
    def edit(cls, unit_id, by, revision=None, own=True, domains=None, insight=None, context=None):
        """Better words for a pending or disputed unit; the original and each revision are kept.

        On a disputed unit the edit answers the flags.
        """
        write()
        before = cls.find(unit_id).content()
        fresh = {**(insight or {}), **(context or {}), **({"domains": domains} if domains else {})}
        unit = cls._move(
            unit_id,
            by,
            ("pending", "approved"),
            own,
            or_(cls.status == "pending", cls.open_flags > 0),
            seen=revision,
            **fresh,
            revision=cls.revision + 1,
            open_flags=0,
        )
        if unit.revision == 2:
            db.session.add(
                Revision(
                    unit_pk=unit.pk,
                    number=1,
                    content=before,
                    by=unit.created_by,
                    at=unit.created_at,
                )
            )
        content = unit.content()
        db.session.add(
            Revision(unit_pk=unit.pk, number=unit.revision, content=content, by=by.name, at=now())
        )
        unit.findings = door.findings(unit)
        unit._answer(by)
        unit.index_words()
        Event.add(unit, "edited", by, revision=unit.revision)
        return unit

    @classmethod
    def _move(cls, unit_id, by, before, own, *conditions, seen=None, **values):
        """One conditional UPDATE from one of the statuses `before`; no row changed is a refusal.

        `seen` is the revision that was read, if that matters.
        """
        change = write()
        where = [cls.id == unit_id, cls.status.in_(before), *conditions]
        if seen:
            where.append(cls.revision == literal(seen, BigInteger))
        if not own:
            where.append(or_(cls.author_id.is_(None), cls.author_id != by.id))
        done = db.session.execute(update(cls).where(*where).values(changed=change, **values))
        unit = cls.find(unit_id)
        if not done.rowcount:
            if not own and unit.author_id == by.id:
                raise Forbidden("This server does not let people review their own proposals")
            raise Conflict(unit.standing(before, seen))
        return unit

    def standing(self, before, seen):
        """Why a step from one of the statuses `before`, of this revision if any, was refused."""
        if self.status in before:
            if seen and seen != self.revision:
                return f"Knowledge unit was edited meanwhile; it is at revision {self.revision}"
            return "Knowledge unit has no unanswered flag"
        if self.reviewed_by is None:
            return f"Knowledge unit is {self.status}"
        return (
            f"Knowledge unit already {self.status} by {self.reviewed_by} "
            f"at {offset(self.reviewed_at)}"
        )

    def _answer(self, by):
        db.session.execute(
            update(Flag)
            .where(Flag.unit_pk == self.pk, Flag.answered_at.is_(None))
            .values(answered_by=by.name, answered_at=now())
        )
