"""The migrations make what the models say, once, whoever starts first."""

import os
import stat
import subprocess
import sys

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


def test_starting_again_changes_nothing(make_app):
    def content(app):
        with app.app_context():
            rows = db.session.execute(text("SELECT sql FROM sqlite_master ORDER BY name")).all()
            db.session.rollback()
            return rows

    first = content(make_app())
    assert content(make_app()) == first


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


def test_a_new_database_is_its_owners_alone(tmp_path):
    create_app(config.from_env({"CQ_DB_PATH": str(tmp_path / "cq.db"), **SECRETS}))
    for file in tmp_path.glob("cq.db*"):
        if file.stat().st_size:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_three_first_starts_at_once_make_one_database(tmp_path):
    """The others wait at the lock and find all done."""
    environ = {**os.environ, "CQ_DB_PATH": str(tmp_path / "cq.db"), **SECRETS}
    start = [sys.executable, "-c", "import app; app.create_app()"]
    starts = [
        subprocess.Popen(start, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [each.communicate(timeout=60)[1] for each in starts]
    assert [each.returncode for each in starts] == [0, 0, 0], said
    app = create_app(config.from_env({"CQ_DB_PATH": str(tmp_path / "cq.db"), **SECRETS}))
    with app.app_context():
        assert db.session.execute(text("SELECT count(*) FROM changes")).scalar() == 3
        db.engine.dispose()
