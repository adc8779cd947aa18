"""A server on PostgreSQL: a lost connection, locks, several processes, and what they agree on."""

import threading
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

import config
from errors import passing
from models import PEOPLE, UNITS, VECTORS, Change, Unit, db, write
from models.connection import WRITING
from models.full_text import tsvector
from tests.cast import SECRETS, proposal
from tests.commands import runner
from tests.homes import database_of
from tests.test_serve import API, send, soon

pytestmark = pytest.mark.only("postgres", "vector", why="PostgreSQL")


@pytest.fixture
def run(home, database):
    """Run a statement in the test's database as its superuser."""
    return lambda statement: home.run(statement, database_of(database))


@pytest.fixture
def end_connections(home, database):
    """End the connections of all servers, as a restart of the database does."""
    name = database_of(database)
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    return lambda: home.run(ended)


@pytest.fixture
def shut(home, database):
    """Let nobody connect for as long as the block lasts."""
    name = database_of(database)

    @contextmanager
    def closed():
        home.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        home.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        yield
        home.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    return closed


def test_a_lost_connection_costs_no_answer(call, end_connections):
    """Each is looked at before it is used."""
    unit = call.approve("Still there", ["lost"])
    end_connections()
    assert call.found(domains="lost") == [unit["id"]]
    end_connections()
    call.propose("Another")


def test_a_connection_that_is_lost_in_the_middle_of_a_write_is_a_503_and_nothing_is_written(
    call, app, end_connections, monkeypatch
):
    whole = Unit.index_words

    def torn(unit):
        end_connections()
        whole(unit)

    monkeypatch.setattr(Unit, "index_words", torn)
    answer = call("POST", "/knowledge", proposal(), key="carl")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    monkeypatch.undo()
    with app.app_context():
        assert Unit.count() == 0
        db.session.rollback()
    call.propose()


def test_without_the_database_answers_are_503_until_it_is_back(make_app, make_call, shut):
    call = make_call()
    unit = call.approve("Still there", ["away"])
    with shut():
        for answer in (
            call("POST", "/knowledge", proposal(), key="cleo"),
            call("GET", "/review/queue", user="rita"),
            call("GET", "/knowledge?q=still", key="cleo"),
        ):
            assert answer.status_code == 503, answer.text
            assert answer.headers["Retry-After"] == "2"
        assert call.app.test_client().get("/health").status_code == 200
        assert call.app.test_client().get("/ready").status_code == 503
    assert call.found(domains="away") == [unit["id"]]
    call.propose("Another")
    assert call.app.test_client().get("/ready").status_code == 200


def test_who_cannot_have_a_turn_to_write_is_told_to_come_back_and_readers_are_not(
    call, home, database, monkeypatch
):
    import models.base

    unit = call.approve("Read meanwhile", ["held"])
    monkeypatch.setattr(models.base.turn, "__defaults__", (0.05,))
    with home.held(database):
        answer = call("POST", "/knowledge", proposal("Another"), key="cleo")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert call.found(domains="held") == [unit["id"]]
        assert call("GET", "/review/queue", user="rita").status_code == 200
    monkeypatch.undo()
    call.propose("Another", key="cleo")


def test_a_statement_that_takes_too_long_is_a_503(app, call, run):
    name = make_url(app.config["CQ_DATABASE"]).username
    run(f"ALTER ROLE {name} RESET ALL")
    with app.app_context():
        told = db.session.execute(text("SHOW statement_timeout")).scalar()
        assert told == "15s"
        assert db.session.execute(text("SHOW lock_timeout")).scalar() == "4s"
        db.session.rollback()

    @app.get("/slow")
    def slow():
        db.session.execute(text("SET LOCAL statement_timeout = 20"))
        db.session.execute(text("SELECT pg_sleep(5)"))

    answer = app.test_client().get("/slow")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_readers_see_one_moment_and_writers_all_that_was_before_their_turn(app, call):
    with app.app_context():
        before = Unit.count()
        told = []

        def elsewhere():
            told.append(call.propose("Meanwhile"))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert told
        assert Unit.count() == before
        write()
        assert Unit.count() == before + 1
        db.session.rollback()


def test_changes_commit_in_the_order_of_their_numbers(app, call):
    """Who has a number commits before anybody has the next one, of whatever kind."""
    with app.app_context():
        first = write(UNITS)
        second = []
        began = threading.Event()

        def other():
            with app.app_context():
                began.set()
                second.append((write(PEOPLE), write(VECTORS), write(UNITS)))
                db.session.commit()

        thread = threading.Thread(target=other)
        thread.start()
        assert began.wait(10)
        assert not second
        db.session.commit()
        thread.join()
        assert second[0][2] == first + 1
        assert Change.last(UNITS) == first + 1


def test_another_process_waits_for_the_turn_too(app, database, home):
    uri = home.uri.replace("/postgres?", f"/{database_of(database)}?")
    with app.app_context(), psycopg.connect(uri, autocommit=True) as other:
        take = f"SELECT pg_try_advisory_lock({WRITING})"
        write()
        assert other.execute(take).fetchone() == (False,)
        db.session.commit()
        assert other.execute(take).fetchone() == (True,)


def test_a_unit_approved_through_one_server_is_found_through_the_other(serve, call):
    one, other = (serve().url for _ in range(2))
    id = send(one, "POST", f"{API}/knowledge", proposal(domains=["seen"]), call.keys["carl"]).json[
        "id"
    ]
    answer = send(other, "POST", f"{API}/review/{id}/approve", {}, call.tokens["rita"])
    assert answer.status == 200

    def found(url):
        told = send(url, "GET", f"{API}/knowledge?domains=seen", token=call.keys["cleo"]).json
        return [unit["id"] for unit in told["data"]] == [id]

    assert found(other)
    assert soon(lambda: found(one))
    again = send(one, "POST", f"{API}/review/{id}/reject", {}, call.tokens["rita"])
    assert again.status == 409


def test_a_database_that_cannot_be_reached_is_one_line_without_the_password(tmp_path, home):
    from app import create_app

    url = "postgresql://cq:hunter2@localhost:1/cq"
    settings = config.from_env({"CQ_DATABASE_URL": url, "CQ_EMBEDDER": "off", **SECRETS})
    with pytest.raises(config.ConfigError) as refused:
        create_app(settings)
    told = refused.value.format_message()
    assert told.startswith("CQ_DATABASE_URL: cq is not usable (")
    assert "\n" not in told
    assert "hunter2" not in told


def test_a_database_that_is_not_in_utf8_is_refused(home, tmp_path):
    from app import create_app

    home.run("CREATE DATABASE cq_latin TEMPLATE template0 ENCODING SQL_ASCII OWNER cq")
    try:
        url = home.uri.replace("postgres:@/postgres?", "cq@/cq_latin?")
        with pytest.raises(config.ConfigError, match="not in UTF8"):
            create_app(config.from_env({"CQ_DATABASE_URL": url, "CQ_EMBEDDER": "off", **SECRETS}))
    finally:
        home.run("DROP DATABASE cq_latin WITH (FORCE)")


def test_words_with_accents_and_other_forms_are_found_as_in_sqlite(call):
    unit = call.approve("Résumés of locking threads in ａｓｙｎｃ code", ["words"])
    for question in ("resume", "RÉSUMÉ lock", "locked thread", "async"):
        assert call.found(q=question) == [unit["id"]], question
    assert call.found(q="resumption") == []


def test_a_word_that_more_units_have_by_now_than_there_were_ranks_all_the_same(call):
    """The units are counted once in a while, a new word when it is asked for."""
    call.approve("Frozen lock")
    with call.app.app_context():
        ranked = tsvector.ranked(["frozen"], False, {"frozen": 9}, (1, 3.0), 10)
        assert [score > 0 for _, score in ranked] == [True]


def test_what_a_server_on_sqlite_exports_comes_in_whole(make_app, app, call, tmp_path):
    """As docs/scale.md tells to move."""
    call.approve("Kept", ["moves"], extensions={"acme:team": "infra"})
    disputed = call.approve("Flagged", ["moves"], tier="public")
    call("POST", f"/knowledge/{disputed['id']}/flags", {"reason": "stale"}, key="cleo")
    call("PATCH", f"/review/{disputed['id']}", {"insight": {"action": "Better"}}, user="rita")
    call.propose("Pending", ["moves"])
    code, said = runner(app)("export", "--status", "all")
    assert code == 0
    (tmp_path / "units.jsonl").write_text(said)
    small = runner(make_app(CQ_DATABASE_URL="", CQ_DB_PATH=str(tmp_path / "small.db")))
    assert small("import", "--trust", tmp_path / "units.jsonl")[0] == 0
    there = small("export", "--status", "all")[1]
    (tmp_path / "again.jsonl").write_text(there)
    with app.app_context():
        for unit in db.session.scalars(db.select(Unit)).unique():
            db.session.delete(unit)
        db.session.commit()
    assert runner(app)("import", "--trust", tmp_path / "again.jsonl")[0] == 0
    assert runner(app)("export", "--status", "all")[1] == there == said
    assert call.found(q="flagged") == [disputed["id"]]


def test_backup_and_restore_tell_the_tools_of_postgresql(app, tmp_path):
    (tmp_path / "there").touch()
    for command, tool in (("backup", "pg_dump"), ("restore", "pg_restore")):
        code, said = runner(app)(command, tmp_path / "there")
        assert code == 1
        assert f"  {tool} " in said
        assert "--dbname=postgresql://cq@" in said


def test_a_process_that_rests_in_its_turn_loses_it(app, database, home):
    with app.app_context():
        write()
        told = db.session.execute(text("SHOW idle_in_transaction_session_timeout")).scalar()
        assert told == "30s"
        db.session.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
        with home.held(database):
            with pytest.raises(DBAPIError) as lost:
                db.session.execute(text("SELECT 1"))
            assert passing(lost.value)
        db.session.rollback()
        write()
        db.session.rollback()
