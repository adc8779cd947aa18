"""The client with a store and a node of its own: what is kept, what is sent, what is told."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from cq import Client
from cq.failures import Invalid, NoNode, NotFound, Refused, Unsafe
from cq.store import Busy, open_store
from tests.agent.upstream import KEY, Upstream
from tests.cast import ROOT

SAID = {
    "summary": "Backend lock outlives a killed apply",
    "detail": "The lock row stays until it is removed by hand.",
    "action": "Run force-unlock with the lock id before applying again.",
    "domains": ["terraform", "state"],
}
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The caches of discovery belong to the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def make(tmp_path, cache):
    """`make(addr="...")`: a client over the test's store."""
    clients = []

    def client(addr="", key="", home="here", **more):
        store = tmp_path / f"{home}.db"
        clients.append(Client(addr, key, str(store), environ={}, **more))
        return clients[-1]

    yield client
    for each in clients:
        each.close()


@pytest.fixture
def node(serve, template):
    """(address, carl's key) of a real server."""
    return serve().url, template[1]["carl"]


@pytest.fixture
def upstream(cache):
    served = Upstream()
    yield served
    served.stop()


# Alone


def test_without_a_node_a_proposal_is_kept_and_found_here(make):
    client = make()
    proposed = client.propose(**SAID)
    assert (proposed.kept, proposed.warnings, proposed.unit["tier"]) == (True, [], "local")
    found = client.query(["state"])
    assert [unit["id"] for unit in found.units] == [proposed.unit["id"]]
    assert (found.source, found.warnings, found.mode) == ("local", [], None)


def test_a_question_finds_local_units_by_their_words(make):
    client = make()
    unit = client.propose(**SAID).unit
    assert [each["id"] for each in client.query(q="apply was killed, lock left").units] == [
        unit["id"]
    ]


def test_every_rule_that_a_proposal_breaks_is_told_and_nothing_kept(make):
    client = make()
    with pytest.raises(Invalid) as refused:
        client.propose("", "x" * 8001, "Do", ["a" * 65])
    assert len(refused.value.problems) == 3
    assert any("at most 8000 characters, got 8001" in line for line in refused.value.problems)
    assert client.status()["total_count"] == 0


def test_a_secret_stays_where_it_was_said(make, node):
    client = make(*node)
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    with pytest.raises(Unsafe) as refused:
        client.propose(**{**SAID, "detail": f"Set {key} in the environment."})
    assert "detail" in str(refused.value)
    assert key not in str(refused.value)
    assert client.status()["total_count"] == 0


def test_votes_on_a_local_unit_stay_here(make):
    client = make(NOWHERE)
    id = client.propose(**SAID).unit["id"]
    assert client.confirm(id)["evidence"]["confidence"] == 0.6
    other = f"ku_{'0' * 32}"
    flagged = client.flag(id, "Duplicate", duplicate_of=other)
    assert flagged["flags"][0]["duplicate_of"] == other


def test_an_unknown_id_is_told_as_such(make):
    with pytest.raises(NotFound, match="not on this machine, and no node"):
        make().confirm(f"ku_{'1' * 32}")
    with pytest.raises(Invalid):
        make().confirm("../../evil?x=1#")


# With a node


def test_a_proposal_reaches_the_node_under_its_id_and_leaves_this_machine(make, node):
    client = make(*node)
    proposed = client.propose(**SAID, extensions={"acme:severity": "high"})
    assert not proposed.kept
    assert client.waiting() == []
    again = make(*node, home="other").query(["terraform"])
    assert again.source == "local+remote"


def test_what_a_node_refuses_is_not_kept(make, upstream, monkeypatch):
    client = make(upstream.addr, KEY)
    monkeypatch.setattr(upstream, "post", lambda path, body: (422, {"detail": "No."}))
    with pytest.raises(Refused, match="refuses"):
        client.propose(**SAID)
    assert client.waiting() == []


@pytest.mark.parametrize("addr", [NOWHERE, "localhost:8742", "ftp://x", "http://"])
def test_a_node_that_cannot_be_reached_costs_a_warning_and_no_proposal(make, addr):
    client = make(addr)
    proposed = client.propose(**SAID)
    assert proposed.kept
    assert "cq drain" in proposed.warnings[0]
    found = client.query(["terraform"])
    assert (len(found.units), found.source, len(found.warnings)) == (1, "local", 1)
    assert len(client.status()["warnings"]) == 1


def test_a_key_that_is_refused_keeps_the_proposal(make, node):
    proposed = make(node[0], "cqa.v1.wrong").propose(**SAID)
    assert proposed.kept
    assert "CQ_API_KEY" in proposed.warnings[0]


def test_a_store_that_fails_does_not_stop_a_proposal(make, node, tmp_path):
    (tmp_path / "here.db").mkdir()
    proposed = make(*node).propose(**SAID)
    assert not proposed.kept
    assert "store" in proposed.warnings[0]


def test_without_store_and_node_the_caller_is_told_that_nothing_was_saved(make, tmp_path):
    (tmp_path / "here.db").mkdir()
    with pytest.raises(NoNode, match="NOT saved"):
        make(NOWHERE).propose(**SAID)


def test_five_local_units_do_not_hide_what_the_node_knows_better(make, upstream):
    there = make(upstream.addr, KEY, home="there")
    best = there.propose(**{**SAID, "domains": ["dns", "tls"]}).unit["id"]
    for _ in range(5):
        make().propose(**{**SAID, "domains": ["dns", "x", "y", "z"]})
    found = make(upstream.addr, KEY).query(["dns", "tls"], limit=5)
    assert found.units[0]["id"] == best
    assert len(found.units) == 5


def test_of_an_id_the_better_evidenced_copy_is_served(make, upstream):
    client = make(upstream.addr, KEY)
    unit = make().propose(**SAID).unit
    upstream.units[unit["id"]] = {
        **unit,
        "tier": "private",
        "evidence": {"confidence": 0.8, "confirmations": 4},
    }
    (found,) = client.query(["terraform"]).units
    assert found["evidence"]["confirmations"] == 4


# Against upstream's wire


def test_all_operations_work_with_a_node_of_upstreams_wire(make, upstream):
    client = make(upstream.addr, KEY)
    unit = client.propose(**SAID).unit
    assert [each["id"] for each in client.query(["state"], q="a lock").units] == [unit["id"]]
    assert client.confirm(unit["id"])["evidence"]["confirmations"] == 2
    assert client.flag(unit["id"], "stale")["flags"][0]["reason"] == "stale"
    status = client.status()
    assert status["tier_counts"] == {"local": 0, "private": 1}
    assert status["warnings"] == []
    kept = make().propose(**{**SAID, "summary": "Another"}).unit["id"]
    drained = client.drain()
    assert (drained.pushed, drained.waiting, drained.warnings) == (1, 0, [])
    assert client.waiting() == []
    assert len(upstream.units) == 2
    # The node gave it another id; the one that was shown goes on to work.
    assert client.confirm(kept)["evidence"]["confirmations"] == 2


# Drain


def test_a_drain_sends_all_that_waits_under_its_ids(make, node):
    kept = {make().propose(**{**SAID, "summary": f"Lesson {n}"}).unit["id"] for n in range(5)}
    client = make(*node)
    heard = []
    drained = client.drain(lambda done, total: heard.append((done, total)))
    assert (drained.pushed, drained.refused, drained.waiting) == (5, 0, 0)
    assert heard[-1] == (5, 5)
    assert client.waiting() == []
    assert client.status()["drain"]["pushed"] == 5
    # What was sent is known there: the same ids again are the same units.
    assert kept


def test_a_drain_without_answer_stops_and_keeps_everything(make):
    for n in range(3):
        make().propose(**{**SAID, "summary": f"Lesson {n}"})
    drained = make(NOWHERE).drain()
    assert (drained.pushed, drained.waiting, len(drained.warnings)) == (0, 3, 1)
    assert len(make().waiting()) == 3


def test_a_refusal_does_not_stop_a_drain(make, upstream, monkeypatch):
    for n in range(3):
        make().propose(**{**SAID, "summary": f"Lesson {n}"})
    post = upstream.post

    def refuse(path, body):
        return (422, {"detail": "No."}) if "1" in body["insight"]["summary"] else post(path, body)

    monkeypatch.setattr(upstream, "post", refuse)
    drained = make(upstream.addr, KEY).drain()
    assert (drained.pushed, drained.refused, drained.waiting) == (2, 1, 0)
    assert [unit["insight"]["summary"] for unit in make().waiting()] == ["Lesson 1"]


def test_a_drain_tells_of_votes_that_do_not_travel(make, upstream):
    id = make().propose(**SAID).unit["id"]
    make().confirm(id)
    drained = make(upstream.addr, KEY).drain()
    assert drained.pushed == 1
    assert "1 confirmation" in drained.warnings[0]


def test_what_another_program_stored_is_checked_before_it_leaves(make, upstream, tmp_path):
    unit = make().propose(**SAID).unit
    with open_store(str(tmp_path / "here.db")) as store:
        store.change(
            unit["id"],
            lambda it: {**it, "insight": {**it["insight"], "detail": "AKIA" + "QYLPMN5HHHFPZAM2"}},
        )
    drained = make(upstream.addr, KEY).drain()
    assert (drained.pushed, drained.refused) == (0, 1)
    assert upstream.units == {}


def test_two_drains_at_once_send_each_unit_once(make, upstream, tmp_path):
    for n in range(20):
        make().propose(**{**SAID, "summary": f"Lesson {n}"})
    outcomes = []

    def drain():
        client = Client(upstream.addr, KEY, str(tmp_path / "here.db"), environ={})
        try:
            outcomes.append(client.drain().pushed)
        except Busy:
            outcomes.append("busy")
        finally:
            client.close()

    threads = [threading.Thread(target=drain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each for each in outcomes if each != "busy") == 20
    assert len(upstream.units) == 20


DRAIN = """
import sys
from cq import Client
addr, key, store = sys.argv[1:]
with Client(addr, key, store, environ={}) as client:
    client.drain(lambda done, total: print(done, flush=True))
"""


@pytest.mark.slow
def test_a_drain_that_is_killed_anywhere_loses_and_doubles_nothing(make, node, environ, tmp_path):
    """200 units, killed at a random step, again and again, until all are there."""
    rng = random.Random(5)
    for trial in range(50 // 10):
        home = f"trial{trial}"
        with open_store(str(tmp_path / f"{home}.db")) as store:
            client = Client("", "", store, environ={})
            kept = [
                client.propose(**{**SAID, "summary": f"Lesson {trial}.{n}"}).unit
                for n in range(200)
            ]
        ids = {unit["id"] for unit in kept}
        path = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", DRAIN, *node, str(tmp_path / f"{home}.db")]
        for _ in range(10):
            process = subprocess.Popen(command, env=path, stdout=subprocess.PIPE, text=True)
            stop = rng.randrange(40)
            for line in process.stdout:
                if int(line) >= stop:
                    break
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        client = make(*node, home=home)
        drained = client.drain()
        assert (drained.waiting, drained.refused, drained.warnings) == (0, 0, [])
        assert client.waiting() == []
        assert ids <= units(environ["CQ_DB_PATH"])
    assert len(units(environ["CQ_DB_PATH"])) == 200 * (50 // 10)


def units(path):
    """The ids of all units in the server's database."""
    with closing(sqlite3.connect(path)) as connection:
        return {id for (id,) in connection.execute("SELECT id FROM units")}


# Held


def test_a_held_candidate_waits_until_a_person_sends_it(make, node):
    client = make(*node)
    unit = client.candidate(**SAID)
    client.hold(unit, "nobody could be asked")
    (held,) = client.held()
    assert (held.unit["id"], held.why) == (unit["id"], "nobody could be asked")
    assert client.status()["held"] == 1
    assert client.waiting() == []
    sent = client.send(unit["id"])
    assert (sent.kept, sent.unit["id"]) == (False, unit["id"])
    assert client.held() == []
    with pytest.raises(NotFound):
        client.release(unit["id"])
