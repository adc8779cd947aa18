"""What agents ask for and do not find, and what they are served: counted, and told to reviewers."""

import os
import signal
import threading

import pytest

import tally
from errors import Unavailable
from models import db
from models import gaps as counted
from models.base import write
from tests.browser.conftest import Node
from tests.cast import PASSWORD, alter, eventually

SECRET = "ghp_" + "a8Zk3Qw9Lm2Xc7Vb1Nn5Tt6Rr4Yy0Uu8Pp3D"


def listed(call, what, **query):
    answer = call("GET", f"/review/{what}", user="rita", query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.json


def gaps(call, **query):
    """[(tags, how often not found, how often asked)] once all is written."""
    tally.flush(call.app)
    page = listed(call, "gaps", **query)
    return [(each["tags"], each["missed"], each["asked"]) for each in page["items"]]


def use(call, **query):
    """[(summary, served, confirmed, flagged)] once all is written."""
    tally.flush(call.app)
    page = listed(call, "use", **query)
    return [
        (each["summary"], each["served"], each["confirmed"], each["flagged"])
        for each in page["items"]
    ]


def stored(call, *names):
    """The rows of these tables, or of all."""
    with call.app.app_context():
        tables = [table for name, table in db.metadata.tables.items() if not names or name in names]
        rows = [tuple(row) for table in tables for row in db.session.execute(table.select())]
        db.session.rollback()
    return rows


def ask(call, times, key="carl", **query):
    for _ in range(times):
        call.found(key, **query)


def test_tags_that_were_asked_for_and_not_found_are_told_most_first(call):
    call.approve("Known", ["known"])
    ask(call, 2, domains=["k8s", "dns"])
    ask(call, 3, domains=["known"])
    ask(call, 4, domains=["rust"])
    # Spelling, order and repeats of tags make no other question.
    ask(call, 1, domains=["DNS", " Ｋ8S ", "dns"])
    # One tag that is known is enough to find something.
    ask(call, 5, domains=["known", "zig"])
    assert gaps(call) == [(["rust"], 4, 4), (["dns", "k8s"], 3, 3)]
    page = listed(call, "gaps")
    assert {each["last"] for each in page["items"]} == {counted.today()}
    assert (page["total"], page["counting"]) == (2, True)


def test_a_gap_that_was_filled_says_so_and_counts_what_was_found_since(call):
    ask(call, 2, domains=["rust"])
    tally.flush(call.app)
    assert [each["known"] for each in listed(call, "gaps")["items"]] == [False]
    call.approve("Borrowed", ["rust"])
    ask(call, 3, domains=["rust"])
    assert gaps(call) == [(["rust"], 2, 5)]
    assert [each["known"] for each in listed(call, "gaps")["items"]] == [True]


def test_neither_questions_nor_callers_are_kept(call):
    ask(call, 2, q="why does my zebra crossing flicker", domains=["zoo"])
    ask(call, 1, q="where is the quagga")
    ask(call, 1, key=None, q="who ate the okapi")
    assert gaps(call) == [(["zoo"], 2, 2), ([], 2, 2)]
    text = str(stored(call))
    assert "zoo" in text
    for word in ("zebra", "quagga", "okapi"):
        assert word not in text
    today = counted.today()
    assert stored(call, "queries") == [(today, ["zoo"], 2, 2), (today, [], 2, 2)]


def test_a_tag_that_is_a_secret_or_an_address_is_kept_as_none(call):
    ask(call, 1, domains=[SECRET])
    ask(call, 2, domains=["john.smith@acme-corp.io", "terraform"])
    assert gaps(call) == [([], 3, 3)]
    text = str(stored(call)).casefold()
    assert SECRET.casefold() not in text
    assert "john.smith" not in text


def test_a_reviewers_search_in_the_page_is_no_agents_query(call):
    client = call.app.test_client()
    login = {"username": "rita", "password": PASSWORD, "session": True}
    assert client.post("/api/v1/auth/login", json=login).status_code == 200
    assert client.get("/api/v1/knowledge?domains=mine").status_code == 200
    assert call("GET", "/knowledge?domains=program", user="rita").status_code == 200
    assert gaps(call) == [(["program"], 1, 1)]


def test_questions_that_are_refused_are_not_counted(call):
    assert call("GET", "/knowledge?domains=x&limit=0", key="carl").status_code == 422
    assert call("GET", "/knowledge", key="carl").status_code == 422
    assert gaps(call) == []


def test_units_are_told_by_how_often_they_were_served(call):
    often, seldom, never = (
        call.approve(name, [name.lower()]) for name in ("Often", "Seldom", "Never")
    )
    call.propose("Pending", ["often"])
    ask(call, 3, domains=["often"])
    ask(call, 2, domains=["often", "seldom"])
    path = f"/knowledge/{often['id']}"
    for key in ("carl", "cleo"):
        assert call("POST", f"{path}/confirmations", key=key).status_code == 201
    for reason in ("stale", "incorrect"):
        assert call("POST", f"{path}/flags", {"reason": reason}, key="cleo").status_code == 201
    assert use(call) == [("Often", 5, 2, 2), ("Seldom", 2, 0, 0)]
    assert use(call, never=1) == [("Never", 0, 0, 0)]
    first, second = listed(call, "use")["items"]
    assert (first["unit_id"], second["unit_id"]) == (often["id"], seldom["id"])
    assert first["last"] == counted.today()
    assert listed(call, "use", never=1)["items"][0]["last"] is None
    history = call("GET", f"/review/{often['id']}/history", user="rita").json
    assert history["use"] == {"served": 5, "last": counted.today()}
    history = call("GET", f"/review/{never['id']}/history", user="rita").json
    assert history["use"] == {"served": 0, "last": None}


def test_being_served_changes_no_confidence_and_no_order(call):
    first, second = call.approve("First", ["t"]), call.approve("Second", ["t"])
    before = call("GET", "/knowledge?domains=t", key="carl").text
    ask(call, 20, domains=["t"], limit=1)
    tally.flush(call.app)
    assert call("GET", "/knowledge?domains=t", key="carl").text == before
    assert {first["id"], second["id"]} == set(call.found(domains="t"))


def test_a_retired_unit_stays_in_the_list_and_says_so(call):
    unit = call.approve("Gone by now", ["t"])
    ask(call, 1, domains=["t"])
    assert call("POST", f"/review/{unit['id']}/retire", {}, user="rita").status_code == 200
    assert use(call) == [("Gone by now", 1, 0, 0)]
    assert listed(call, "use")["items"][0]["status"] == "retired"
    assert use(call, never=1) == []


def test_a_deleted_unit_leaves_no_use_behind(call):
    gone, late = call.approve("Gone", ["t"]), call.approve("Late", ["t"])
    ask(call, 2, domains=["t"])
    assert len(use(call)) == 2
    alter(call.app, "DELETE FROM units WHERE id = :id", id=gone["id"])
    assert use(call) == [("Late", 2, 0, 0)]
    # One that goes between its serving and the writing is no trouble for the others.
    ask(call, 1, domains=["t"])
    alter(call.app, "DELETE FROM units WHERE id = :id", id=late["id"])
    ask(call, 1, domains=["after"])
    assert gaps(call) == [(["after"], 1, 1)]
    assert use(call) == []


def test_the_lists_go_by_pages(call):
    for number in range(5):
        call.approve(f"Unit {number}", [f"tag{number}"])
        ask(call, number + 1, domains=[f"tag{number}"])
        ask(call, number + 1, domains=[f"none{number}"])
        call.approve(f"Unasked {number}", ["unasked"])
    whole = gaps(call)
    assert [tags for tags, *_ in whole] == [[f"none{number}"] for number in (4, 3, 2, 1, 0)]
    assert gaps(call, limit=2, offset=2) == whole[2:4]
    assert [each[0] for each in use(call, limit=2, offset=3)] == ["Unit 1", "Unit 0"]
    assert [each[0] for each in use(call, limit=2, offset=1, never=1)] == ["Unasked 1", "Unasked 2"]
    for what in ("gaps", "use", "use?never=1"):
        page = call("GET", f"/review/{what}{'&' if '?' in what else '?'}limit=0", user="rita").json
        assert (page["items"], page["total"], page["limit"]) == ([], 5, 0)
        assert (
            call("GET", f"/review/{what.split('?')[0]}?limit=101", user="rita").status_code == 422
        )


def test_days_add_up_and_what_is_older_than_ninety_goes(call):
    with_days = {0: 1, 40: 2, 89: 4, 90: 8, 200: 16}
    for ago, times in with_days.items():
        alter(
            call.app,
            "INSERT INTO queries (day, tags, asked, missed) VALUES (:day, '[\"rust\"]', :n, :n)",
            day=counted.today(ago),
            n=times,
        )
    assert gaps(call) == [(["rust"], 7, 7)]
    days = {day for day, *_ in stored(call, "queries")}
    assert days == {counted.today(ago) for ago in (0, 40, 89)}


def test_the_last_day_is_the_last_on_which_nothing_was_found(call):
    for ago, missed in ((0, 0), (3, 1), (5, 1)):
        alter(
            call.app,
            "INSERT INTO queries (day, tags, asked, missed) VALUES (:day, '[\"rust\"]', 2, :n)",
            day=counted.today(ago),
            n=missed,
        )
    assert gaps(call) == [(["rust"], 2, 6)]
    assert listed(call, "gaps")["items"][0]["last"] == counted.today(3)


def test_nothing_is_counted_where_the_log_is_off_and_old_counts_go(make_call):
    call = make_call(CQ_QUERY_LOG="0")
    call.approve("Known", ["known"])
    alter(
        call.app,
        "INSERT INTO queries (day, tags, asked, missed) VALUES (:day, '[]', 1, 1)",
        day=counted.today(100),
    )
    ask(call, 2, domains=["known", "unknown"])
    ask(call, 2, domains=["unknown"])
    assert gaps(call) == []
    assert use(call) == []
    assert listed(call, "gaps")["counting"] is False
    assert listed(call, "use")["counting"] is False
    assert stored(call, "queries", "uses") == []


def test_processes_add_up(make_call):
    one, other = make_call(), make_call()
    one.approve("Known", ["known"])
    for _ in range(2):
        for call in (one, other):
            ask(call, 2, domains=["known"])
            ask(call, 3, domains=["unknown"])
            tally.flush(call.app)
    assert gaps(other) == [(["unknown"], 12, 12)]
    assert use(one) == [("Known", 8, 0, 0)]


def test_a_query_is_answered_while_somebody_else_writes_and_counted_afterwards(make_call, make_app):
    call = make_call()
    call.approve("Known", ["known"])
    ask(call, 1, domains=["known"])
    with make_app().app_context():
        write()
        ask(call, 3, domains=["known"])
        with pytest.raises(Unavailable):
            call.app.extensions["cq_tally"].flush(patience=0.01)
        db.session.rollback()
    assert use(call) == [("Known", 4, 0, 0)]


def test_many_threads_lose_no_count(call):
    call.approve("Known", ["known"])

    def work():
        ask(call, 25, domains=["known"])
        tally.flush(call.app)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert use(call) == [("Known", 100, 0, 0)]


def test_whoever_asks_for_ever_new_tags_fills_neither_memory_nor_disk(call, monkeypatch):
    monkeypatch.setattr(tally, "MOST", 20)
    monkeypatch.setattr(counted, "SETS", 30)
    for start in (0, 25, 50):
        for number in range(start, start + 25):
            ask(call, 1, domains=[f"new{number}"])
        tally.flush(call.app)
    ask(call, 5, domains=["new0"])
    assert gaps(call, limit=1) == [(["new0"], 6, 6)]
    assert listed(call, "gaps")["total"] == 30


def test_a_server_that_is_ended_writes_what_it_noted(serve, template):
    server = Node(serve(), template[1])
    for _ in range(3):
        assert server.finds(domains="rust") == []
    server.process.stop()
    assert server.process.process.returncode == 0
    assert missed(Node(serve(), template[1])) == [(["rust"], 3)]


def test_a_server_that_is_killed_loses_only_what_was_not_written_yet(serve, template):
    server = Node(serve(), template[1])
    assert server.finds(domains="rust") == []
    assert eventually(lambda: missed(server) == [(["rust"], 1)])
    os.kill(server.process.process.pid, signal.SIGKILL)
    server.process.process.wait(20)
    assert missed(Node(serve(), template[1])) == [(["rust"], 1)]


def missed(server):
    """[(tags, how often)] as a running server tells them."""
    status, page = server.call("GET", "/review/gaps", token=server.token("rita"))
    assert status == 200
    return [(each["tags"], each["missed"]) for each in page["items"]]
