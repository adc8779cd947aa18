"""Counts: what agents may see, and the reviewers' dashboard."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from models import db
from models.base import write

EMPTY = {"0.0-0.3": 0, "0.3-0.5": 0, "0.5-0.7": 0, "0.7-1.0": 0}
NOTHING = {"0.0-0.3": 0, "0.3-0.6": 0, "0.6-0.8": 0, "0.8-1.0": 0}
QUIET = {"proposed": 0, "approved": 0, "rejected": 0}


def alter(app, unit, **values):
    """Change columns of a unit behind the server's back, as time would."""
    columns = ", ".join(f"{name} = :{name}" for name in values)
    with app.app_context():
        change = write()
        db.session.execute(
            text(f"UPDATE units SET {columns}, changed = :changed WHERE id = :id"),
            {**values, "changed": change, "id": unit["id"]},
        )
        db.session.commit()


def agents(call, key="carl"):
    answer = call("GET", "/knowledge/stats", key=key)
    assert answer.status_code == 200, answer.text
    return answer.json


def dashboard(call):
    answer = call("GET", "/review/stats", user="rita")
    assert answer.status_code == 200, answer.text
    return answer.json


def review(call, unit, verb, body=None, user="rita"):
    answer = call("POST", f"/review/{unit['id']}/{verb}", body, user=user)
    assert answer.status_code == 200, answer.text
    return answer.json


def rejected(call, *args):
    unit = call.propose(*args)
    review(call, unit, "reject")
    return unit


# What agents see


def test_an_empty_store_has_empty_counts_and_four_buckets(call):
    answer = agents(call)
    assert answer == {
        "total_count": 0,
        "tier_counts": {},
        "domain_counts": {},
        "confidence_distribution": EMPTY,
    }
    assert list(answer) == [
        "total_count",
        "tier_counts",
        "domain_counts",
        "confidence_distribution",
    ]
    assert list(answer["confidence_distribution"]) == list(EMPTY)


def test_agents_see_counts_of_what_they_may_see(call, make_call):
    """D2: without a key that is what is public; nobody sees the backlog."""
    call.approve("one", ["a", "b"])
    call.approve("two", ["b", "c"])
    call.approve("three", ["b"], tier="public")
    call.propose("pending", ["p"])
    rejected(call, "rejected", ["r"])
    everything = {
        "total_count": 3,
        "tier_counts": {"private": 2, "public": 1},
        "domain_counts": {"b": 3, "a": 1, "c": 1},
        "confidence_distribution": {**EMPTY, "0.5-0.7": 3},
    }
    public = {
        "total_count": 1,
        "tier_counts": {"public": 1},
        "domain_counts": {"b": 1},
        "confidence_distribution": {**EMPTY, "0.5-0.7": 1},
    }
    assert agents(call) == everything
    assert call("GET", "/knowledge/stats", user="cleo").json == everything
    assert agents(call, key=None) == public
    header = {"Authorization": f"Bearer {call.keys['carl'][:-1]}"}
    assert call("GET", "/knowledge/stats", headers=header).json == public
    assert agents(make_call(CQ_OPEN_READS="1"), key=None) == everything


def test_domains_are_counted_commonest_first(call):
    for number, domains in enumerate((["x", "y", "z"], ["y", "z"], ["z"], ["a"])):
        call.approve(f"unit {number}", domains)
    assert list(agents(call)["domain_counts"].items()) == [("z", 3), ("y", 2), ("a", 1), ("x", 1)]
    assert list(dashboard(call)["domains"].items()) == [("z", 3), ("y", 2), ("a", 1), ("x", 1)]


def test_a_confidence_on_an_edge_belongs_to_the_upper_bucket(call, app):
    """Agents and reviewers have different edges; 1.0 belongs to the last bucket."""
    values = (0.0, 0.2999, 0.3, 0.4999, 0.5, 0.5999, 0.6, 0.6999, 0.7, 0.7999, 0.8, 1.0)
    for value in values:
        alter(app, call.approve(f"at {value}", ["edges"]), confidence=value)
    told = agents(call)["confidence_distribution"]
    assert told == {"0.0-0.3": 2, "0.3-0.5": 2, "0.5-0.7": 4, "0.7-1.0": 4}
    told = dashboard(call)["confidence_distribution"]
    assert told == {"0.0-0.3": 2, "0.3-0.6": 4, "0.6-0.8": 4, "0.8-1.0": 2}


def test_votes_land_on_the_edge_exactly(call):
    """D-25: three confirmations make 0.8 and no 0.7999."""
    unit = call.approve()
    for name in ("carl", "cleo", "ada"):
        call("POST", f"/knowledge/{unit['id']}/confirmations", key=name)
    assert dashboard(call)["confidence_distribution"] == {**NOTHING, "0.8-1.0": 1}
    for name in ("carl", "cleo"):
        path = f"/knowledge/{unit['id']}/flags"
        assert call("POST", path, {"reason": "stale"}, key=name).status_code == 201
    assert agents(call)["confidence_distribution"] == {**EMPTY, "0.5-0.7": 1}


def test_counts_follow_every_change(call):
    """Row 57: what was taken back is in no count."""
    unit = call.approve("one", ["a"])
    other = call.approve("two", ["a"])
    assert agents(call)["domain_counts"] == {"a": 2}
    review(call, unit, "reopen")
    assert agents(call)["domain_counts"] == {"a": 1}
    assert (
        call("PATCH", f"/review/{unit['id']}", {"domains": ["b"]}, user="rita").status_code == 200
    )
    review(call, unit, "approve", {"tier": "public"})
    assert agents(call)["domain_counts"] == {"a": 1, "b": 1}
    assert agents(call)["tier_counts"] == {"private": 1, "public": 1}
    review(call, other, "retire")
    assert agents(call)["domain_counts"] == {"b": 1}
    assert agents(call)["total_count"] == 1
    new = call.approve("three", ["c"])
    review(call, unit, "supersede", {"replacement": new["id"]})
    assert agents(call) == {
        "total_count": 1,
        "tier_counts": {"private": 1},
        "domain_counts": {"c": 1},
        "confidence_distribution": {**EMPTY, "0.5-0.7": 1},
    }


# The dashboard


def test_an_empty_dashboard_has_its_shape(call):
    answer = dashboard(call)
    assert answer == {
        "counts": {"pending": 0, "approved": 0, "rejected": 0},
        "domains": {},
        "confidence_distribution": NOTHING,
        "recent_activity": [],
        "trends": {"daily": []},
    }
    assert list(answer["counts"]) == ["pending", "approved", "rejected"]
    assert list(answer["confidence_distribution"]) == list(NOTHING)


def test_the_dashboard_counts_units_by_state(call):
    """Domains and confidence are those of approved units; retired ones are in no count."""
    call.propose("pending", ["p"])
    call.propose("pending too", ["p"])
    call.approve("approved", ["a", "b"], tier="public")
    rejected(call, "rejected", ["r"])
    review(call, call.approve("retired", ["t"]), "retire")
    answer = dashboard(call)
    assert answer["counts"] == {"pending": 2, "approved": 1, "rejected": 1}
    assert answer["domains"] == {"a": 1, "b": 1}
    assert answer["confidence_distribution"] == {**NOTHING, "0.3-0.6": 1}


def feed(call):
    return [(entry["type"], entry["summary"]) for entry in dashboard(call)["recent_activity"]]


def test_the_feed_has_one_entry_a_unit_in_its_present_state(call):
    """An approval takes the place of the proposal; a proposal names no reviewer."""
    one, two, three = (call.propose(f"unit {number}") for number in (1, 2, 3))
    assert feed(call) == [("proposed", "unit 3"), ("proposed", "unit 2"), ("proposed", "unit 1")]
    approved = review(call, one, "approve")
    refused = review(call, three, "reject", user="ada")
    assert dashboard(call)["recent_activity"] == [
        {
            "type": "rejected",
            "unit_id": three["id"],
            "summary": "unit 3",
            "reviewed_by": "ada",
            "timestamp": refused["reviewed_at"],
        },
        {
            "type": "approved",
            "unit_id": one["id"],
            "summary": "unit 1",
            "reviewed_by": "rita",
            "timestamp": approved["reviewed_at"],
        },
        {
            "type": "proposed",
            "unit_id": two["id"],
            "summary": "unit 2",
            "timestamp": two["evidence"]["first_observed"].replace("Z", "+00:00"),
        },
    ]


def test_a_reopened_unit_shows_as_proposed(call):
    unit = call.approve("undone")
    review(call, unit, "reopen")
    (entry,) = dashboard(call)["recent_activity"]
    assert (entry["type"], entry["unit_id"]) == ("proposed", unit["id"])
    assert "reviewed_by" not in entry
    review(call, unit, "reject")
    assert feed(call) == [("rejected", "undone")]


def test_what_decides_nothing_leaves_the_feed_as_it_is(call):
    """Votes, flags, edits and answers to flags; a retired unit has no entry any more."""
    unit = call.propose("one")
    words = {"insight": {"summary": "one edited"}}
    assert call("PATCH", f"/review/{unit['id']}", words, user="ada").status_code == 200
    assert feed(call) == [("proposed", "one edited")]
    review(call, unit, "approve")
    call("POST", f"/knowledge/{unit['id']}/confirmations", key="cleo")
    call("POST", f"/knowledge/{unit['id']}/flags", {"reason": "stale"}, key="cleo")
    review(call, unit, "keep", user="ada")
    (entry,) = dashboard(call)["recent_activity"]
    assert (entry["type"], entry["reviewed_by"]) == ("approved", "rita")
    review(call, unit, "retire")
    assert feed(call) == []


def test_the_feed_is_in_the_order_of_the_times_it_shows(call):
    """Newest first, reopened units among them."""
    units = [call.propose(f"unit {number}") for number in range(6)]
    review(call, units[3], "approve")
    review(call, units[1], "reject")
    review(call, units[1], "reopen")
    review(call, units[0], "approve")
    times = [entry["timestamp"] for entry in dashboard(call)["recent_activity"]]
    assert len(times) == 6
    assert times == sorted(times, reverse=True)


def test_the_feed_ends_after_twenty_entries(call):
    for number in range(22):
        call.propose(f"unit {number}")
    assert feed(call) == [("proposed", f"unit {number}") for number in range(21, 1, -1)]


def ago(days, clock="12:00:00"):
    """A time so many UTC days back, as a row holds it, and its date."""
    day = (datetime.now(UTC) - timedelta(days=days)).date().isoformat()
    return f"{day}T{clock}.000000Z", day


def daily(call):
    return {row.pop("date"): row for row in dashboard(call)["trends"]["daily"]}


def test_days_run_from_the_first_active_one_to_today_with_zeros_between(call, app):
    call.propose("today")
    first, second = call.approve("first"), rejected(call, "second")
    alter(app, first, created_at=ago(4)[0], reviewed_at=ago(2)[0])
    alter(app, second, created_at=ago(4)[0], reviewed_at=ago(4)[0])
    rows = dashboard(call)["trends"]["daily"]
    assert list(rows[0]) == ["date", "proposed", "approved", "rejected"]
    assert rows == [
        {"date": ago(4)[1], "proposed": 2, "approved": 0, "rejected": 1},
        {"date": ago(3)[1], **QUIET},
        {"date": ago(2)[1], **QUIET, "approved": 1},
        {"date": ago(1)[1], **QUIET},
        {"date": ago(0)[1], **QUIET, "proposed": 1},
    ]


def test_a_day_is_a_utc_day_from_its_first_moment_to_its_last(call, app):
    first, last = call.propose("first"), call.propose("last")
    alter(app, first, created_at=ago(2, "00:00:00")[0])
    alter(app, last, created_at=ago(2)[1] + "T23:59:59.999999Z")
    assert daily(call)[ago(2)[1]] == {**QUIET, "proposed": 2}


def test_the_window_is_the_last_thirty_days_and_today(call, app):
    """The first moment of its first day is in, the second before it is out."""
    inside, outside = call.propose("inside"), call.propose("outside")
    alter(app, outside, created_at=ago(31, "23:59:59")[0])
    assert list(daily(call)) == [ago(0)[1]]
    alter(app, inside, created_at=ago(30, "00:00:00")[0])
    days = daily(call)
    assert len(days) == 31
    assert list(days) == [ago(day)[1] for day in range(30, -1, -1)]
    assert days.pop(ago(30)[1]) == {**QUIET, "proposed": 1}
    assert all(row == QUIET for row in days.values())


def test_what_is_older_than_the_window_or_in_the_future_is_in_no_day(call, app):
    old, early = call.propose("old"), call.propose("early")
    review(call, early, "approve")
    alter(app, old, created_at=ago(400)[0])
    alter(app, early, created_at=ago(-1)[0], reviewed_at=ago(-2)[0])
    assert dashboard(call)["trends"]["daily"] == []
    alter(app, old, created_at=ago(1)[0])
    assert daily(call) == {ago(1)[1]: {**QUIET, "proposed": 1}, ago(0)[1]: QUIET}


def test_a_decision_that_is_undone_leaves_its_day(call):
    unit = call.approve()
    assert daily(call) == {ago(0)[1]: {"proposed": 1, "approved": 1, "rejected": 0}}
    review(call, unit, "reopen")
    assert daily(call) == {ago(0)[1]: {"proposed": 1, "approved": 0, "rejected": 0}}
    review(call, unit, "reject")
    assert daily(call) == {ago(0)[1]: {"proposed": 1, "approved": 0, "rejected": 1}}
