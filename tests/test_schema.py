"""The migrations make what the models say, once, whoever starts first."""

import os
import stat
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

import config
from app import create_app
from migrations.env_options import ours
from models import db
from tests.cast import ROOT, SECRETS


def test_the_migrations_give_the_tables_of_the_models(app):
    with app.app_context(), db.engine.connect() as connection:
        options = {"include_object": ours, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, db.metadata) == []


@pytest.mark.only("sqlite", why="sqlite_master")
def test_starting_again_changes_nothing(make_app):
    def content(app):
        with app.app_context():
            rows = db.session.execute(text("SELECT sql FROM sqlite_master ORDER BY name")).all()
            db.session.rollback()
            return rows

    first = content(make_app())
    assert content(make_app()) == first


@pytest.mark.only("sqlite", why="FTS5")
def test_full_text_follows_every_change_of_a_unit(call):
    """SQLite's own check holds, and no row stands for words that a unit no longer has."""
    unit = call.approve("Words that are indexed", ["words"])
    call("POST", f"/knowledge/{unit['id']}/flags", {"reason": "stale"}, key="cleo")
    call("PATCH", f"/review/{unit['id']}", {"insight": {"summary": "Other ones"}}, user="rita")
    with call.app.app_context():
        db.session.execute(text("INSERT INTO units_fts (units_fts) VALUES ('integrity-check')"))
        rows = db.session.execute(text("SELECT rowid, summary FROM units_fts")).all()
        db.session.rollback()
    assert rows == [(1, "other ones")]


@pytest.mark.only("sqlite", why="files")
def test_a_new_database_is_its_owners_alone(tmp_path):
    create_app(config.from_env({"CQ_DB_PATH": str(tmp_path / "cq.db"), **SECRETS}))
    for file in tmp_path.glob("cq.db*"):
        if file.stat().st_size:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_three_first_starts_at_once_make_one_database(new_database):
    """The others wait at the lock and find all done."""
    variables = {**new_database(), **SECRETS}
    environ = {**os.environ, **variables}
    start = [sys.executable, "-c", "import app; app.create_app()"]
    starts = [
        subprocess.Popen(start, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [each.communicate(timeout=60)[1] for each in starts]
    assert [each.returncode for each in starts] == [0, 0, 0], said
    app = create_app(config.from_env(variables))
    with app.app_context():
        assert db.session.execute(text("SELECT count(*) FROM changes")).scalar() == 3
        db.session.remove()
        db.engine.dispose()


@pytest.mark.only("postgres", "vector", why="collations")
def test_text_sorts_by_its_bytes(app):
    """Whatever the locale of the database: ids, tags and times stand in one order everywhere."""
    with app.app_context():
        columns = db.session.execute(
            text(
                "SELECT table_name, column_name, collation_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND data_type IN ('character varying', 'text')"
                " AND table_name <> 'alembic_version'"
            )
        ).all()
        db.session.rollback()
    assert len(columns) > 40
    assert {collation for *_, collation in columns} == {"C"}, columns
