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
from models import db

HERE = Path(__file__).parent


def init_app(app):
    flask_migrate.Migrate(app, db, directory=str(HERE), render_as_batch=True)


def apply(app):
    """Run what is missing, under a lock beside the database. Raises ConfigError."""
    with app.app_context():
        try:
            with _alone():
                tables = inspect(db.engine).get_table_names()
                if "knowledge_units" in tables and "units" not in tables:
                    raise ConfigError(
                        f"{db.engine.url.database} is the database of another cq server; "
                        "set CQ_DB_PATH to a file of its own."
                    )
                _upgrade()
        except CommandError as fault:
            raise ConfigError(
                f"{db.engine.url.database} was written by a newer cq ({fault}); update this one."
            ) from None
        except DatabaseError as fault:
            raise ConfigError(
                f"CQ_DB_PATH, CQ_DATABASE_URL: {db.engine.url.database} is not usable "
                f"({fault.orig}); name another file."
            ) from None
        finally:
            db.engine.dispose()


def _upgrade():
    command.upgrade(current_app.extensions["migrate"].migrate.get_config(), "head")


@contextmanager
def _alone():
    """Hold the lock file of an SQLite database: two versions starting at once take turns."""
    with open(f"{Path(db.engine.url.database.removeprefix('file:'))}.start", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
