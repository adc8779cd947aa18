"""The units on an agent's machine: `open_store` gives a store of the place that is configured."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

from cq.store.failures import Busy, Closed, Duplicate, Missing, StoreError, Unusable

__all__ = [
    "Busy",
    "Closed",
    "Duplicate",
    "Missing",
    "StoreError",
    "Unusable",
    "open_store",
    "place",
]

# One letter is a drive. With a driver it is a scheme too, and as a path would show its password.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+")


def open_store(where=None, environ=os.environ):
    """A store: at a path or URL if one is given, else where the variables say. Raises Unusable."""
    found = place(where, environ)
    if isinstance(found, Path):
        from cq.store.sqlite import SqliteStore

        if "\0" in str(found):
            raise Unusable("the path of a store may not hold NUL")
        return SqliteStore(found)
    try:
        from cq.store.postgres import PostgresStore
    except ModuleNotFoundError as fault:
        if fault.name != "psycopg":
            raise
        raise Unusable("a store in PostgreSQL needs psycopg: pip install 'cq[postgres]'") from None
    return PostgresStore(found)


def place(where=None, environ=os.environ):
    """The path of the file, or a text, the URL of PostgreSQL: `where`, a path or URL, else
    CQ_LOCAL_DATABASE_URL, CQ_LOCAL_DB_PATH, XDG_DATA_HOME/cq/local.db, ~/.local/share/cq/local.db.
    Raises Unusable.
    """
    given = os.fspath(where) if where else ""
    given = given or environ.get("CQ_LOCAL_DATABASE_URL") or environ.get("CQ_LOCAL_DB_PATH")
    if not given:
        data = environ.get("XDG_DATA_HOME", "")
        base = Path(data) if data.startswith("/") else _at_home("~/.local/share")
        return base / "cq" / "local.db"
    scheme, colon, rest = given.partition(":")
    if not (colon and _SCHEME.fullmatch(scheme) and _is_url(scheme, rest)):
        return _at_home(given)
    if scheme.lower() in ("postgres", "postgresql"):
        return given
    if scheme.lower() != "sqlite":
        raise Unusable(f"a store of {scheme!r} is not known; sqlite:///path and postgresql:// are")
    # Three slashes and a path are absolute, and so are four.
    path = unquote(rest.partition("?")[0].removeprefix("//"))
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    if path.strip("/") == "":
        raise Unusable("CQ_LOCAL_DATABASE_URL names no file; sqlite:///path does")
    return Path(path)


def _at_home(path):
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise Unusable(f"{path}: no such home; CQ_LOCAL_DB_PATH sets another place") from None


def _is_url(scheme, rest):
    return rest.startswith("//") or scheme.lower() == "sqlite"
