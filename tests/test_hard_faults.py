"""Real servers in real trouble: killed, without room, without a right to write, with a wrong clock."""

import http.client
import os
import sqlite3
import stat
import subprocess
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command as alembic

import config
from app import create_app
from cq import unit as rules
from models import User, db
from tests.cast import eventually, proposal
from tests.test_serve import (
    API,
    log_in,
    long_insight,
    make_key,
    remedied,
    send,
    soon,
    start,
)

__all__ = ["start"]
pytestmark = [pytest.mark.slow, pytest.mark.only("sqlite", why="a database in a file")]


def look(url, path, token):
    answer = send(url, "GET", API + path, token=token)
    assert answer.status == 200, answer.body
    return answer.json


def queued(url, token):
    """The ids of all pending units, page by page."""
    ids, cursor = [], ""
    while cursor is not None:
        page = look(url, f"/review/queue?limit=100{cursor}", token)
        ids += [item["knowledge_unit"]["id"] for item in page["items"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    return ids


def sound(path):
    """Whether SQLite finds nothing wrong in a file, its words included, once no server runs."""
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        database.execute("INSERT INTO units_fts (units_fts, rank) VALUES ('integrity-check', 1)")
        return True


def copy(environ, folder):
    """The variables of a server over a whole copy of the test's database, elsewhere."""
    path = folder / "cq.db"
    with (
        closing(sqlite3.connect(environ["CQ_DB_PATH"])) as here,
        closing(sqlite3.connect(path)) as there,
    ):
        here.backup(there)
    return {**environ, "CQ_DB_PATH": str(path)}


# A server that is killed


def test_a_kill_under_load_loses_nothing_that_was_acknowledged(start, call, environ):
    """What got no answer is proposed again under its key, and is there once."""
    acknowledged, open_keys, enough = [], {}, threading.Event()
    server = start(**environ).listening()

    def write(name):
        number = 0
        while True:
            key, number = rules.new_id(), number + 1
            open_keys[key] = name, proposal(f"{name} {number}")
            try:
                answer = propose(server.url, key)
            except (OSError, http.client.HTTPException):
                return
            acknowledged.append(answer)
            del open_keys[key]
            if len(acknowledged) > 60:
                enough.set()

    def propose(url, key):
        name, body = open_keys[key]
        headers = {"Idempotency-Key": key}
        answer = send(url, "POST", f"{API}/knowledge", body, call.keys[name], headers)
        assert answer.status == 201, answer.body
        assert answer.json["id"] == key
        return key

    writers = [threading.Thread(target=write, args=[name]) for name in ("carl", "cleo", "rita")]
    for writer in writers:
        writer.start()
    assert enough.wait(60)
    server.process.kill()
    for writer in writers:
        writer.join(60)
    server.end()
    again = start(**environ).listening()
    stored = queued(again.url, call.tokens["rita"])
    assert set(acknowledged) <= set(stored)
    assert set(stored) <= {*acknowledged, *open_keys}
    sent = [propose(again.url, key) for key in open_keys]
    assert sorted(queued(again.url, call.tokens["rita"])) == sorted([*acknowledged, *sent])
    again.end()
    assert sound(environ["CQ_DB_PATH"])


# A disk that is full


@contextmanager
def mounted(folder, options):
    """A file system in memory; who may not mount one cannot run this test."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(path):
    """Take all the room there is."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_a_full_disk_refuses_writes_until_there_is_room_and_answers_reads(
    start, call, environ, tmp_path
):
    unit = call.approve("served all along")["id"]
    with mounted(tmp_path / "disk", "size=6m") as disk:
        environ = copy(environ, disk)
        server = start(**environ).listening()
        url, carl, rita = server.url, call.keys["carl"], call.tokens["rita"]
        fill(disk / "ballast")
        done, refused = [], []
        for number in range(300):
            body = proposal(f"unit {number}", insight=long_insight(number))
            answer = send(url, "POST", f"{API}/knowledge", body, carl)
            assert answer.status in (201, 503), answer.body
            (done if answer.status == 201 else refused).append(answer)
            if len(refused) == 5:
                break
        assert len(refused) == 5
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
        writes = [
            (f"/knowledge/{unit}/confirmations", None, call.keys["cleo"]),
            (f"/knowledge/{unit}/flags", {"reason": "stale"}, carl),
            (f"/review/{unit}/retire", None, rita),
        ]
        for where, body, token in writes:
            answer = send(url, "POST", API + where, body, token)
            assert answer.status == 503, answer.body
            assert int(answer.headers["Retry-After"]) > 0
        for where, token in (
            ("/knowledge?domains=state", carl),
            ("/knowledge?q=lock", None),
            (f"/knowledge/{unit}", carl),
            ("/review/stats", rita),
            (f"/review/{unit}/history", rita),
        ):
            look(url, where, token)
        assert send(url, "GET", "/ready").status == 200
        stored = queued(url, rita)
        assert sorted(stored) == sorted(answer.json["id"] for answer in done)

        os.unlink(disk / "ballast")
        for where, body, token in writes:
            assert send(url, "POST", API + where, body, token).status in (200, 201)
        late = send(url, "POST", f"{API}/knowledge", proposal("with room again"), carl)
        assert late.status == 201, late.body
        assert sorted(queued(url, rita)) == sorted([*stored, late.json["id"]])
        assert not [line for line in server.log() if line["level"] == "ERROR"]
        server.end()
        assert sound(environ["CQ_DB_PATH"])
        with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database:
            for table in ("units", "unit_domains", "events"):
                column = "pk" if table == "units" else "unit_pk"
                counted = f"SELECT count(DISTINCT {column}) FROM {table}"
                assert database.execute(counted).fetchone() == (len(done) + 2,)


def test_a_start_on_a_full_disk_is_refused_in_a_line(start, environ, tmp_path):
    with mounted(tmp_path / "disk", "size=1m") as disk:
        fill(disk / "ballast")
        path = disk / "cq.db"
        line = start(**{**environ, "CQ_DB_PATH": str(path)}).refusal()
        assert str(path) in line
        assert remedied(line, "CQ_DB_PATH"), line


# A database that may not be written


def test_a_start_on_a_read_only_file_system_is_refused_in_a_line(start, environ, tmp_path):
    """Not even root writes there."""
    with mounted(tmp_path / "disk", "ro,size=1m") as disk:
        for path in (disk / "cq.db", disk / "below" / "cq.db"):
            line = start(**{**environ, "CQ_DB_PATH": str(path)}).refusal()
            assert str(path) in line
            assert "Read-only file system" in line
            assert remedied(line, "CQ_DB_PATH"), line


# Root may write anywhere; without its capabilities it is like anybody else.
POWERLESS = """
import ctypes
header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(header, none) == 0
"""


def test_a_database_that_becomes_read_only_refuses_writes_until_it_is_writable(
    start, call, environ, tmp_path
):
    unit = call.approve("served all along")["id"]
    folder = tmp_path / "here"
    folder.mkdir()
    environ = copy(environ, folder)
    server = start(POWERLESS, **environ).listening()
    url, carl, rita = server.url, call.keys["carl"], call.tokens["rita"]

    def at_once(how_many):
        """The answers to so many proposals at once, which need as many connections."""
        answers = []

        def write():
            body = proposal(rules.new_id())
            answers.append(send(url, "POST", f"{API}/knowledge", body, carl))

        threads = [threading.Thread(target=write) for _ in range(how_many)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    modes = {file: stat.S_IMODE(file.stat().st_mode) for file in (*folder.iterdir(), folder)}
    for file in modes:
        file.chmod(0o555 if file == folder else 0o444)
    answers = [answer for _ in range(6) for answer in at_once(8)]
    # Connections that were open before may still write.
    assert {answer.status for answer in answers} <= {201, 503}
    refused = [answer for answer in answers if answer.status == 503]
    assert refused
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    for where, token in (("/knowledge?domains=state", carl), ("/review/stats", rita)):
        look(url, where, token)
    look(url, f"/knowledge/{unit}", carl)

    for file, mode in modes.items():
        file.chmod(mode)
    after = [answer for _ in range(6) for answer in at_once(8)]
    assert {answer.status for answer in after} == {201}
    made = {answer.json["id"] for answer in (*answers, *after) if answer.status == 201}
    assert set(queued(url, rita)) == made
    assert not [line for line in server.log() if line["level"] == "ERROR"]
    server.end()
    assert sound(environ["CQ_DB_PATH"])


# A clock that is wrong


class Clock:
    """The clock of the servers that are started with its `variables`; `set("-1h")` sets it."""

    def __init__(self, library, path):
        self.path = path
        self.set("+0")
        self.variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, ahead):
        draft = self.path.with_suffix(".new")
        draft.write_text(ahead)
        draft.replace(self.path)


@pytest.fixture
def clock(tmp_path):
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("setting a server's clock needs Debian's package faketime")
    return Clock(found[0], tmp_path / "clock")


def told(server):
    """How far the last line of a log says that the clock is from the true one, in seconds."""
    send(server.url, "GET", "/health")
    written = server.log()[-1]["time"].replace("Z", "+00:00")
    return (datetime.fromisoformat(written) - datetime.now(UTC)).total_seconds()


def confirmations(url, unit, key):
    answer = send(url, "POST", f"{API}/knowledge/{unit}/confirmations", token=key)
    assert answer.status == 201, answer.body
    return answer.json["evidence"]["confirmations"]


def test_a_clock_that_is_set_back_an_hour_spoils_nothing(start, call, environ, clock):
    server = start(**environ, **clock.variables).listening()
    other = start(**environ).listening()
    url, carl, cleo = server.url, call.keys["carl"], call.keys["cleo"]
    token = log_in(url, "rita")
    unit = call.approve("voted on", ["voted"])["id"]
    assert confirmations(url, unit, cleo) == 2
    before = [call.propose(f"before {number}")["id"] for number in range(7)]
    first = look(url, "/review/queue?limit=3", token)

    clock.set("-1h")
    assert told(server) < -3000
    # Sessions of before and of now, here and where the clock is right.
    for each in (token, log_in(url, "rita")):
        for where in (url, other.url):
            assert look(where, "/users/me", each)["username"] == "rita"
    # The windows of votes and of repeats.
    assert confirmations(url, unit, cleo) == 2
    assert confirmations(url, unit, carl) == 3
    repeat = send(url, "POST", f"{API}/knowledge", proposal("before 6"), carl)
    assert (repeat.status, repeat.json["id"]) == (201, before[6])
    # The order of lists: a page goes on, whatever comes in before it.
    late = [
        send(url, "POST", f"{API}/knowledge", proposal(f"late {number}"), carl).json["id"]
        for number in range(3)
    ]
    seen, page = [item["knowledge_unit"]["id"] for item in first["items"]], first
    while page["next_cursor"]:
        page = look(url, f"/review/queue?limit=3&cursor={page['next_cursor']}", token)
        seen += [item["knowledge_unit"]["id"] for item in page["items"]]
    assert seen == before
    assert queued(url, token) == queued(other.url, token) == [*late, *before]
    # What changes is seen at once here, and soon there; what happened stays in its order.
    for id in (late[0], before[0]):
        decided = send(url, "POST", f"{API}/review/{id}/approve", {}, token)
        assert decided.status == 200, decided.body
        assert id in found(url, carl)
        assert soon(lambda id=id: id in found(other.url, carl))
        retired = send(other.url, "POST", f"{API}/review/{id}/retire", {}, token)
        assert retired.status == 200, retired.body
        assert soon(lambda id=id: id not in found(url, carl))
        events = look(url, f"/review/{id}/history", token)["events"]
        assert [event["type"] for event in events] == ["proposed", "approved", "retired"]
    assert not [line for line in server.log() if line["level"] == "ERROR"]


def found(url, key):
    return [unit["id"] for unit in look(url, "/knowledge?domains=state&limit=50", key)["data"]]


def test_a_clock_that_is_set_back_keeps_nobody_waiting_for_a_rate(start, environ, clock):
    server = start(**environ, **clock.variables, CQ_READ_RATE="1/second").listening()

    def read():
        return send(server.url, "GET", f"{API}/knowledge/stats").status

    assert soon(lambda: read() == 429)
    clock.set("-1h")
    assert told(server) < -3000
    assert eventually(lambda: read() == 200)


def test_a_clock_that_goes_a_day_ahead_and_is_set_right_spoils_nothing(start, call, environ, clock):
    server = start(**environ, **clock.variables).listening()
    url, carl, cleo = server.url, call.keys["carl"], call.keys["cleo"]
    token, ended = log_in(url, "rita"), log_in(url, "rita")
    unit = call.approve("voted on", ["voted"])["id"]
    before = [call.propose(f"before {number}")["id"] for number in range(3)]
    assert confirmations(url, unit, cleo) == 2
    assert send(url, "POST", f"{API}/auth/logout", token=ended).status == 200

    clock.set("+1d")
    assert told(server) > 80_000
    # A session lasts for 24 hours, and a vote counts again after as many.
    assert send(url, "GET", f"{API}/users/me", token=token).status == 401
    ahead, left = log_in(url, "rita"), log_in(url, "rita")
    assert send(url, "POST", f"{API}/auth/logout", token=left).status == 200
    assert confirmations(url, unit, cleo) == 3
    repeat = send(url, "POST", f"{API}/knowledge", proposal("before 2"), carl)
    assert (repeat.status, repeat.json["id"] in before) == (201, False)
    later = repeat.json["id"]

    clock.set("+0")
    assert abs(told(server)) < 60
    for each in (token, ahead):
        assert look(url, "/users/me", each)["username"] == "rita"
    for each in (ended, left):
        assert send(url, "GET", f"{API}/users/me", token=each).status == 401
    assert confirmations(url, unit, cleo) == 3
    assert confirmations(url, unit, carl) == 4
    late = send(url, "POST", f"{API}/knowledge", proposal("late"), carl).json["id"]
    assert queued(url, token) == [*before, late, later]
    for id in (later, late):
        assert send(url, "POST", f"{API}/review/{id}/approve", {}, token).status == 200
        assert id in found(url, carl)
    assert not [line for line in server.log() if line["level"] == "ERROR"]


# An old schema


def make_old(environ, revision, people):
    """Make the test's database anew as it was at a migration, with these people in it; gives the
    newest migration.
    """
    app = create_app(config.from_env(environ))
    with app.app_context():
        head = db.session.scalar(db.text("SELECT version_num FROM alembic_version"))
        hashes = {user.username: user.password_hash for user in User.page(100, 0)}
        db.session.remove()
        db.engine.dispose()
        for file in Path(environ["CQ_DB_PATH"]).parent.glob("cq.db*"):
            file.unlink()
        alembic.upgrade(app.extensions["migrate"].migrate.get_config(), revision)
        for name, role in people.items():
            db.session.execute(
                db.text(
                    "INSERT INTO users (username, password_hash, role, session_version, created_at)"
                    " VALUES (:name, :hash, :role, 1, '2025-01-01T00:00:00.000000Z')"
                ),
                {"name": name, "hash": hashes[name], "role": role},
            )
        db.session.commit()
        db.engine.dispose()
    return head


def test_two_that_start_at_once_on_an_old_schema_migrate_it_once(start, environ):
    """Each row that a migration adds is there once, and both servers work."""
    head = make_old(environ, "0001", {"ada": "admin", "carl": "contributor"})
    servers = [start(**environ) for _ in range(2)]
    one, other = (server.listening().url for server in servers)
    token = log_in(one)
    key = make_key(other, log_in(one, "carl"))
    unit = send(one, "POST", f"{API}/knowledge", proposal(), key)
    assert unit.status == 201, unit.body
    decided = send(other, "POST", f"{API}/review/{unit.json['id']}/approve", {}, token)
    assert decided.status == 200, decided.body
    for url in (one, other):
        assert soon(lambda url=url: found(url, key) == [unit.json["id"]])
    for server in servers:
        assert not [line for line in server.log() if line["level"] == "ERROR"]
        server.end()
    assert sound(environ["CQ_DB_PATH"])
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [(head,)]
        ids = [id for (id,) in database.execute("SELECT id FROM changes ORDER BY id")]
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) > 2
        assert database.execute("SELECT username FROM users").fetchall() == [("ada",), ("carl",)]
