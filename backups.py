"""`flask backup` and `flask restore`: all of an SQLite database in one sealed file, and back again.

A backup is a plain SQLite database that any tool opens. Behind its last page, where SQLite does not
look, stands a line with the time and the SHA-256 of all before it: the seal.
"""

import fcntl
import hashlib
import os
import re
import shlex
import sqlite3
import weakref
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click
from alembic.script import ScriptDirectory
from flask import current_app
from flask.cli import FlaskGroup, with_appcontext
from sqlalchemy.engine import URL

import files
import migrations
from admin import Refused, progress
from config import ConfigError
from models import db

SEAL = re.compile(rb"cq backup 1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) sha256 ([0-9a-f]{64})\n")
SEALED = len(b"cq backup 1 2026-12-01T02:34:00Z sha256 \n") + 64
# Pages between two steps of the bar.
STEP = 1024
CHUNK = 1 << 20
# What stands beside a database that was not closed: its newest writes may be in there.
BESIDE = ("-wal", "-shm", "-journal")


def init_app(app):
    app.cli.add_command(backup)
    app.cli.add_command(restore)
    _hold(app)


def _hold(app):
    """Let a restore know that this process uses the database, as long as the app is there.

    While a restore is at work, this waits.
    """
    with app.app_context():
        if db.engine.dialect.name != "sqlite":
            return
        handle = os.open(f"{_path()}.in-use", os.O_RDWR | os.O_CREAT, 0o600)
    weakref.finalize(app, os.close, handle)
    fcntl.flock(handle, fcntl.LOCK_SH)
    app.extensions["cq_in_use"] = handle


def leaves_restore(app, fault):
    """Whether the app was made for a command: of these only `restore` can go on, and does, where
    the database cannot be used.
    """
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(context.command, FlaskGroup):
        return False

    def refuse(**_):
        raise fault

    takes_all = {"ignore_unknown_options": True, "allow_extra_args": True}
    for name in app.cli.commands.keys() - {"restore"}:
        app.cli.add_command(click.Command(name, takes_all, refuse, add_help_option=False))
    return True


def _path():
    return Path(db.engine.url.database.removeprefix("file:"))


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@with_appcontext
def backup(file, force):
    """Write all of the database to FILE, also while a server runs."""
    _only_sqlite(db.engine.url, ["pg_dump", "--format=custom", f"--file={file}"])
    path = _path()
    if file.resolve() in (path, *(Path(f"{path}{end}") for end in (*BESIDE, ".in-use", ".start"))):
        raise Refused(f"{file} is the database itself; name another file.")
    try:
        with files.written(file, force) as draft:
            # No wait for a lock here is long: readers and writers share the log.
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as copy:
                _copy(source, copy)
            units, users = _checked(draft, "The backup")
            _seal(draft)
    except OSError as fault:
        raise Refused(f"{file} cannot be written: {fault.strerror}.") from None
    except sqlite3.Error as fault:
        raise Refused(f"No backup was made: {fault}.") from None
    click.echo(f"{file} holds {units} units and {users} accounts, and is checked.")
    secrets = path.with_name("secrets.json")
    if secrets.exists():
        click.echo(f"Keep {secrets}, too: without it, API keys in the backup do not work.")


def _copy(source, copy):
    """One state of the database, by SQLite's online backup; writers go on meanwhile."""
    source.isolation_level = copy.isolation_level = None
    # A transaction that stays open: else each write of a server would begin the copy anew.
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_master").fetchone()
    pages = source.execute("PRAGMA page_count").fetchone()[0]
    with progress(pages, "pages") as bar:
        source.backup(
            copy, pages=STEP, progress=lambda _, left, all: bar.update(all - left - bar.pos)
        )
    source.execute("ROLLBACK")
    # Of write-ahead logging, a copy without its log's files would be left; so it is one file.
    copy.execute("PRAGMA journal_mode=DELETE")


def _seal(draft):
    digest = _digest(draft, draft.stat().st_size)
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with open(draft, "ab") as file:
        file.write(f"cq backup 1 {time} sha256 {digest}\n".encode())


def _digest(path, size, into=None):
    """The SHA-256 of the first `size` bytes, which are written to a file, too, if one is given."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while size and (chunk := file.read(min(CHUNK, size))):
            digest.update(chunk)
            size -= len(chunk)
            if into:
                into.write(chunk)
    return digest.hexdigest()


@click.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@with_appcontext
def restore(file):
    """Put the database of a backup in place of the present one, which is kept beside.

    No server may run meanwhile. A backup of an earlier version is brought up to date.
    """
    url = db.engine.url
    _only_sqlite(url, ["pg_restore", "--clean", "--if-exists", "--single-transaction"], [str(file)])
    path = _path()
    db.session.remove()
    db.engine.dispose()
    _alone(path)
    try:
        with files.written(path, force=True) as draft:
            made = _unsealed(file, draft)
            units, users = _checked(draft, str(file))
            files.settle(draft)
            kept = _set_aside(path)
    except OSError as fault:
        raise Refused(f"{file} was not restored: {fault.strerror} ({fault.filename}).") from None
    try:
        migrations.apply(current_app)
    except ConfigError as fault:
        _put_back(path, kept)
        raise Refused(f"{file} was not restored: {fault.message}") from None
    click.echo(f"Restored {units} units and {users} accounts as they were at {made}.")
    click.echo(f"The database before is kept as {kept}.")


def _alone(path):
    """Be the only process that uses the database, until this one ends."""
    handle = current_app.extensions["cq_in_use"]
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(handle, fcntl.LOCK_SH)
        raise _in_use(path) from None


def _in_use(path):
    return Refused(f"{path} is in use; end the server and all that has it open, then try again.")


def _unsealed(file, draft):
    """Copy a backup without its seal, and give the time that the seal tells."""
    size = file.stat().st_size - SEALED
    with open(file, "rb") as sealed:
        sealed.seek(max(size, 0))
        seal = SEAL.fullmatch(sealed.read())
    if not seal:
        raise Refused(
            f"{file} does not end as a backup does: it is cut off, changed since, or was not made "
            "by flask backup. Nothing was restored."
        )
    with open(draft, "wb") as copy:
        digest = _digest(file, size, copy)
    if digest != seal[2].decode():
        raise Refused(
            f"{file} is damaged: its checksum (SHA-256) is not that of its content. "
            "Nothing was restored; take another backup."
        )
    return seal[1].decode()


def _checked(path, name):
    """(units, accounts) in a database that this version can use."""
    try:
        with closing(sqlite3.connect(path)) as database:
            fault = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if fault != "ok":
                raise Refused(f"{name} is damaged: {fault}.")
            if loose := database.execute("PRAGMA foreign_key_check").fetchone():
                raise Refused(f"{name} is damaged: a row of {loose[0]} belongs to no {loose[2]}.")
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            if not {"units", "users", "changes", "alembic_version"} <= tables:
                raise Refused(f"{name} is no database of cq.")
            versions = {row[0] for row in database.execute("SELECT * FROM alembic_version")}
            if not versions or not versions <= _known():
                raise Refused(
                    f"{name} was written by another version of cq (schema "
                    f"{', '.join(versions) or 'unknown'}); take the version that wrote it."
                )
            return database.execute(
                "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM users)"
            ).fetchone()
    except sqlite3.DatabaseError as fault:
        raise Refused(f"{name} is damaged: {fault}.") from None


def _known():
    folder = ScriptDirectory.from_config(current_app.extensions["migrate"].migrate.get_config())
    return {script.revision for script in folder.walk_revisions()}


def _set_aside(path):
    """Keep the database under another name beside, too; its own is free to be replaced.

    A log that stayed behind would be taken for the new database's. It is written into the old one,
    or goes with it where that is too damaged for that.
    """
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as old:
            old.execute("PRAGMA journal_mode=DELETE")
            old.execute("BEGIN EXCLUSIVE")
            old.execute("ROLLBACK")
    except sqlite3.DatabaseError as fault:
        if fault.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise _in_use(path) from None
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    kept = Path(f"{path}.before-restore-{time}")
    for end in BESIDE:
        if os.path.exists(f"{path}{end}"):
            os.rename(f"{path}{end}", f"{kept}{end}")
    try:
        os.link(path, kept)
    except OSError:
        # A file system without links: for a moment there is no database.
        os.rename(path, kept)
    return kept


def _put_back(path, kept):
    for end in ("", *BESIDE):
        Path(f"{path}{end}").unlink(missing_ok=True)
        if os.path.exists(f"{kept}{end}"):
            os.rename(f"{kept}{end}", f"{path}{end}")


def _only_sqlite(url, command, files=()):
    """Refuse for PostgreSQL, whose own tools do this; tell the command."""
    if url.get_backend_name() == "sqlite":
        return
    parts = (url.username, None, url.host, url.port, url.database, url.query)
    address = URL.create("postgresql", *parts).render_as_string()
    told = shlex.join([*command, f"--dbname={address}", *files])
    raise Refused(f"The database is PostgreSQL, whose own tools do this. Run:\n  {told}")
