"""Signing in and keys, from the command line against a real server; lifetimes and the file."""

import os
import stat

import pytest

from cq import credentials, ttl
from cq.credentials import Session, Unreadable
from tests.agent.test_cli import cq as cq
from tests.cast import PASSWORD


@pytest.fixture
def node(serve):
    return serve().url


def test_a_person_signs_in_makes_a_key_and_an_agent_uses_it(cq, node):
    here = {"CQ_ADDR": node}
    done = cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", **here)
    assert (done.returncode, done.stdout) == (0, "Signed in as carl\n"), done.stderr
    status = cq("auth", "status", **here).stdout
    assert f"Server: {node}\nSigned in: carl\nExpires: 20" in status
    made = cq(
        "auth",
        "key",
        "create",
        "--name",
        "my agent",
        "--ttl",
        " 7D ",
        "--labels",
        "ci, laptop",
        **here,
    )
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    assert key.startswith("cqa.v1.")
    assert key not in made.stderr
    assert "ci,laptop" in made.stderr
    say = ["propose", "--summary", "s", "--detail", "d", "--action", "a", "--domain", "x"]
    done = cq(*say, CQ_API_KEY=key, **here)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row.split("\t") for row in cq("auth", "key", "list", **here).stdout.splitlines()]
    (mine,) = [row for row in rows if row[4] == "my agent"]
    assert mine[2] == "active"
    assert cq("auth", "key", "revoke", mine[0], **here).returncode == 0
    assert "does not accept" in cq(*say, CQ_API_KEY=key, **here).stderr
    assert "revoked" in cq("auth", "key", "list", **here).stdout
    assert cq("auth", "logout").stdout == "Signed out.\n"
    assert cq("auth", "logout").returncode == 0
    done = cq("auth", "status", **here)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("not signed in") == 1


def test_a_wrong_password_is_told_and_nothing_kept(cq, node, tmp_path):
    done = cq("auth", "login", "--user", "carl", "--password-stdin", input="wrong\n", CQ_ADDR=node)
    assert done.returncode == 1
    assert "name and password" in done.stderr
    assert not (tmp_path / ".config/cq/credentials").exists()


def test_a_session_is_for_its_node_alone(cq, node):
    cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", CQ_ADDR=node)
    done = cq("auth", "key", "list", CQ_ADDR="http://127.0.0.1:9")
    assert done.returncode == 1
    assert f"signed in to {node}" in done.stderr


def test_a_bad_lifetime_is_told_before_anything_is_sent(cq, node):
    cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", CQ_ADDR=node)
    done = cq("auth", "key", "create", "--name", "x", "--ttl", "1w", CQ_ADDR=node)
    assert done.returncode == 1
    assert "--ttl" in done.stderr


def test_the_file_is_its_owners_alone(tmp_path):
    environ = {"CQ_CONFIG_DIR": str(tmp_path / "a")}
    session = Session("http://n", "carl", "jwt", "2026-12-01T00:00:00Z")
    assert credentials.load(environ) is None
    credentials.save(session, environ)
    assert credentials.load(environ) == session
    file = credentials.path(environ)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700
    assert credentials.delete(environ)
    assert not credentials.delete(environ)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"username": "x"}'])
def test_a_damaged_file_is_told(tmp_path, text):
    (tmp_path / "credentials").write_text(text)
    with pytest.raises(Unreadable, match="sign in again"):
        credentials.load({"CQ_CONFIG_DIR": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", ("30d", 2592000)),
        (" 12H ", ("12h", 43200)),
        ("007d", ("007d", 604800)),
        ("31536000s", ("31536000s", 31536000)),
        ("525600m", ("525600m", 31536000)),
        ("8760h", ("8760h", 31536000)),
        ("365d", ("365d", 31536000)),
        (" " * 70 + "30d", ("30d", 2592000)),
    ],
)
def test_lifetimes_are_read(text, expected):
    assert ttl.parse(text) == expected


NONE = """1w 30 d d30 3.5d -1d 1d2h 3mo 5y 0d 000h 366d 8761h 525601m 31536001s 99999999999999999999d
    00000000000000001d ١d"""


@pytest.mark.parametrize("text", [*NONE.split(), "", " ", "1 d", "1d\n1d", "x" * 10_000])
def test_what_is_no_lifetime_is_refused_briefly(text):
    with pytest.raises(ValueError, match=r"lifetime|large|small") as refused:
        ttl.parse(text)
    assert len(str(refused.value)) < 256
