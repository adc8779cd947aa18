"""What agents do: query, propose, confirm, flag."""

from flask import current_app, g, request

import auth
import routes
import schemas
import search
import tally
from cq import wire
from errors import Invalid
from models import Unit, db, door

bp = routes.Blueprint("knowledge", "/knowledge")


@bp.get("")
@auth.reader
@bp.query(wire.Query)
@bp.answers(200, schemas.Found)
def query(explain, **asked):
    """Approved units that share a tag with `domains`, or answer `q` by their words or meaning, best
    first. The header CQ-Search tells whether meaning took part: `semantic` or `domain`.
    """
    mode, ranked = search.find(**asked, private=g.private)
    found = dict(ranked)
    units = search.render(found, g.private)
    if g.actor is None or g.actor.channel != "page":
        tally.note(asked["domains"] or [], units)
    response = routes.raw(units.values(), [found[pk] for pk in units] if explain else None)
    response.headers["CQ-Search"] = mode
    return response


@bp.post("")
@auth.agent_required
@bp.body(wire.Propose)
@bp.answers(201, schemas.KnowledgeUnit)
@bp.refuses(400, 409)
def propose(created_by=None, **proposed):
    """A new unit, pending until a reviewer decides. `Idempotency-Key` makes a repeat harmless."""
    findings, refusal = door.look(proposed, current_app.config["CQ_SAFETY"] == "refuse")
    unit = Unit.propose(
        g.actor, **proposed, key=_idempotency_key(), findings=findings, refusal=refusal
    )
    db.session.commit()
    return unit.wire()


def _idempotency_key():
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise Invalid.at(
            "header", "Idempotency-Key", because="takes 1 to 255 printable ASCII characters"
        )
    return key


@bp.get("/<unit_id>")
@auth.reader
@bp.answers(200, schemas.KnowledgeUnit)
@bp.refuses(404)
def one(unit_id):
    """One approved unit."""
    return Unit.served(unit_id, g.private).wire(author=False)


@bp.post("/<unit_id>/confirmations")
@auth.agent_required
@bp.answers(201, schemas.KnowledgeUnit)
@bp.refuses(404)
def confirm(unit_id):
    """This unit proved right. Once per person within CQ_VOTE_WINDOW."""
    unit = Unit.confirm(unit_id, g.actor, current_app.config["CQ_VOTE_WINDOW"])
    db.session.commit()
    return unit.wire(author=False)


@bp.post("/<unit_id>/flags")
@auth.agent_required
@bp.body(wire.Flag)
@bp.answers(201, schemas.KnowledgeUnit)
@bp.refuses(400, 404)
def flag(unit_id, **flagged):
    """This unit is stale, incorrect or a duplicate of another. Once per person and reason."""
    unit = Unit.flag(unit_id, g.actor, current_app.config["CQ_VOTE_WINDOW"], **flagged)
    db.session.commit()
    return unit.wire(author=False)
