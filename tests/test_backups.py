"""Backups: one whole state whoever writes meanwhile, sealed; restored only where nobody is at work."""

import hashlib
import json
import shutil
import sqlite3
import stat
import threading
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command as alembic
from sqlalchemy.engine import make_url

import backups
from admin import Refused
from models import db
from tests.cast import PASSWORD, SECRETS, proposal
from tests.commands import at_terminal, flask, runner

pytestmark = pytest.mark.only("sqlite", why="a database in a file")


@pytest.fixture
def run(app):
    return runner(app)


def send(url, path, body=None, token=None):
    """(status, JSON) of a call below /api/v1."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{url}/api/v1{path}", data, headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return answer.status, json.load(answer)


def seal(path):
    """Close a file as a backup is closed."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with open(path, "ab") as file:
        file.write(f"cq backup 1 2026-12-01T02:34:00Z sha256 {digest}\n".encode())
    return path


def units(path):
    with closing(sqlite3.connect(path)) as database:
        return {id for (id,) in database.execute("SELECT id FROM units")}


def content(path):
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def kept_beside(path):
    """The databases that restores have set aside."""
    return sorted(path.parent.glob(f"{path.name}.before-restore-*"))


def elsewhere(environ, tmp_path):
    """The variables of a server with an empty database of its own."""
    folder = tmp_path / "other"
    folder.mkdir()
    return {**environ, "CQ_DB_PATH": str(folder / "cq.db")}


@pytest.mark.slow
def test_a_backup_under_load_has_all_that_was_acknowledged_before_it_began(
    serve, environ, template, tmp_path
):
    """Row 17: nobody's write is refused meanwhile, and the restored server passes its checks."""
    lines = tmp_path / "many.jsonl"
    with open(lines, "w") as file:
        for number in range(800):
            body = proposal(f"Number {number}")
            body["insight"]["detail"] = f"{number} " * 1500
            file.write(json.dumps(body) + "\n")
    assert flask(environ, "import", "--approve", lines)[0] == 0
    server = serve(CQ_WRITE_RATE="off")
    acknowledged, refused, enough, done = [], [], threading.Event(), threading.Event()

    def write(name):
        number = 0
        while not done.is_set():
            number += 1
            try:
                _, unit = send(
                    server.url, "/knowledge", proposal(f"{name} {number}"), template[1][name]
                )
                acknowledged.append(unit["id"])
                enough_now = len(acknowledged) >= 20
            except OSError as fault:
                refused.append(fault)
                return
            if enough_now:
                enough.set()

    writers = [threading.Thread(target=write, args=[name]) for name in ("carl", "cleo", "rita")]
    for writer in writers:
        writer.start()
    try:
        assert enough.wait(60)
        before = list(acknowledged)
        code, said, faults = flask(environ, "backup", tmp_path / "b.db")
        after = list(acknowledged)
    finally:
        done.set()
        for writer in writers:
            writer.join(60)
    assert (code, faults) == (0, "")
    assert not refused
    assert len(after) > len(before)
    server.stop()

    there = elsewhere(environ, tmp_path)
    code, said, faults = flask(there, "restore", tmp_path / "b.db")
    assert code == 0, faults
    assert "4 accounts" in said
    assert set(before) <= units(there["CQ_DB_PATH"])
    restored = serve(**there)
    token = send(restored.url, "/auth/login", {"username": "rita", "password": PASSWORD})[1][
        "token"
    ]
    queue = send(restored.url, "/review/queue?limit=0", token=token)[1]["total"]
    assert queue >= len(before)
    unit = send(restored.url, "/knowledge", proposal("After"), template[1]["carl"])[1]
    assert send(restored.url, f"/review/{unit['id']}", token=token)[0] == 200
    assert unit["id"] in units(there["CQ_DB_PATH"])
    with closing(sqlite3.connect(there["CQ_DB_PATH"])) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_backup_is_an_sqlite_file_for_its_owner_alone(run, call, environ, tmp_path):
    unit = call.propose()
    code, said = run("backup", tmp_path / "b.db")
    assert code == 0
    assert "1 units and 4 accounts" in said
    assert stat.S_IMODE((tmp_path / "b.db").stat().st_mode) == 0o600
    before = (tmp_path / "b.db").read_bytes()
    assert content(tmp_path / "b.db") == content(environ["CQ_DB_PATH"])
    assert units(tmp_path / "b.db") == {unit["id"]}
    assert (tmp_path / "b.db").read_bytes() == before
    assert not list(tmp_path.glob("b.db?*"))
    assert not list(tmp_path.glob(".cq-*"))


def test_a_backup_replaces_a_file_only_if_told_to(run, call, environ, tmp_path):
    kept = tmp_path / "b.db"
    kept.write_text("a letter")
    code, said = run("backup", kept)
    assert code == 1
    assert "there already" in said
    assert "--force" in said
    assert kept.read_text() == "a letter"
    assert run("backup", "--force", kept)[0] == 0
    assert units(kept) == set()
    for file in (environ["CQ_DB_PATH"], f"{environ['CQ_DB_PATH']}-wal"):
        code, said = run("backup", "--force", file)
        assert code == 1
        assert "name another file" in said
    assert call("GET", "/review/queue", user="rita").status_code == 200


def test_a_backup_that_cannot_be_written_is_one_line(run, tmp_path):
    for file in (tmp_path / "none" / "b.db", Path("/dev/full")):
        code, said = run("backup", "--force", file)
        assert code == 1
        assert said.startswith(f"Error: {file} cannot be written: ")
        assert said.count("\n") == 1
    assert run("backup", tmp_path)[0] == 2


def test_a_backup_says_that_the_pepper_has_to_be_kept_too(environ, tmp_path):
    there = {"CQ_DB_PATH": elsewhere(environ, tmp_path)["CQ_DB_PATH"]}
    code, said, _ = flask(there, "backup", tmp_path / "b.db")
    assert code == 0
    assert str(Path(there["CQ_DB_PATH"]).with_name("secrets.json")) in said


@pytest.mark.parametrize(
    "part", ["nothing", "a page", "half", "all but a byte", "all but the seal"]
)
def test_a_truncated_backup_is_refused(run, call, environ, tmp_path, part):
    call.propose()
    run("backup", tmp_path / "b.db")
    whole = (tmp_path / "b.db").read_bytes()
    left = {
        "nothing": 0,
        "a page": 4096,
        "half": len(whole) // 2,
        "all but a byte": len(whole) - 1,
        "all but the seal": len(whole) // 4096 * 4096,
    }[part]
    (tmp_path / "b.db").write_bytes(whole[:left])
    refuses(run, environ, tmp_path / "b.db", "cut off")


@pytest.mark.parametrize("place", [0, 17, 5000, 0.5, -200, -100])
def test_a_backup_with_a_flipped_bit_is_refused(run, call, environ, tmp_path, place):
    """Also where SQLite itself would notice nothing, such as in a text."""
    call.propose()
    run("backup", tmp_path / "b.db")
    whole = bytearray((tmp_path / "b.db").read_bytes())
    whole[int(place * len(whole)) if isinstance(place, float) else place] ^= 1
    (tmp_path / "b.db").write_bytes(whole)
    refuses(run, environ, tmp_path / "b.db", "cut off" if place == -100 else "checksum")


def test_a_flipped_bit_of_a_text_is_one_that_sqlite_would_not_notice(run, call, environ, tmp_path):
    call.propose("A text to be changed")
    run("backup", tmp_path / "b.db")
    whole = (tmp_path / "b.db").read_bytes().replace(b"A text to be", b"A text no be")
    (tmp_path / "b.db").write_bytes(whole)
    with closing(sqlite3.connect(tmp_path / "b.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    refuses(run, environ, tmp_path / "b.db", "checksum")


def refuses(run, environ, file, reason):
    """Restoring the file fails for this reason and changes nothing."""
    path = Path(environ["CQ_DB_PATH"])
    before = content(path)
    code, said = run("restore", file)
    assert code == 1
    assert said.startswith("Error: ")
    assert str(file) in said
    assert reason in said
    assert said.count("\n") == 1
    assert content(path) == before
    assert not kept_beside(path)
    assert not list(path.parent.glob(".cq-*"))


def test_what_is_sealed_and_no_database_of_this_cq_is_refused(run, environ, tmp_path):
    run("backup", tmp_path / "good.db")
    whole = (tmp_path / "good.db").read_bytes()
    whole = whole[: len(whole) // 4096 * 4096]
    (tmp_path / "letter.db").write_text("Dear reader, this is no database. " * 200)
    refuses(run, environ, seal(tmp_path / "letter.db"), "not a database")
    for name, statement, reason in (
        ("other.db", "DROP TABLE units", "no database of cq"),
        ("newer.db", "UPDATE alembic_version SET version_num = '9999'", "another version"),
        ("none.db", "DELETE FROM alembic_version", "another version"),
        ("loose.db", "DELETE FROM users", "belongs to no users"),
    ):
        (tmp_path / name).write_bytes(whole)
        with closing(sqlite3.connect(tmp_path / name)) as database, database:
            database.execute(statement)
        refuses(run, environ, seal(tmp_path / name), reason)
    (tmp_path / "torn.db").write_bytes(whole[: len(whole) - 8192])
    refuses(run, environ, seal(tmp_path / "torn.db"), "damaged")


@pytest.mark.slow
def test_restore_refuses_while_a_server_runs_and_keeps_the_old_database_beside(
    serve, environ, template, tmp_path
):
    """Row 17. The one set aside has what the server wrote last, and the new one nothing of it."""
    path = Path(environ["CQ_DB_PATH"])
    server = serve()
    first = send(server.url, "/knowledge", proposal("First"), template[1]["carl"])[1]["id"]
    assert flask(environ, "backup", tmp_path / "b.db")[0] == 0
    second = send(server.url, "/knowledge", proposal("Second"), template[1]["carl"])[1]["id"]
    code, _, faults = flask(environ, "restore", tmp_path / "b.db")
    assert code == 1
    assert f"{path} is in use; end the server" in faults
    assert send(server.url, "/knowledge", proposal("Third"), template[1]["carl"])[0] == 201
    # One that is killed leaves its log behind, which belongs to the old database alone.
    server.process.kill()
    server.process.wait()
    assert Path(f"{path}-wal").stat().st_size
    code, said, faults = flask(environ, "restore", tmp_path / "b.db")
    assert code == 0, faults
    (kept,) = kept_beside(path)
    assert str(kept) in said
    assert units(path) == {first}
    assert units(kept) >= {first, second}
    assert len(units(kept)) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = serve()
    assert send(again.url, "/knowledge", proposal("Fourth"), template[1]["carl"])[0] == 201


def test_restore_refuses_while_any_other_program_has_the_database_open(run, environ, tmp_path):
    path = Path(environ["CQ_DB_PATH"])
    run("backup", tmp_path / "b.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("SELECT count(*) FROM units").fetchall()
        code, _, faults = flask(environ, "restore", tmp_path / "b.db")
        assert code == 1
        assert "is in use" in faults
        assert not kept_beside(path)
        assert other.execute("SELECT count(*) FROM users").fetchone() == (4,)


@pytest.mark.slow
def test_restore_replaces_a_database_that_nothing_else_can_use(environ, tmp_path):
    """All other commands say what is wrong; what is left of the old one is kept."""
    path = Path(environ["CQ_DB_PATH"])
    assert flask(environ, "backup", tmp_path / "b.db")[0] == 0
    path.write_bytes(b"no database " * 1000)
    Path(f"{path}-wal").write_bytes(b"no log")
    for command in (["user", "list"], ["backup", tmp_path / "c.db"], ["export"]):
        code, said, faults = flask(environ, *command)
        assert (code, said) == (2, ""), command
        assert f"{path} is not usable" in faults
    code, _, faults = flask(environ, "restore", tmp_path / "b.db")
    assert code == 0, faults
    kept = [file for file in kept_beside(path) if not file.name.endswith("-wal")]
    assert [file.read_bytes() for file in kept] == [b"no database " * 1000]
    code, said, _ = flask(environ, "user", "list")
    assert code == 0
    assert said.count("\n") == 4


def test_a_backup_of_an_earlier_schema_is_brought_up_to_date(make_app, environ, tmp_path):
    there = elsewhere(environ, tmp_path)
    old = make_app(**there)
    with old.app_context():
        head = db.session.execute(db.text("SELECT version_num FROM alembic_version")).scalar()
        db.session.remove()
        db.engine.dispose()
        Path(there["CQ_DB_PATH"]).unlink()
        alembic.upgrade(old.extensions["migrate"].migrate.get_config(), "0001")
        db.session.execute(
            db.text(
                "INSERT INTO users (username, password_hash, role, session_version, created_at)"
                " VALUES ('olga', 'x', 'admin', 1, '2025-01-01T00:00:00.000000Z')"
            )
        )
        db.session.commit()
        db.engine.dispose()
    assert runner(old)("backup", tmp_path / "old.db")[0] == 0
    code, said, faults = flask(environ, "restore", tmp_path / "old.db")
    assert code == 0, faults
    assert "1 accounts" in said
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchone() == (head,)
        assert database.execute("SELECT username FROM users").fetchall() == [("olga",)]


def test_a_backup_can_be_restored_on_a_machine_that_has_none(environ, tmp_path):
    assert flask(environ, "backup", tmp_path / "b.db")[0] == 0
    shutil.move(tmp_path / "b.db", tmp_path / "moved")
    there = {"CQ_DB_PATH": str(tmp_path / "new" / "cq.db"), "CQ_EMBEDDER": "off", **SECRETS}
    code, said, faults = flask(there, "restore", tmp_path / "moved")
    assert code == 0, faults
    assert "4 accounts" in said
    assert content(there["CQ_DB_PATH"]) == content(tmp_path / "moved")


@pytest.mark.slow
def test_long_work_shows_how_far_it_is_at_a_terminal_only(environ, tmp_path):
    lines = tmp_path / "units.jsonl"
    lines.write_text("".join(json.dumps(proposal(f"Number {each}")) + "\n" for each in range(300)))
    for command, what in (
        (["import", "--approve", lines], "bytes"),
        (["export", tmp_path / "out.jsonl"], "units"),
        (["backup", tmp_path / "b.db"], "pages"),
    ):
        said = at_terminal(environ, *command)
        assert what in said, command
        assert "100%" in said, command
        code, _, faults = flask(environ, *command, *([] if "import" in command else ["--force"]))
        assert (code, faults) == (0, "")


def test_of_postgresql_its_own_tool_is_told_without_the_password():
    url = make_url("postgresql+psycopg://cq:hidden@db.example.org:5433/cq")
    with pytest.raises(Refused) as refused:
        backups._only_sqlite(url, ["pg_dump", "--file=a b"])
    assert refused.value.message.endswith(
        "pg_dump '--file=a b' --dbname=postgresql://cq@db.example.org:5433/cq"
    )
    assert refused.value.exit_code == 1
