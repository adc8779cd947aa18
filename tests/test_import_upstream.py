"""Adopting an upstream server's database: people, keys and units go on as they were, once."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import uuid
from contextlib import closing

import bcrypt
import pytest

from tests.cast import PASSWORD, SECRETS, proposal
from tests.commands import flask, runner
from tests.test_backups import send

OLD = "an old password of upstream"
HASH = bcrypt.hashpw(OLD.encode(), bcrypt.gensalt(4)).decode()
SCHEMA = """
CREATE TABLE knowledge_units (
    id TEXT NOT NULL PRIMARY KEY, data TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending',
    reviewed_by TEXT, reviewed_at TEXT, created_at TEXT, tier TEXT NOT NULL DEFAULT 'private'
);
CREATE TABLE knowledge_unit_domains (
    unit_id TEXT NOT NULL REFERENCES knowledge_units(id) ON DELETE CASCADE, domain TEXT NOT NULL,
    PRIMARY KEY (unit_id, domain)
);
CREATE INDEX idx_domains_domain ON knowledge_unit_domains (domain);
CREATE TABLE users (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
    name TEXT NOT NULL, labels TEXT NOT NULL DEFAULT '[]', key_prefix TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE, ttl TEXT NOT NULL, expires_at TEXT NOT NULL,
    created_at TEXT NOT NULL, last_used_at TEXT, revoked_at TEXT
);
CREATE INDEX idx_api_keys_user ON api_keys (user_id);
CREATE TABLE alembic_version (version_num TEXT NOT NULL PRIMARY KEY);
INSERT INTO alembic_version VALUES ('0001');
"""
TIME = "2026-05-04T09:12:33.120044"


class Upstream:
    """An upstream server's file, written as that server writes its rows."""

    def __init__(self, path):
        self.path = path
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.executescript(SCHEMA)

    def user(self, name, hashed=HASH, created_at="2026-05-01 08:00:00"):
        return self.database.execute(
            "INSERT INTO users (username, password_hash, created_at) VALUES (?, ?, ?)",
            (name, hashed, created_at),
        ).lastrowid

    def key(self, user, pepper=SECRETS["CQ_API_KEY_PEPPER"], **more):
        """The token of a new key."""
        id, secret = (
            uuid.uuid4().hex,
            base64.b32encode(secrets.token_bytes(32)).decode()[:52].lower(),
        )
        row = {
            "id": id,
            "user_id": user,
            "name": "ci-bot",
            "labels": '["ci"]',
            "key_prefix": secret[:8],
            "key_hash": hmac.new(pepper.encode(), secret.encode(), hashlib.sha256).hexdigest(),
            "ttl": "0090d",
            "expires_at": "2099-08-02T09:00:00.000123+00:00",
            "created_at": f"{TIME}+00:00",
            "last_used_at": None,
            "revoked_at": None,
            **more,
        }
        self.insert("api_keys", row)
        return f"cqa.v1.{id}.{secret}"

    def unit(
        self, number, status="approved", by="dana", data=None, flags=(), evidence=None, **more
    ):
        id = f"ku_{number:032x}"
        whole = {
            "id": id,
            "version": 1,
            **proposal(f"Number {number}"),
            "evidence": {
                "confidence": 0.5,
                "confirmations": 1,
                "first_observed": f"{TIME}Z",
                "last_confirmed": f"{TIME}Z",
                **(evidence or {}),
            },
            "tier": "private",
            "created_by": by,
            "flags": list(flags),
            **(data or {}),
        }
        reviewed = status != "pending"
        row = {
            "id": id,
            "data": json.dumps(whole),
            "status": status,
            "reviewed_by": "erik" if reviewed else None,
            "reviewed_at": "2026-05-05T10:01:02.345678+00:00" if reviewed else None,
            "created_at": f"{TIME}+00:00",
            "tier": "private",
            **more,
        }
        self.insert("knowledge_units", row)
        return id

    def insert(self, table, row):
        marks = ", ".join("?" * len(row))
        self.database.execute(f"INSERT INTO {table} VALUES ({marks})", list(row.values()))


@pytest.fixture
def upstream(tmp_path):
    (tmp_path / "upstream").mkdir()
    made = Upstream(tmp_path / "upstream" / "cq.db")
    yield made
    made.database.close()


@pytest.fixture
def run(app):
    return runner(app)


def told(call, id, user="rita"):
    return call("GET", f"/review/{id}", user=user).json


def test_people_keys_and_units_live_on(serve, upstream, environ, new_database):
    """Over HTTP, into an empty server: old passwords, old keys, statuses, votes, times."""
    dana, erik = upstream.user("dana"), upstream.user("erik", created_at=f"{TIME}+00:00")
    tokens = [upstream.key(dana), upstream.key(erik)]
    revoked = upstream.key(dana, revoked_at=f"{TIME}+00:00")
    expired = upstream.key(dana, expires_at=f"{TIME}+00:00")
    confirmed = upstream.unit(
        1,
        evidence={
            "confidence": 0.7999999999999999,
            "confirmations": 4,
            "last_confirmed": "2026-06-01T00:00:00Z",
        },
    )
    flagged = upstream.unit(
        2, evidence={"confidence": 0.19999999999999998}, data={"extensions": {"acme:team": "infra"}},
        flags=[{"reason": "stale", "timestamp": "2026-05-06T00:00:00Z"},
               {"reason": "incorrect", "timestamp": "2026-05-07T00:00:00.5Z"}],
    )  # fmt: skip
    rejected, pending = upstream.unit(3, "rejected", by="erik"), upstream.unit(4, "pending")
    upstream.database.close()
    before = {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns)
        for file in upstream.path.parent.iterdir()
    }

    there = {**environ, **new_database()}
    code, said, faults = flask(there, "import-upstream", upstream.path)
    assert code == 0, faults
    assert "dana is admin, as the first account of all is." in said
    assert "2 new accounts, 0 were here already." in said
    assert "4 new API keys, 0 were here already." in said
    assert "4 new units, 0 were here already." in said
    assert "CQ_API_KEY_PEPPER" in said

    url = serve(**there).url
    sessions = {
        name: send(url, "/auth/login", {"username": name, "password": OLD})[1]["token"]
        for name in ("dana", "erik")
    }
    erik = send(url, "/users/me", token=sessions["erik"])[1]
    assert (erik["username"], erik["role"]) == ("erik", "reviewer")
    assert erik["created_at"] == f"{TIME}+00:00"
    assert (
        send(url, "/users/me", token=sessions["dana"])[1]["created_at"]
        == "2026-05-01T08:00:00.000000+00:00"
    )
    keys = send(url, "/users/me/api-keys", token=sessions["dana"])[1]["data"]
    assert sorted((key["is_active"], key["ttl"], *key["labels"]) for key in keys) == [
        (False, "0090d", "ci"), (False, "0090d", "ci"), (True, "0090d", "ci"),
    ]  # fmt: skip
    for token in tokens:
        found = send(url, "/knowledge?domains=terraform", token=token)[1]["data"]
        assert [unit["id"] for unit in found] == [confirmed, flagged]
        assert send(url, "/knowledge", proposal(token[:12] + token[-3:]), token)[0] == 201
    for token in (revoked, expired):
        with pytest.raises(OSError, match="401"):
            send(url, "/knowledge", proposal("No"), token)

    item = send(url, f"/review/{confirmed}", token=sessions["erik"])[1]
    assert (item["status"], item["reviewed_by"]) == ("approved", "erik")
    assert item["reviewed_at"] == "2026-05-05T10:01:02.345678+00:00"
    assert item["created_at"] == f"{TIME}+00:00"
    assert item["knowledge_unit"]["evidence"] == {
        "confidence": 0.8, "confirmations": 4, "first_observed": f"{TIME}Z",
        "last_confirmed": "2026-06-01T00:00:00.000000Z",
    }  # fmt: skip
    history = send(url, f"/review/{confirmed}/history", token=sessions["erik"])[1]
    assert history["votes"] == {"confirm": 3}
    assert [(event["type"], event["by"]) for event in history["events"]] == [
        ("proposed", "dana"), ("approved", "erik"),
    ]  # fmt: skip
    item = send(url, f"/review/{flagged}", token=sessions["erik"])[1]
    assert item["disputed"]
    assert item["knowledge_unit"]["extensions"] == {"acme:team": "infra"}
    assert item["knowledge_unit"]["evidence"]["confidence"] == 0.2
    assert [(flag["reason"], flag["timestamp"]) for flag in item["flags"]] == [
        ("stale", "2026-05-06T00:00:00.000000Z"), ("incorrect", "2026-05-07T00:00:00.500000Z"),
    ]  # fmt: skip
    history = send(url, f"/review/{flagged}/history", token=sessions["erik"])[1]
    assert history["votes"] == {"stale": 1, "incorrect": 1}
    assert send(url, f"/review/{rejected}", token=sessions["erik"])[1]["status"] == "rejected"
    history = send(url, f"/review/{rejected}/history", token=sessions["erik"])[1]
    assert history["events"][1]["self_reviewed"] is True
    assert send(url, f"/review/{pending}", token=sessions["erik"])[1]["status"] == "pending"
    proposals = send(url, "/users/me/proposals", token=sessions["dana"])[1]["items"]
    assert {item["knowledge_unit"]["id"] for item in proposals} >= {confirmed, flagged, pending}

    after = {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns)
        for file in upstream.path.parent.iterdir()
    }
    assert after == before


def test_a_second_run_changes_nothing(run, upstream, stored):
    upstream.key(upstream.user("dana"))
    upstream.unit(1, flags=[{"reason": "stale", "timestamp": f"{TIME}Z"}])
    upstream.unit(2, "pending")
    assert run("import-upstream", upstream.path)[0] == 0
    before = stored()
    code, said = run("import-upstream", upstream.path)
    assert code == 0
    assert "0 new accounts, 1 were here already." in said
    assert "0 new API keys, 1 were here already." in said
    assert "0 new units, 2 were here already." in said
    assert stored() == before


def test_what_came_later_is_taken_in_and_what_was_done_here_stays(run, call, upstream):
    upstream.user("dana")
    id = upstream.unit(1, "pending")
    run("import-upstream", upstream.path)
    change = {"insight": {"summary": "Edited here", "detail": "d", "action": "a"}, "revision": 1}
    assert call("PATCH", f"/review/{id}", change, user="rita").status_code == 200
    call("POST", f"/review/{id}/approve", {"tier": "public"}, user="rita")
    upstream.unit(2)
    code, said = run("import-upstream", upstream.path)
    assert code == 0
    assert "1 new units, 1 were here already." in said
    item = told(call, id)
    assert (item["status"], item["knowledge_unit"]["tier"]) == ("approved", "public")
    assert item["knowledge_unit"]["insight"]["summary"] == "Edited here"


def test_an_account_that_is_here_by_name_keeps_its_password_and_role_and_gets_the_keys(
    run, call, upstream
):
    token = upstream.key(upstream.user("carl"))
    id = upstream.unit(1, by="carl")
    assert run("import-upstream", upstream.path)[0] == 0
    for password, status in ((PASSWORD, 200), (OLD, 401)):
        answer = call("POST", "/auth/login", {"username": "carl", "password": password})
        assert answer.status_code == status
    call.keys["old"] = token
    try:
        proposed = call.propose("By the old key", key="old")
    finally:
        del call.keys["old"]
    assert told(call, proposed["id"])["knowledge_unit"]["created_by"] == "carl"
    proposals = call("GET", "/users/me/proposals", user="carl").json["items"]
    assert {item["knowledge_unit"]["id"] for item in proposals} == {id, proposed["id"]}
    assert call("GET", "/users", user="carl").status_code == 403


def test_new_accounts_get_the_role_that_is_asked_for(run, call, upstream):
    upstream.user("dana")
    assert run("import-upstream", "--role", "contributor", upstream.path)[0] == 0
    people = call("GET", "/users", user="ada").json["data"]
    assert [each["role"] for each in people if each["username"] == "dana"] == ["contributor"]
    assert run("import-upstream", "--role", "owner", upstream.path)[0] == 2


def test_keys_of_another_pepper_work_once_it_is_named(make_call, upstream):
    token = upstream.key(upstream.user("dana"), pepper="upstream's own pepper")
    for more, status in (
        ({}, 401),
        ({"CQ_API_KEY_PEPPERS_OLD": "upstream's own pepper"}, 201),
        ({"CQ_API_KEY_PEPPER": "upstream's own pepper"}, 201),
    ):
        call = make_call(**more)
        assert runner(call.app)("import-upstream", upstream.path)[0] == 0
        answer = call(
            "POST", "/knowledge", proposal(), headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == status, more


def test_rows_that_cannot_be_read_are_told_and_left_out(run, call, upstream):
    dana = upstream.user("dana")
    for name in (" padded ", "a/b", "x" * 65, ""):
        upstream.user(name)
    broken = upstream.user("erik", hashed="plain text")
    upstream.user("slow", hashed=HASH.replace("$04$", "$31$"))
    upstream.user("when", created_at="long ago")
    good = upstream.unit(1)
    bad = {
        upstream.unit(2, data={"insight": {"summary": "s" * 501, "detail": "d", "action": "a"}}): "summary must be at most 500",
        upstream.unit(3, data={"domains": [" "]}): "domains: at least one",
        upstream.unit(4, status="deleted"): "status: Input should be",
        upstream.unit(5, evidence={"confidence": "high"}): "evidence.confidence",
        upstream.unit(6, reviewed_at="soon"): "reviewed_at: not a time",
        upstream.unit(7, data={"insight": {"summary": "s", "detail": "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3eF5", "action": "a"}}): "detail: secret",
    }  # fmt: skip
    for id, data, reason in (
        ("ku_short", "{}", "id: not a knowledge unit id"),
        ("ku_" + "e" * 32, "{", "data: is not JSON"),
        ("ku_" + "f" * 32, "[]", "data: is no knowledge unit"),
    ):
        upstream.unit(90)
        upstream.database.execute(
            "UPDATE knowledge_units SET id = ?, data = ? WHERE id = ?", (id, data, f"ku_{90:032x}")
        )
        bad[id] = reason
    torn = upstream.unit(8)
    upstream.database.execute(
        "UPDATE knowledge_units SET data = CAST(x'7bff' AS TEXT) WHERE id = ?", (torn,)
    )
    bad[torn] = "is not UTF-8 text"
    upstream.key(broken)
    upstream.key(dana, id="nothex")
    upstream.key(dana, expires_at="never")
    token = upstream.key(dana, labels="{", name="   ")
    code, said = run("import-upstream", upstream.path)
    assert code == 1
    rows = said.splitlines()
    for id, reason in bad.items():
        (row,) = [row for row in rows if id in row]
        assert row.startswith("knowledge_units ")
        assert reason in row
    assert sum(row.startswith("users ") for row in rows) == 7
    assert sum(row.startswith("api_keys ") for row in rows) == 3
    assert "Error: 20 rows could not be taken in; see above." in rows
    assert "ghp_" not in said
    assert HASH not in said
    assert "1 new accounts" in said
    assert "1 new API keys" in said
    assert "1 new units" in said
    assert told(call, good)["status"] == "approved"
    answer = call("POST", "/knowledge", proposal(), headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 201


def test_what_a_running_server_has_only_in_its_log_is_read_too(run, call, upstream):
    """Upstream writes ahead; its file has the newest rows only once it has ended."""
    id = upstream.unit(1)
    assert os.stat(f"{upstream.path}-wal").st_size
    before = upstream.path.read_bytes()
    assert run("import-upstream", upstream.path)[0] == 0
    assert told(call, id)["status"] == "approved"
    upstream.unit(2)
    assert upstream.path.read_bytes() == before


def test_a_file_from_before_reviews_is_read(run, call, tmp_path):
    """Without accounts, keys and the later columns."""
    path = tmp_path / "team.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE knowledge_units (id TEXT PRIMARY KEY, data TEXT NOT NULL)")
        whole = {**proposal("Old"), "tier": "team", "created_by": "dana"}
        database.execute(
            "INSERT INTO knowledge_units VALUES (?, ?)", ("ku_" + "a" * 32, json.dumps(whole))
        )
    code, said = run("import-upstream", path)
    assert code == 0, said
    item = told(call, "ku_" + "a" * 32)
    assert (item["status"], item["knowledge_unit"]["tier"]) == ("pending", "private")
    assert item["knowledge_unit"]["created_by"] == "dana"


def test_what_is_no_database_of_upstream_is_refused(run, upstream, environ, tmp_path):
    (tmp_path / "letter.db").write_text("Dear reader, this is no database. " * 200)
    (tmp_path / "empty.db").touch()
    for file, reason in (
        (tmp_path / "letter.db", "no whole SQLite database"),
        (tmp_path / "empty.db", "no knowledge_units"),
        *([(environ["CQ_DB_PATH"], "a database of this cq")] if "CQ_DB_PATH" in environ else []),
    ):
        code, said = run("import-upstream", file)
        assert code == 1
        assert said.startswith(f"Error: {file} is ")
        assert reason in said
        assert said.count("\n") == 1
    assert run("import-upstream", tmp_path / "none.db")[0] == 2


def test_a_file_that_is_damaged_is_told_and_what_is_whole_comes_in(run, call, upstream):
    """Pages of the later units are lost: accounts and keys are in, and the exit code is 1."""
    token = upstream.key(upstream.user("dana"))
    for number in range(400):
        upstream.unit(number)
    upstream.database.execute("PRAGMA journal_mode=DELETE")
    upstream.database.close()
    whole = upstream.path.read_bytes()
    cut = len(whole) // 8192 * 4096
    upstream.path.write_bytes(whole[:cut])
    code, said = run("import-upstream", upstream.path)
    assert code == 1
    assert said.startswith(f"Error: {upstream.path} is no whole SQLite database: ")
    upstream.path.write_bytes(whole[:cut] + b"\xff" * (len(whole) - cut))
    code, said = run("import-upstream", upstream.path)
    assert code == 1
    assert "cannot be read to its end: " in said
    assert "malformed" in said
    answer = call("POST", "/knowledge", proposal(), headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 201
