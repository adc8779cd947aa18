"""How a connection to SQLite or PostgreSQL is set up, and how a writer is alone with either.

Readers see one moment from their first statement to their last, on both.
"""

import logging
import os
import sqlite3
from functools import cache

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DisconnectionError

log = logging.getLogger("cq.database")

# Waiting for a lock longer than this is refused with 503: clients give up after 5 s.
PATIENCE = 4.0
# PostgreSQL ends a statement that takes longer, and the turn of a process that was stopped in it.
SLOW, STOPPED = 15, 30
# The numbers of our advisory locks: whoever writes, whoever starts, whoever builds an index.
WRITING, STARTING, BUILDING = 0x6371_1001, 0x6371_1002, 0x6371_1003
# How far pgvector looks: among so many, and further where too many of them may not be shown.
NEAREST = "SET hnsw.ef_search = 120; SET hnsw.iterative_scan = strict_order"


def options(url, threads):
    """What the engine over this address is made with, for so many threads of a server."""
    common = {"pool_size": threads + 2, "pool_timeout": 4, "hide_parameters": True}
    if url.get_backend_name() == "sqlite":
        return common
    calls = {
        "connect_timeout": 4,
        "tcp_user_timeout": 10_000,
        "client_encoding": "utf8",
        "application_name": "cq",
    }
    return {
        **common,
        "pool_pre_ping": True,
        "isolation_level": "REPEATABLE READ",
        "connect_args": {name: value for name, value in calls.items() if name not in url.query},
    }


@event.listens_for(Engine, "connect")
def set_up(connection, record):
    if isinstance(connection, sqlite3.Connection):
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        record.info["only read"] = None if os.access(path, os.W_OK) else path
        _sqlite(connection)
    elif type(connection).__module__.startswith("psycopg"):
        _postgres(connection)


def _sqlite(connection):
    """Pragmas; the driver's own transactions are off, see `begin`.

    A folder on a network file system may refuse write-ahead logging: the rollback journal serves
    there, slower, and the log says so.
    """
    connection.isolation_level = None
    run = connection.execute
    run(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}")
    try:
        mode = run("PRAGMA journal_mode=WAL").fetchone()[0]
    except sqlite3.OperationalError as fault:
        if fault.sqlite_errorname.startswith("SQLITE_FULL"):
            raise
        mode = str(fault)
    if mode != "wal":
        run("PRAGMA journal_mode=DELETE")
        _warn_once("write-ahead logging does not work here (%s); readers wait for writers", mode)
    run("PRAGMA synchronous=NORMAL")
    run("PRAGMA foreign_keys=ON")


def _postgres(connection):
    connection.execute(
        f"SET lock_timeout = '{PATIENCE:g}s'; SET statement_timeout = '{SLOW}s'; {NEAREST}"
    )
    connection.commit()


@event.listens_for(Engine, "checkout")
def look_again(_, record, __):
    """SQLite opens a file that cannot be written for reading only, and stays with that: such a
    connection is made anew once the file is writable.
    """
    path = record.info.get("only read")
    if path is not None and os.access(path, os.W_OK):
        raise DisconnectionError


@event.listens_for(Engine, "handle_error")
def let_go(context):
    """Nor is one kept that refused to write. The others stay: the first of a process to open the
    file decides for all what they may do with the log.
    """
    name = getattr(context.original_exception, "sqlite_errorname", "")
    if name.startswith("SQLITE_READONLY"):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False


@cache
def _warn_once(text, *values):
    log.warning(text, *values)


@event.listens_for(Engine, "begin")
def begin(connection):
    if connection.dialect.name == "sqlite":
        if connection.info.pop("hurried", False):
            connection.exec_driver_sql(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}")
        connection.exec_driver_sql("BEGIN")


def alone(session, seconds):
    """Begin a transaction that writes, which is alone with the database at its first write at the
    latest. Other processes are waited for so long and no longer.

    PostgreSQL's takes a lock before it reads anything, and then sees all that was committed before
    its turn; SQLite's takes its lock at its first statement that writes.
    """
    if session.get_bind().dialect.name == "sqlite":
        connection = session.connection()
        connection.exec_driver_sql(f"PRAGMA busy_timeout={max(0, int(seconds * 1000))}")
        connection.info["hurried"] = True
        return
    connection = session.connection(execution_options={"isolation_level": "READ COMMITTED"})
    connection.exec_driver_sql(
        f"SELECT set_config('lock_timeout', '{max(1, int(seconds * 1000))}', true),"
        f" set_config('idle_in_transaction_session_timeout', '{STOPPED}s', true),"
        f" pg_advisory_xact_lock({WRITING})"
    )
