"""Bring the database to the newest schema, one process at a time."""

import fcntl
from contextlib import contextmanager
from pathlib import Path

import flask_migrate
from alembic import command
from alembic.util import CommandError
from flask import current_app
from sqlalchemy import inspect
from sqlalchemy.exc import DatabaseError

from config import ConfigError
from models import db, near
from models.connection import STARTING

HERE = Path(__file__).parent


def init_app(app):
    flask_migrate.Migrate(app, db, directory=str(HERE), render_as_batch=True)


def apply(app):
    """Run what is missing, under a lock of the database. Raises ConfigError."""
    with app.app_context():
        name = db.engine.url.database
        here = db.engine.dialect.name == "sqlite"
        try:
            with _alone():
                tables = inspect(db.engine).get_table_names()
                if "knowledge_units" in tables and "units" not in tables:
                    told = "CQ_DB_PATH to a file" if here else "CQ_DATABASE_URL to a database"
                    raise ConfigError(
                        f"{name} is the database of another cq server; set {told} of its own."
                    )
                _upgrade()
                near.prepare(db.engine)
        except CommandError as fault:
            raise ConfigError(
                f"{name} was written by a newer cq ({fault}); update this one."
            ) from None
        except DatabaseError as fault:
            variables = "CQ_DB_PATH, CQ_DATABASE_URL" if here else "CQ_DATABASE_URL"
            why = " ".join(str(fault.orig).split())
            remedy = "name another file" if here else "mend that, or set another one"
            raise ConfigError(f"{variables}: {name} is not usable ({why}); {remedy}.") from None
        finally:
            db.engine.dispose()


def _upgrade():
    command.upgrade(current_app.extensions["migrate"].migrate.get_config(), "head")


@contextmanager
def _alone():
    """Hold a lock: two versions starting at once take turns. It is a file beside SQLite's."""
    if db.engine.dialect.name == "sqlite":
        path = Path(db.engine.url.database.removeprefix("file:"))
        with open(f"{path}.start", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # Whoever is before may have a large table to change.
        connection.exec_driver_sql("SET lock_timeout = 0")
        connection.exec_driver_sql("SET statement_timeout = 0")
        if connection.exec_driver_sql("SHOW server_encoding").scalar() != "UTF8":
            raise ConfigError("CQ_DATABASE_URL: the database is not in UTF8; make one that is.")
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({STARTING})")
        yield
        # The end of the connection, which `apply` disposes of, would give it up as well.
        connection.exec_driver_sql(f"SELECT pg_advisory_unlock({STARTING})")
