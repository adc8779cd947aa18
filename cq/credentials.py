"""Who is signed in to which node, in a file of one's own. API keys are never kept here."""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from cq.failures import CqError


class Unreadable(CqError):
    """The file of credentials cannot be read or written."""


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
        said = json.loads(file.read_text())
        return Session(
            said.get("addr") or "",
            said.get("username") or "",
            said["session_jwt"],
            said.get("session_expires_at") or "",
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as fault:
        raise Unreadable(f"{file} cannot be read; delete it and sign in again") from fault


def save(session, environ=os.environ):
    """Written whole, readable by nobody else from its first byte on. Raises Unreadable."""
    file = path(environ)
    said = {"session_jwt": session.token, "username": session.username, "addr": session.addr}
    if session.expires:
        said["session_expires_at"] = session.expires
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="credentials.tmp-", dir=file.parent)
        try:
            with os.fdopen(handle, "w") as writing:
                writing.write(json.dumps(said, indent=2))
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as fault:
        raise Unreadable(f"{file} cannot be written: {fault.strerror}") from fault


def delete(environ=os.environ):
    """Whether there was one. Raises Unreadable."""
    file = path(environ)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise Unreadable(f"{file} cannot be deleted: {fault.strerror}") from fault
    return True
