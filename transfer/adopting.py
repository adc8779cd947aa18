"""A unit that another server or file had, made rows here. Knows no file and no command."""

from marshmallow import ValidationError
from sqlalchemy import exists, insert, select

from cq import safety, wire
from errors import Conflict, Failure
from models import Actor, Event, Flag, Revision, Unit, User, Vote, db, now, write
from models.proposing import FLAGS, digest
from transfer.shape import LINE

# Whoever ran the command; a file may come from anywhere, so it names nobody as its own.
OPERATOR = Actor(None, "import", "admin", "command")
# Of votes that a file only counts, so many get a row.
VOTES = 1000


class Bad(Failure):
    """What is wrong with a unit, in a line."""


def load(document):
    """The members of a unit's JSON, checked as a proposal is. Raises Bad."""
    try:
        loaded = LINE.load(document)
    except ValidationError as fault:
        raise Bad(told(fault)) from None
    refused = safety.refusals(safety.check(loaded))
    if refused:
        raise Bad("; ".join(f"{each.field}: {each.kind}, {each.text}" for each in refused[:3]))
    return loaded


def told(fault):
    """The first problems of a ValidationError in a line; nothing of what came in is repeated."""
    problems = [
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"])))
        for each in wire.problems(fault.messages)
    ]
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(problems[:3]).replace("Value error, ", "") + more


def adopt(loaded, trust=False, approve=False):
    """Make the rows of a unit; whether there was anything to do. Raises Conflict.

    With `trust` it has the state that it had, else it is a new proposal, with the evidence that it
    brings; with `approve` that is approved at once.
    """
    words = {name: loaded[name] for name in ("domains", "insight", "context")}
    content_hash = digest(**words, extensions=loaded["extensions"])
    id = loaded["id"] or f"ku_{content_hash[:32]}"
    known = Unit.named(id)
    if known is None:
        change = write()
        known = Unit.named(id)
    if known is not None:
        if known.content_hash != content_hash and not _was(known, words):
            raise Conflict(f"{id} is here already, with other words")
        return False
    evidence, time = loaded["evidence"], now()
    created_at = loaded["created_at"] or evidence["first_observed"] or time
    author = User.named(loaded["created_by"]) if trust and loaded["created_by"] else None
    flags = loaded["flags"]
    waiting = sum(flag["answered_at"] is None for flag in flags)
    unit = Unit(
        id=id,
        version=loaded["version"],
        changed=change,
        content_hash=content_hash,
        domains=words["domains"],
        **words["insight"],
        **words["context"],
        extensions=loaded["extensions"],
        confidence=evidence["confidence"],
        confirmations=evidence["confirmations"],
        first_observed=evidence["first_observed"] or created_at,
        last_confirmed=evidence["last_confirmed"] or evidence["first_observed"] or created_at,
        created_at=created_at if trust else time,
        created_by=loaded["created_by"] or ("" if trust else OPERATOR.name),
        author_id=author and author.id,
        open_flags=waiting,
    )
    if trust:
        _trust(unit, loaded, waiting)
    elif approve:
        unit.status, unit.reviewed_by, unit.reviewed_at = "approved", OPERATOR.name, time
    db.session.add(unit)
    db.session.flush()
    unit.index_words()
    _history(unit, loaded, trust, author)
    return True


def _was(known, words):
    """Whether the unit had these words before somebody edited it here."""
    return any({name: each.content[name] for name in words} == words for each in Revision.of(known))


def _trust(unit, loaded, waiting):
    given = loaded["open_flags"]
    unit.status = loaded["status"]
    unit.tier = "public" if loaded["tier"] == "public" else "private"
    unit.superseded_by = loaded["superseded_by"]
    unit.reviewed_by, unit.reviewed_at = loaded["reviewed_by"], loaded["reviewed_at"]
    unit.reason, unit.revision = loaded["reason"], loaded["revision"]
    unit.open_flags = waiting if given is None else given
    unit.idempotency_key = _free(loaded["idempotency_key"], unit.author_id)


def _free(key, author_id):
    """The key, unless the author has used it here for something else."""
    if key is None or author_id is None:
        return key
    used = exists().where(Unit.author_id == author_id, Unit.idempotency_key == key)
    return None if db.session.scalar(select(used)) else key


def _history(unit, loaded, trust, author):
    """The rows beside a unit: flags, votes, and with trust also events and revisions."""
    flags = loaded["flags"]
    rows = [
        {
            "unit_pk": unit.pk,
            "by": flag["by"] or "import",
            "reason": flag["reason"],
            "detail": flag["detail"],
            "duplicate_of": flag["duplicate_of"],
            "at": flag["timestamp"] or unit.created_at,
            "answered_by": flag["answered_by"],
            "answered_at": flag["answered_at"],
        }
        for flag in flags[:FLAGS]
    ]
    _insert(Flag, rows)
    votes = loaded["votes"] if trust else None
    if votes is None:
        confirmed = min(loaded["evidence"]["confirmations"] - 1, VOTES)
        votes = [{"kind": "confirm", "at": unit.last_confirmed}] * confirmed
        votes += [
            {"kind": flag["reason"], "at": flag["timestamp"] or unit.created_at} for flag in flags
        ]
    people = _people({flag["by"] for flag in flags} - {None}) if trust else {}
    flagged = {(flag["reason"], flag["timestamp"]): people.get(flag["by"]) for flag in flags}
    _insert(
        Vote,
        [
            {"unit_pk": unit.pk, "user_id": flagged.get((vote["kind"], vote["at"])), **vote}
            for vote in votes
        ],
    )
    events = loaded["events"] if trust else None
    if events is None:
        proposer = Actor(author and author.id, unit.created_by or "import", "", "command")
        Event.add(unit, "proposed", proposer, at=unit.created_at)
        if unit.status != "pending":
            _decided(unit)
    else:
        _insert(Event, [{"unit_pk": unit.pk, **event} for event in events])
    if trust:
        _insert(Revision, [{"unit_pk": unit.pk, **each} for each in loaded["revisions"]])


def _decided(unit):
    """The event of a decision of which only its outcome is known."""
    reviewer = Actor(None, unit.reviewed_by or "import", "", "command")
    tier = {"tier": unit.tier} if unit.status in ("approved", "rejected") else {}
    event = Event.add(unit, unit.status, reviewer, unit.reason, at=unit.reviewed_at, **tier)
    event.self_reviewed = unit.reviewed_by is not None and unit.reviewed_by == unit.created_by


def _people(names):
    return dict(
        db.session.execute(select(User.username, User.id).where(User.username.in_(names))).all()
    )


def _insert(table, rows):
    if rows:
        db.session.execute(insert(table), rows)
