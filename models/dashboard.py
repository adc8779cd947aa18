"""What the dashboard counts."""

from datetime import date, timedelta

from sqlalchemy import exists, func, select
from sqlalchemy.orm import aliased

from models.base import db, now, offset
from models.history import Event
from models.unit import Unit

COUNTED = ("pending", "approved", "rejected")
# The steps that set a unit's state, and what the feed calls them.
STEPS = {
    "proposed": "proposed",
    "reopened": "proposed",
    "approved": "approved",
    "rejected": "rejected",
}
DAYS = 30


def counts():
    rows = db.session.execute(select(Unit.status, func.count()).group_by(Unit.status))
    return dict.fromkeys(COUNTED, 0) | {
        status: count for status, count in rows if status in COUNTED
    }


def activity(limit=20):
    """The latest step of each unit, newest first; an approval takes the place of the proposal."""
    later = aliased(Event)
    rows = db.session.execute(
        select(Event.type, Event.by, Event.at, Unit.id, Unit.summary)
        .join(Unit, Unit.pk == Event.unit_pk)
        .where(
            Event.type.in_(STEPS),
            ~exists().where(
                later.unit_pk == Event.unit_pk,
                later.id > Event.id,
                later.type != "edited",
                later.type != "kept",
            ),
        )
        .order_by(Event.id.desc())
        .limit(limit)
    )
    feed = []
    for type, by, at, id, summary in rows:
        entry = {"type": STEPS[type], "unit_id": id, "summary": summary}
        if entry["type"] != "proposed":
            entry["reviewed_by"] = by
        feed.append({**entry, "timestamp": offset(at)})
    return feed


def daily():
    """Per UTC day what was proposed, approved and rejected: from the first active day of the last
    thirty to today, with zeros between; [] without any.
    """
    today = now()[:10]
    start = (date.fromisoformat(today) - timedelta(days=DAYS)).isoformat()
    days = {}
    for kind, time, where in (
        ("proposed", Unit.created_at, ()),
        ("approved", Unit.reviewed_at, (Unit.status == "approved",)),
        ("rejected", Unit.reviewed_at, (Unit.status == "rejected",)),
    ):
        day = func.substr(time, 1, 10)
        rows = db.session.execute(
            select(day, func.count()).where(time >= start, *where).group_by(day)
        )
        for day, count in rows:
            if day <= today:
                days.setdefault(day, {})[kind] = count
    if not days:
        return []
    first = date.fromisoformat(min(days))
    span = (date.fromisoformat(today) - first).days + 1
    dates = ((first + timedelta(days=ahead)).isoformat() for ahead in range(span))
    empty = {"proposed": 0, "approved": 0, "rejected": 0}
    return [{"date": day, **empty, **days.get(day, {})} for day in dates]
