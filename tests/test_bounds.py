"""What somebody could make large, stale or broken, and how far that goes."""

import threading

import pytest
from sqlalchemy import text

import config
import models.base
import search
from auth import hash_password
from models import ApiKey, Unit, Vote, db, now
from models.proposing import FLAGS
from tests.cast import PASSWORD, proposal


def test_words_that_nobody_uses_leave_nothing_behind(call):
    call.approve("one", ["known"])
    for number in range(30):
        call.found(domains=["known", *(f"unknown {number} {more}" for more in range(15))])
    assert len(call.app.extensions["cq_index"].order.ranked) <= 1


def test_flags_beyond_the_bound_count_and_are_not_kept(make_call):
    call = make_call(CQ_VOTE_WINDOW="0", CQ_WRITE_RATE="off")
    unit = call.approve()
    for _ in range(FLAGS + 3):
        answer = call("POST", f"/knowledge/{unit['id']}/flags", {"reason": "stale"}, key="cleo")
    assert len(answer.json["flags"]) == FLAGS
    told = call("GET", f"/review/{unit['id']}/history", user="rita").json
    assert told["votes"] == {"stale": FLAGS + 3}


def test_active_keys_stay_in_the_list_behind_hundreds_of_ended_ones(call):
    with call.app.app_context():
        old = ApiKey.of(2)[0].id
        for number in range(205):
            ApiKey.add(2, f"k{number}", [], "1h", 3600, f"{number:032x}", "p" * 8, f"h{number}")
            ApiKey.revoke(2, f"{number:032x}")
        db.session.commit()
    listed = call("GET", "/users/me/api-keys", user="rita").json["data"]
    assert len(listed) == 201
    assert listed[-1]["id"] == old
    assert listed == sorted(listed, key=lambda key: key["created_at"], reverse=True)


def test_one_bad_row_spoils_no_answer(call):
    good = call.approve("good", ["rows"])
    bad = call.approve("bad", ["rows"])
    with call.app.app_context():
        number = models.base.write()
        rows = Unit.__table__.update().where(Unit.id == bad["id"])
        db.session.execute(rows.values(tier="local", changed=number))
        db.session.commit()
    assert call.found(domains="rows") == [good["id"]]
    assert call.found(q="good") == [good["id"]]


def test_a_repeat_is_no_change(call):
    def number():
        with call.app.app_context():
            return db.session.execute(text("SELECT number FROM changes WHERE id = 1")).scalar()

    unit = call.approve()
    confirm = f"/knowledge/{unit['id']}/confirmations"
    before = number()
    call("POST", confirm, key="cleo")
    assert number() == before + 1
    call("POST", confirm, key="cleo")
    call("POST", "/knowledge", proposal(), key="carl")
    assert number() == before + 1


def test_an_edit_that_names_nothing_is_refused_and_answers_no_flag(call):
    unit = call.approve()
    call("POST", f"/knowledge/{unit['id']}/flags", {"reason": "stale"}, key="cleo")
    for body in ({}, {"insight": {}}, {"context": {}, "insight": {}}):
        assert call("PATCH", f"/review/{unit['id']}", body, user="rita").status_code == 422
    shown = call("GET", f"/review/{unit['id']}", user="rita").json
    assert (shown["revision"], shown["disputed"]) == (1, True)


def test_superseding_carries_one_confirmation_a_person(make_call):
    call = make_call(CQ_VOTE_WINDOW="0")
    old, new = call.approve("old"), call.approve("new")
    for _ in range(3):
        call("POST", f"/knowledge/{old['id']}/confirmations", key="cleo")
    call("POST", f"/review/{old['id']}/supersede", {"replacement": new["id"]}, user="rita")
    heir = call("GET", f"/knowledge/{new['id']}", key="carl").json
    assert heir["evidence"]["confirmations"] == 2
    assert heir["evidence"]["confidence"] == 0.6


def test_a_busy_database_ends_a_bulk_decision_at_once(call, monkeypatch):
    """One wait for all ids, not one for each; the whole answer is the refusal."""
    monkeypatch.setattr(models.base.turn, "__defaults__", (0.01,))
    ids = [call.propose(f"unit {number}")["id"] for number in range(3)]
    assert models.base._turn.acquire(timeout=5)
    try:
        body = {"decision": "approve", "ids": ids}
        answer = call("POST", "/review/bulk", body, user="rita")
    finally:
        models.base._turn.release()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]


def test_a_write_of_somebody_who_was_deleted_meanwhile_is_refused(call, actor):
    """Another process may have seen them a moment ago."""
    carl = actor("carl")
    unit = call.approve("theirs", key="cleo")
    with call.app.app_context():
        hash_password(PASSWORD)
        call("PATCH", "/users/carl", {"disabled": True}, user="ada")
        for write in (
            lambda: Unit.propose(carl, ["x"], *proposal_parts()),
            lambda: Unit.confirm(unit["id"], carl, 0),
            lambda: ApiKey.add(carl.id, "k", [], "1h", 3600, "a" * 32, "p" * 8, "h"),
        ):
            with pytest.raises(Exception, match="gone or disabled"):
                write()
            db.session.rollback()
        assert db.session.query(Vote).count() == 0


def proposal_parts():
    body = proposal()
    return body["insight"], body["context"]


def test_the_dashboard_keeps_nothing_that_a_later_change_made_untrue(call, app):
    """What was begun before a change and ended after it is nobody else's answer."""
    index = app.extensions["cq_index"]
    with app.app_context():
        search.index()
        begun, go = threading.Event(), threading.Event()

        def slow():
            begun.set()
            assert go.wait(10)
            return "before"

        told = []
        asking = threading.Thread(target=lambda: told.append(index.remember("k", slow)))
        asking.start()
        assert begun.wait(10)
        call.approve("changes the number")
        search.index()
        go.set()
        asking.join()
        assert told == ["before"]
        assert index.remember("k", lambda: "after") == "after"


@pytest.mark.only("sqlite", why="EXPLAIN QUERY PLAN")
@pytest.mark.parametrize(
    ("query", "index"),
    [
        (lambda: Unit.disputed(), "ix_units_disputed"),
        (lambda: Unit.status == "pending", "ix_units_queue"),
        (lambda: Unit.author_id == 1, "ix_units_author"),
    ],
)
def test_the_lists_of_units_are_read_in_the_order_of_an_index(app, query, index):
    with app.app_context():
        rows = db.select(Unit.pk).where(query()).order_by(Unit.created_at, Unit.id).limit(20)
        statement = rows.compile(db.engine, compile_kwargs={"literal_binds": True})
        plan = str(db.session.execute(text(f"EXPLAIN QUERY PLAN {statement}")).all())
    assert index in plan
    assert "TEMP B-TREE" not in plan


def test_a_rate_that_is_none_is_refused():
    for value in ("0/minute", "10/minute;1/day", "fast", "10"):
        with pytest.raises(config.ConfigError, match="CQ_READ_RATE"):
            config.from_env({"CQ_READ_RATE": value})


def test_counters_of_rates_stay_bounded_and_forget_the_oldest(monkeypatch):
    import rates

    monkeypatch.setattr(rates, "KEPT", 10)
    counters = rates.Counters()
    for number in range(100):
        counters.incr(f"key {number}", 60)
        assert len(counters.windows) <= 10
    assert counters.get("key 99") == 1


def test_times_sort_as_they_read():
    times = [now(ago) for ago in (3, 2, 1, 0)]
    assert times == sorted(times)
    assert {len(time) for time in times} == {27}
