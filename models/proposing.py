"""What agents do to units: propose, confirm, flag."""

import hashlib
import json
import unicodedata

from sqlalchemy import Numeric, case, cast, delete, exists, func, insert, select, update

from cq import unit as rules
from errors import Conflict, Invalid
from models import full_text
from models.base import db, now, write
from models.history import Event
from models.marks import Flag, UnitDomain, Vote

REPEAT_WINDOW = 600
# So many flags of a unit are kept and shown; further ones count as votes.
FLAGS = 100


class Proposing:
    """The agents' half of `Unit`."""

    @classmethod
    def propose(
        cls,
        by,
        domains,
        insight,
        context,
        extensions=None,
        key=None,
        findings=None,
        refusal=None,
    ):
        """A new pending unit of `by`, or the one that the same call made before.

        A key of a unit id's form becomes the id. `findings` and `refusal` are those of the words: a
        repeat is answered as it was before. Raises Conflict if somebody else has that id.
        """
        change = write()
        by.check()
        content_hash = digest(domains, insight, context, extensions)
        unit = cls._repeat(by, key, content_hash)
        if unit is not None:
            # Nothing changes: the turn and the number of this change are given back.
            id = unit.id
            db.session.rollback()
            return cls.find(id)
        if refusal:
            raise refusal
        time = now()
        unit = cls(
            id=key if rules.is_id(key) else rules.new_id(),
            idempotency_key=key,
            changed=change,
            content_hash=content_hash,
            created_by=by.name,
            author_id=by.id,
            extensions=extensions,
            findings=findings,
            domains=domains,
            **insight,
            **context,
            created_at=time,
            first_observed=time,
            last_confirmed=time,
        )
        db.session.add(unit)
        db.session.flush()
        unit.index_words()
        Event.add(unit, "proposed", by, at=time)
        return unit

    @classmethod
    def _repeat(cls, by, key, content_hash):
        mine = select(cls).where(cls.author_id == by.id).order_by(cls.pk.desc()).limit(1)
        if key is None:
            recent = mine.where(
                cls.content_hash == content_hash, cls.created_at > now(REPEAT_WINDOW)
            )
            return db.session.scalars(recent).unique().one_or_none()
        unit = db.session.scalars(mine.where(cls.idempotency_key == key)).unique().one_or_none()
        unit = unit or cls.named(key)
        if unit is not None and unit.author_id != by.id:
            raise Conflict("This id belongs to somebody else's knowledge unit")
        return unit

    @classmethod
    def confirm(cls, unit_id, by, window):
        """One more confirmation, unless the same person confirmed within `window` seconds."""
        return cls._vote(
            unit_id,
            by,
            "confirm",
            window,
            rules.CONFIRM,
            confirmations=cls.confirmations + 1,
            last_confirmed=now(),
        )

    @classmethod
    def flag(cls, unit_id, by, window, reason, detail=None, duplicate_of=None):
        """Lower the confidence and ask reviewers to look again; a repeat as for `confirm`."""
        write()
        cls.served(unit_id)
        if duplicate_of and (duplicate_of == unit_id or cls.named(duplicate_of) is None):
            raise Invalid.at("body", "duplicate_of", because="names no other knowledge unit")
        return cls._vote(
            unit_id,
            by,
            reason,
            window,
            rules.FLAG,
            open_flags=cls.open_flags + 1,
            flag={"reason": reason, "detail": detail, "duplicate_of": duplicate_of},
        )

    @classmethod
    def _vote(cls, unit_id, by, kind, window, step, flag=None, **values):
        change = write()
        by.check()
        unit = cls.served(unit_id)
        repeated = window and db.session.scalar(
            select(
                exists().where(
                    Vote.unit_pk == unit.pk,
                    Vote.user_id == by.id,
                    Vote.kind == kind,
                    Vote.at > now(window),
                )
            )
        )
        if repeated:
            db.session.rollback()
            return cls.find(unit_id)
        time = now()
        db.session.add(Vote(unit_pk=unit.pk, user_id=by.id, kind=kind, at=time))
        if flag and len(unit.flags) < FLAGS:
            db.session.add(Flag(unit_pk=unit.pk, by=by.name, at=time, **flag))
        db.session.execute(
            update(cls)
            .where(cls.pk == unit.pk)
            .values(confidence=shifted(cls.confidence, step), changed=change, **values)
        )
        db.session.flush()
        return cls.find(unit_id)

    def index_words(self):
        """Make the unit findable by its tags and its words, and by no earlier ones."""
        db.session.execute(delete(UnitDomain).where(UnitDomain.unit_pk == self.pk))
        db.session.execute(
            insert(UnitDomain),
            [{"unit_pk": self.pk, "domain": domain} for domain in self.domains],
        )
        words = {"summary": self.summary, "detail": self.detail, "action": self.action}
        full_text.replace({self.pk: {**words, "domains": self.domains}})


def shifted(column, step):
    """The rule `cq.unit.shift` as SQL."""
    moved = column + step
    moved = case((moved > 1.0, 1.0), (moved < 0.0, 0.0), else_=moved)
    return func.round(cast(moved, Numeric), rules.DECIMALS)


def digest(domains, insight, context, extensions):
    """The hash by which a proposal is known again: spelling of tags and white space aside."""
    words = {
        name: " ".join(unicodedata.normalize("NFC", text).split()) for name, text in insight.items()
    }
    lists = {
        name: value if isinstance(value, str) else sorted(map(rules.fold, value))
        for name, value in context.items()
    }
    text = json.dumps([sorted(domains), words, lists, extensions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
