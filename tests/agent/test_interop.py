"""Upstream's published client and our store in turn on one file."""

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from cq import record
from cq.store import open_store
from tests.test_sdk import INTERPRETER, LESSON, Client

pytestmark = pytest.mark.slow
STEPS = 125


@pytest.fixture
def sdk(tmp_path):
    """`sdk()`: upstream's client over the test's file, in a process of its own."""
    clients = []

    def start():
        clients.append(Client(INTERPRETER, tmp_path))
        return clients[-1]

    yield start
    for client in clients:
        client.end()


def unit(summary):
    said = {**LESSON, "summary": summary}
    return record.make(**said)


def test_each_reads_what_the_other_wrote(sdk, tmp_path):
    path = str(tmp_path / "local.db")
    theirs = sdk()
    id = theirs.gives("propose", **LESSON)["id"]
    with open_store(path) as ours:
        read = ours.get(id)
        assert read["insight"]["summary"] == LESSON["summary"]
        assert read["flags"] == []
        (found,) = ours.find(record.ask(["secrets"])).units
        assert found["id"] == id
        ours.change(id, lambda each: record.flagged(each, record.now(), "stale", "Gone in 2.0"))
        mine = {**unit("Ours"), "extensions": {"acme:severity": "high"}}
        ours.add(mine)
    known = {each["id"]: each for each in theirs.gives("query", domains=["rotation"])["units"]}
    assert known.keys() == {id, mine["id"]}
    assert known[id]["flags"][0]["reason"] == "stale"
    assert known[mine["id"]]["evidence"]["first_observed"] == mine["evidence"]["first_observed"]
    assert theirs.gives("confirm", unit_id=mine["id"])["evidence"]["confirmations"] == 2
    assert theirs.gives("status")["total_count"] == 2
    with open_store(path) as ours:
        assert ours.get(mine["id"])["evidence"]["confirmations"] == 2
        assert ours.get(mine["id"])["extensions"] == {"acme:severity": "high"}
        # A text of upstream's is taken out of the full text that upstream wrote.
        ours.delete(id)
        assert [each["id"] for each in ours.find(record.ask(["secrets"])).units] == [mine["id"]]
    assert [each["id"] for each in theirs.gives("query", domains=["secrets"])["units"]] == [
        mine["id"]
    ]


def _ours(path, number):
    with open_store(path) as store:
        for step in range(STEPS):
            made = unit(f"ours {number}.{step}")
            store.add(made)
            store.change(made["id"], lambda each: record.confirmed(each, record.now()))


def _theirs(client, number):
    for step in range(STEPS):
        id = client.gives("propose", **{**LESSON, "summary": f"theirs {number}.{step}"})["id"]
        client.gives("confirm", unit_id=id)


def test_a_thousand_operations_of_four_processes_lose_nothing(sdk, tmp_path):
    path = str(tmp_path / "local.db")
    open_store(path).close()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_ours, args=(path, number)) for number in range(2)]
    for worker in workers:
        worker.start()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_theirs, [sdk(), sdk()], range(2)))
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    with open_store(path) as store:
        units = store.all()
        assert len({each["insight"]["summary"] for each in units}) == 4 * STEPS
        assert {each["evidence"]["confirmations"] for each in units} == {2}
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for table in ("knowledge_units", "knowledge_units_fts"):
            assert file.execute(f"SELECT count(*) FROM {table}").fetchone() == (4 * STEPS,)
