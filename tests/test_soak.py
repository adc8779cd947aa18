"""The soak for half a minute: agents, reviewers, kills, a backup."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from sqlalchemy import create_engine

from bench.soak.check import Rows, check
from bench.soak.ledger import read
from tests.cast import ROOT

# What a fault would leave behind, and which check sees it.
TAMPERED = {
    "a unit is lost": ("DELETE FROM units WHERE pk = 1", "proposals"),
    "a unit is doubled": (
        "UPDATE units SET idempotency_key = 'nobody' || pk WHERE pk = 1",
        "proposals",
    ),
    "a tag is lost": ("DELETE FROM unit_domains WHERE unit_pk = 1", "proposals"),
    "a decision is lost": (
        "DELETE FROM events WHERE id = (SELECT min(id) FROM events WHERE type = 'approved')",
        "decisions",
    ),
    "a decision is doubled": (
        "INSERT INTO events (unit_pk, type, by, channel, at, self_reviewed) SELECT unit_pk, type, by,"
        " channel, at, self_reviewed FROM events WHERE type = 'rejected' LIMIT 1",
        "decisions",
    ),
    "a decision is half done": (
        "UPDATE units SET status = 'pending' WHERE pk = (SELECT min(pk) FROM units WHERE status = 'rejected')",
        "decisions",
    ),
    "an edit is half done": (
        "DELETE FROM revisions WHERE rowid = (SELECT max(rowid) FROM revisions)",
        "edits",
    ),
    # Of a unit that took over no other's, where the same person's vote would stand for it.
    "a vote is lost": (
        "DELETE FROM votes WHERE id = (SELECT min(votes.id) FROM votes JOIN units ON pk = unit_pk"
        " WHERE kind = 'confirm' AND status = 'approved' AND units.id NOT IN"
        " (SELECT superseded_by FROM units WHERE superseded_by IS NOT NULL))",
        "votes",
    ),
    "a vote is doubled": (
        "INSERT INTO votes (unit_pk, user_id, kind, at) SELECT unit_pk, user_id, kind, at FROM votes LIMIT 1",
        "votes",
    ),
    "a flag is lost": ("DELETE FROM flags WHERE id = (SELECT min(id) FROM flags)", "votes"),
    "a confirmation is counted twice": (
        "UPDATE units SET confirmations = confirmations + 1 WHERE pk = "
        "(SELECT max(pk) FROM units WHERE status = 'approved')",
        "evidence",
    ),
    "confidence is off": (
        "UPDATE units SET confidence = 0.01 WHERE pk = (SELECT max(pk) FROM units WHERE status = 'pending')",
        "evidence",
    ),
}


@pytest.mark.slow
def test_half_a_minute_of_load_and_kills_loses_nothing_and_doubles_nothing(tmp_path):
    """And if it did, the soak would see it."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", "--seconds", "30", "--folder", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert said.endswith("Nothing lost, nothing doubled.\n")
    assert int(said.rpartition(" kills.")[0].split()[-1]) >= 2
    calls = {line.split("  ")[0]: line.split()[-5:] for line in said.split("\n\n")[0].splitlines()}
    for did in ("approve", "confirm", "edit", "flag", "propose", "query", "reject", "supersede"):
        assert int(calls[did][0]) > 0, said
    checks = {line.rsplit("  ", 1)[0].strip() for line in said.splitlines()}
    assert {"votes", "API", "integrity", "backup's votes", "backup's ready"} <= checks, said
    for name in TAMPERED:
        notices(tmp_path, name)


def notices(folder, name):
    statement, seen_by = TAMPERED[name]
    path = folder / "tampered.db"
    path.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(folder / "cq.db")) as kept,
        closing(sqlite3.connect(path)) as changed,
    ):
        kept.backup(changed)
        assert changed.execute(statement).rowcount > 0, name
        changed.commit()
    engine = create_engine(f"sqlite:///{path}")
    rows = Rows(engine)
    engine.dispose()
    entries = read(folder / "ledger.jsonl")
    assert check(rows, entries, len(entries))[seen_by], name
