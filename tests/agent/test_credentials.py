"""Where a session is kept: the system's keyring, else a file; it is found in either."""

import json
import os
import stat
import sys
import time

import pytest

from cq import credentials
from cq.credentials import Session, Unreadable

SESSION = Session("http://n:3000", "carl", "head.body.sign", "2026-12-01T00:00:00Z")
# A keyring in a file, with the three calls of the package `keyring`.
KEYRING = """
import json, pathlib
FILE = pathlib.Path({file!r})
def _all():
    return json.loads(FILE.read_text()) if FILE.exists() else {{}}
def get_password(service, name):
    return _all().get(f"{{service}}/{{name}}")
def set_password(service, name, text):
    FILE.write_text(json.dumps({{**_all(), f"{{service}}/{{name}}": text}}))
def delete_password(service, name):
    kept = _all()
    del kept[f"{{service}}/{{name}}"]
    FILE.write_text(json.dumps(kept))
"""
NONE = "from nowhere_at_all import get_password\n"
FAILS = "def fail(*_): raise RuntimeError('no backend')\nget_password = set_password = delete_password = fail\n"
FORGETS = "def get_password(*_): return None\nset_password = delete_password = get_password\n"
HANGS = "import time\ndef hang(*_): time.sleep(60)\nget_password = set_password = delete_password = hang\n"


@pytest.fixture
def environ(tmp_path):
    return {"CQ_CONFIG_DIR": str(tmp_path / "config")}


@pytest.fixture
def keyring(tmp_path, monkeypatch):
    """`keyring(source)`: the package is this; without a source, a keyring that works."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def use(source=KEYRING):
        monkeypatch.delitem(sys.modules, "keyring", raising=False)
        (folder / "keyring.py").write_text(source.format(file=str(tmp_path / "ring.json")))
        # Two sources of one length in one second would be taken for the same.
        for compiled in folder.glob("__pycache__/*"):
            compiled.unlink()

    use(NONE)
    yield use
    sys.modules.pop("keyring", None)


@pytest.fixture
def ring(tmp_path):
    """What the keyring holds."""
    file = tmp_path / "ring.json"
    return lambda: json.loads(file.read_text()) if file.exists() else {}


def test_without_a_keyring_a_file_keeps_it(keyring, environ):
    assert credentials.load(environ) is None
    credentials.save(SESSION, environ)
    file = credentials.path(environ)
    assert json.loads(file.read_text()) == {
        "session_jwt": "head.body.sign",
        "session_expires_at": "2026-12-01T00:00:00Z",
        "username": "carl",
        "addr": "http://n:3000",
    }
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == ["credentials"]
    assert credentials.load(environ) == SESSION
    assert credentials.delete(environ)
    assert not credentials.delete(environ)
    assert credentials.load(environ) is None


def test_an_unknown_end_is_left_out(keyring, environ):
    credentials.save(SESSION._replace(expires=""), environ)
    assert "session_expires_at" not in json.loads(credentials.path(environ).read_text())
    assert credentials.load(environ).expires == ""


def test_a_keyring_keeps_it_under_upstreams_name(keyring, environ, ring):
    keyring()
    credentials.save(SESSION, environ)
    assert not credentials.path(environ).exists()
    kept = ring()["cq/default"]
    assert json.loads(kept)["session_jwt"] == "head.body.sign"
    assert " " not in kept
    assert credentials.load(environ) == SESSION
    assert credentials.delete(environ)
    assert ring() == {}
    assert not credentials.delete(environ)


@pytest.mark.parametrize("broken", [NONE, FAILS, FORGETS])
def test_a_keyring_that_does_not_work_is_as_if_there_were_none(keyring, environ, broken):
    keyring(broken)
    assert credentials.load(environ) is None
    credentials.save(SESSION, environ)
    assert credentials.path(environ).exists()
    assert credentials.load(environ) == SESSION
    assert credentials.delete(environ)


@pytest.mark.slow
def test_a_keyring_that_hangs_costs_seconds(keyring, environ):
    keyring(HANGS)
    began = time.monotonic()
    credentials.save(SESSION, environ)
    assert credentials.load(environ) == SESSION
    assert time.monotonic() - began < 15


def test_a_session_is_found_after_a_keyring_has_come(keyring, environ, ring):
    credentials.save(SESSION, environ)
    keyring()
    assert credentials.load(environ) == SESSION
    assert credentials.delete(environ)
    assert credentials.load(environ) is None


def test_the_later_of_two_sessions_counts(keyring, environ, ring):
    later = SESSION._replace(username="cleo")
    keyring()
    credentials.save(SESSION, environ)
    keyring(FAILS)
    credentials.save(later, environ)
    keyring()
    assert credentials.load(environ) == later
    # Both are forgotten at once.
    assert credentials.delete(environ)
    assert credentials.load(environ) is None
    assert ring() == {}
    # In the keyring, it is the only one.
    keyring(FAILS)
    credentials.save(SESSION, environ)
    keyring()
    credentials.save(later, environ)
    assert not credentials.path(environ).exists()
    assert credentials.load(environ) == later


def test_a_keyring_that_deletes_nothing_is_told(keyring, environ):
    keyring("def get_password(*_): return 'x'\n")
    with pytest.raises(Unreadable, match="keyring"):
        credentials.delete(environ)


DAMAGED = [
    "", "{", "[]", "null", "5", "{}", '{"username": "x"}', '{"session_jwt": ""}', '{"session_jwt": 5}',
    '{"session_jwt": "x", "addr": 5}', '{"session_jwt": "x", "username": ["x"]}',
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_file_is_told(keyring, environ, text):
    file = credentials.path(environ)
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(Unreadable, match="sign in again"):
        credentials.load(environ)
    assert credentials.delete(environ)


def test_a_file_that_is_no_text_is_told(keyring, environ):
    file = credentials.path(environ)
    file.parent.mkdir()
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(Unreadable):
        credentials.load(environ)


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_entry_of_the_keyring_is_told(keyring, environ, text):
    keyring(f"def get_password(*_): return {text!r}\n".replace("{", "{{").replace("}", "}}"))
    with pytest.raises(Unreadable, match="cq auth logout"):
        credentials.load(environ)


def test_a_folder_that_cannot_be_is_told(keyring, tmp_path):
    (tmp_path / "file").write_text("")
    environ = {"CQ_CONFIG_DIR": str(tmp_path / "file")}
    for call in (
        lambda: credentials.save(SESSION, environ),
        lambda: credentials.load(environ),
        lambda: credentials.delete(environ),
    ):
        with pytest.raises(Unreadable, match="file/credentials"):
            call()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"CQ_CONFIG_DIR": "/own", "XDG_CONFIG_HOME": "/x"}, "/own/credentials"),
        ({"XDG_CONFIG_HOME": "/x"}, "/x/cq/credentials"),
        ({"XDG_CONFIG_HOME": "x"}, os.path.expanduser("~/.config/cq/credentials")),
        ({}, os.path.expanduser("~/.config/cq/credentials")),
    ],
)
def test_the_file_is_upstreams(environ, expected):
    assert str(credentials.path(environ)) == expected
