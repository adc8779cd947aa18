"""Who is signed in to which node: in the system's keyring, else in a file. Keeps no API keys.

The keyring is used where the package `keyring` is installed and its store answers. Both places are
looked into, for a keyring may come and go: a session saved in one is deleted from the other.
"""

import contextlib
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from cq.failures import CqError

# Upstream's names of its entry.
ENTRY = ("cq", "default")
# A keyring that asks a person to unlock it may never answer; in seconds.
PATIENCE = 3


class Unreadable(CqError):
    """The kept session cannot be read, written or deleted."""


class Session(NamedTuple):
    """A person's session at a node; `expires` is a time of RFC 3339, or empty if unknown."""

    addr: str
    username: str
    token: str
    expires: str


def path(environ=os.environ):
    """The file: in CQ_CONFIG_DIR, XDG_CONFIG_HOME/cq or ~/.config/cq."""
    own, shared = environ.get("CQ_CONFIG_DIR", ""), environ.get("XDG_CONFIG_HOME", "")
    if own:
        folder = Path(own)
    else:
        base = Path(shared) if shared.startswith("/") else Path("~/.config").expanduser()
        folder = base / "cq"
    return folder / "credentials"


def load(environ=os.environ):
    """The `Session`, or None. Raises Unreadable."""
    file = path(environ)
    try:
        # The file comes first: it is there only if the keyring did not take the last session.
        return _read(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        _, kept = _keyring("get_password", *ENTRY)
    except (OSError, ValueError) as fault:
        raise Unreadable(f"{file} cannot be read; delete it and sign in again") from fault
    if kept is None:
        return None
    try:
        return _read(kept)
    except ValueError as fault:
        raise Unreadable(
            "the session in the system's keyring cannot be read; `cq auth logout` deletes it"
        ) from fault


def _read(text):
    """A `Session` of its JSON. Raises ValueError."""
    said = json.loads(text)
    names = ("addr", "username", "session_jwt", "session_expires_at")
    parts = [said.get(name) or "" for name in names] if isinstance(said, dict) else []
    if not parts or not parts[2] or not all(isinstance(part, str) for part in parts):
        raise ValueError("no session")
    return Session(*parts)


def save(session, environ=os.environ):
    """Kept for `load`; in a file, then written whole and readable by nobody else from its first
    byte on. Raises Unreadable.
    """
    said = {"session_jwt": session.token, "username": session.username, "addr": session.addr}
    if session.expires:
        said["session_expires_at"] = session.expires
    text = json.dumps(said, separators=(",", ":"))
    # There are keyrings that take everything and keep nothing.
    if _keyring("set_password", *ENTRY, text)[0] and _keyring("get_password", *ENTRY)[1] == text:
        _unlink(path(environ))
        return
    _write(path(environ), json.dumps(said, indent=2))


def _write(file, text):
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="credentials.tmp-", dir=file.parent)
        try:
            with os.fdopen(handle, "w") as writing:
                writing.write(text)
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as fault:
        raise Unreadable(f"{file} cannot be written: {fault.strerror}") from fault


def delete(environ=os.environ):
    """Whether there was one, in either place. Raises Unreadable."""
    there = _unlink(path(environ))
    if _keyring("get_password", *ENTRY)[1] is None:
        return there
    if not _keyring("delete_password", *ENTRY)[0]:
        raise Unreadable("the system's keyring does not delete the session: entry cq, default")
    return True


def _unlink(file):
    """Whether it was there. Raises Unreadable."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise Unreadable(f"{file} cannot be deleted: {fault.strerror}") from fault
    return True


def _keyring(verb, *given):
    """(whether it was done, what it gave). Not done without the package, a store, or an answer."""
    done = []

    def ask():
        try:
            import keyring

            done.append(getattr(keyring, verb)(*given))
        # Each system's store fails in its own way; the file takes its place.
        except Exception:
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return (True, done[0]) if done else (False, None)
