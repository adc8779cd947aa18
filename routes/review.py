"""What reviewers do: read the queue, decide, edit, undo, look again."""

from flask import Response, current_app, g, jsonify
from sqlalchemy import or_

import auth
import routes
import schemas
import search
from errors import Failure, Unavailable
from models import LIVE, Event, Revision, Unit, Use, Vote, db, door, now

bp = routes.Blueprint("review", "/review")
DECISIONS = {"approve": "approved", "reject": "rejected"}


def _own():
    return current_app.config["CQ_SELF_REVIEW"]


def _item(unit):
    return unit.item(current_app.config["CQ_STALE_AFTER"])


def _page(name, where, limit, offset, cursor):
    """A page of units, oldest first, as U's queue looks, and where the next one begins.

    Reviewers' pages ask for the first one again and again: it is made once a change.
    """

    def make():
        db.session.rollback()
        rows, place = Unit.page(where, limit=limit, offset=offset, after=cursor)
        return jsonify(
            items=[_item(unit) for unit in rows],
            total=Unit.count(where),
            offset=offset,
            limit=limit,
            next_cursor=schemas.cursor(place),
        ).data

    first = offset == 0 and cursor is None
    # What time alone makes stale is noticed within the hour.
    key = (name, limit, now()[:13])
    body = search.index().remember(key, make) if first else make()
    return Response(body, mimetype="application/json")


@bp.get("/queue")
@auth.session_required("reviewer")
@bp.query(schemas.Listing)
@bp.answers(200, schemas.Page)
def queue(limit, offset, cursor):
    """Pending units, oldest first. `cursor` goes on where `next_cursor` left off."""
    return _page("queue", Unit.status == "pending", limit, offset, cursor)


@bp.get("/attention")
@auth.session_required("reviewer")
@bp.query(schemas.Listing)
@bp.answers(200, schemas.Page)
def attention(limit, offset, cursor):
    """Approved units that need another look: flagged and not answered yet, or not confirmed for
    CQ_STALE_AFTER.
    """
    where = or_(Unit.disputed(), _stale())
    return _page("attention", where, limit, offset, cursor)


@bp.get("/units")
@auth.session_required("reviewer")
@bp.query(schemas.Units)
@bp.answers(
    200,
    schemas.Item(many=True),
    headers={"CQ-Next-Cursor": {"description": "where more follow", "schema": {"type": "string"}}},
)
def units(limit, offset, cursor, **filters):
    """All units that pass the filters, newest first; the header CQ-Next-Cursor leads on."""
    rows, place = Unit.page(
        *_filters(**filters), limit=limit, offset=offset, after=cursor, newest=True
    )
    response = jsonify([_item(unit) for unit in rows])
    if place:
        response.headers["CQ-Next-Cursor"] = schemas.cursor(place)
    return response


def _stale():
    return Unit.stale(current_app.config["CQ_STALE_AFTER"])


def _filters(domain, status, author, confidence_min, confidence_max, disputed, stale):
    if domain.strip():
        yield Unit.tagged(domain)
    if status:
        yield Unit.status == status
    if author.strip():
        yield Unit.created_by == author.strip()
    if disputed:
        yield Unit.disputed()
    if stale:
        yield _stale()
    if confidence_min is not None:
        yield Unit.confidence >= confidence_min
    if confidence_max is not None:
        top = (
            Unit.confidence <= confidence_max
            if confidence_max >= 1
            else (Unit.confidence < confidence_max)
        )
        yield top


@bp.get("/<unit_id>")
@auth.session_required("reviewer")
@bp.answers(200, schemas.Item)
@bp.refuses(404)
def one(unit_id):
    """One unit in any state."""
    return _item(Unit.find(unit_id))


@bp.patch("/<unit_id>")
@auth.session_required("reviewer", human=True)
@bp.body(schemas.Edit)
@bp.answers(200, schemas.Item)
@bp.refuses(400, 404, 409)
def edit(unit_id, **words):
    """Better words for a pending or disputed unit; the earlier ones are kept."""
    _, refusal = door.look(words, current_app.config["CQ_SAFETY"] == "refuse")
    if refusal:
        raise refusal
    unit = Unit.edit(unit_id, g.actor, **words, own=_own())
    db.session.commit()
    return _item(unit)


@bp.get("/<unit_id>/history")
@auth.session_required("reviewer")
@bp.answers(200, schemas.History)
@bp.refuses(404)
def history(unit_id):
    """Events and revisions, oldest first, flags with their words, votes counted by kind."""
    unit = Unit.find(unit_id)
    return {
        "events": [event.wire() for event in Event.of(unit)],
        "revisions": [revision.wire() for revision in Revision.of(unit)],
        "flags": [flag.told() for flag in unit.flags],
        "votes": Vote.counts(unit),
        "use": Use.of(unit),
    }


@bp.get("/<unit_id>/similar")
@auth.session_required("reviewer")
@bp.query(schemas.Few)
@bp.answers(200, schemas.Similar)
@bp.refuses(404)
def similar(unit_id, limit):
    """The pending and approved units nearest to this one: maybe it is there already."""
    mode, near = search.alike(Unit.find(unit_id), limit)
    units = Unit.numbered([pk for pk, _ in near])
    return {
        "mode": mode,
        "data": [
            {**_item(units[pk]), "similarity": round(similarity, 4)}
            for pk, similarity in near
            if pk in units and units[pk].status in LIVE
        ],
    }


@bp.verbs("approve", "reject")
@auth.session_required("reviewer", human=True)
@bp.body(schemas.Decision, optional=True)
@bp.answers(200, schemas.Decided)
@bp.refuses(400, 404, 409)
def decide(unit_id, verb, **asked):
    """Approve or reject a pending unit. A 409 says who decided before, what and when."""
    unit = Unit.decide(unit_id, DECISIONS[verb], g.actor, **asked, own=_own())
    db.session.commit()
    return unit.decision()


@bp.verbs("reopen", "keep", "retire")
@auth.session_required("reviewer", human=True)
@bp.body(schemas.Reason, optional=True)
@bp.answers(200, schemas.Decided)
@bp.refuses(400, 404, 409)
def again(unit_id, verb, reason):
    """Undo a decision, or look again at an approved unit: it is kept as it is, or retired."""
    more = {"stale_after": current_app.config["CQ_STALE_AFTER"]} if verb == "keep" else {}
    unit = getattr(Unit, verb)(unit_id, g.actor, reason, own=_own(), **more)
    db.session.commit()
    return unit.decision()


@bp.post("/<unit_id>/supersede")
@auth.session_required("reviewer", human=True)
@bp.body(schemas.Supersede)
@bp.answers(200, schemas.Decided)
@bp.refuses(400, 404, 409)
def supersede(unit_id, replacement, reason):
    """Another approved unit takes this one's place and its confirmations."""
    unit = Unit.supersede(unit_id, g.actor, replacement, reason, own=_own())
    db.session.commit()
    return unit.decision()


@bp.post("/bulk")
@auth.session_required("reviewer", human=True)
@bp.body(schemas.Bulk)
@bp.answers(200, schemas.BulkAnswer)
@bp.refuses(400)
def bulk(decision, ids, tier, reason):
    """The same decision for up to 200 ids; each is answered as it would have been alone."""
    answers = []
    for unit_id in dict.fromkeys(ids):
        try:
            if decision == "reopen":
                unit = Unit.reopen(unit_id, g.actor, reason, own=_own())
            else:
                unit = Unit.decide(unit_id, DECISIONS[decision], g.actor, tier, reason, own=_own())
            answers.append(unit.decision())
        except Unavailable:
            raise
        except Failure as refusal:
            answers.append({"unit_id": unit_id, "error": refusal.status, "detail": refusal.detail})
    db.session.commit()
    return {"data": answers}
