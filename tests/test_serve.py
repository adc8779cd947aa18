"""Real servers: what a start says and refuses, what they do in trouble, what they log, how they end."""

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

import config
from tests.cast import PASSWORD, ROOT, SECRETS, proposal

API = "/api/v1"
# Upstream's clients wait this long for an answer, in seconds.
CLIENT_PATIENCE = 5


class Answer(NamedTuple):
    status: int
    body: str
    headers: http.client.HTTPMessage

    @property
    def json(self):
        return json.loads(self.body)


def send(url, method, path, body=None, token=None, headers=None, timeout=30):
    """One call to the server at `url`, as the holder of a session's or an API key's token."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        body = json.dumps(body)
        headers["Content-Type"] = "application/json"
    place = urlsplit(url)
    with closing(http.client.HTTPConnection(place.hostname, place.port, timeout=timeout)) as line:
        line.request(method, path, body, headers)
        answer = line.getresponse()
        return Answer(answer.status, answer.read().decode(), answer.headers)


def soon(check):
    """Whether `check` comes true within a second."""
    end = time.monotonic() + 1
    while not (true := check()) and time.monotonic() < end:
        pass
    return true


def log_in(url, name="ada", password=PASSWORD):
    """The token of a session."""
    body = {"username": name, "password": password}
    answer = send(url, "POST", f"{API}/auth/login", body)
    assert answer.status == 200, answer.body
    return answer.json["token"]


class Server:
    """A server that was told to start; what it says on stderr is kept in a file."""

    def __init__(self, folder, environ, before=""):
        """`before` is Python that the process runs once everything is loaded."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        command = ["app.py"] if not before else ["-c", f"import app\n{before}\napp.serve()"]
        handle, name = tempfile.mkstemp(suffix=".log", dir=folder)
        self.errors = Path(name)
        self.said = []
        self.url = None
        with open(handle, "w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**kept, "CQ_PORT": "0", **environ},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def listening(self):
        """Wait until it serves."""
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith("cq listens on "):
                self.url = line.split()[-1]
                return self
        raise AssertionError(f"The server ended: {self.errors.read_text()}")

    def refusal(self):
        """Wait until it gives up, with exit code 2 and one line, which is returned."""
        for line in self.process.stdout:
            assert not line.startswith("cq listens on "), "It serves."
        code = self.process.wait(20)
        told = [line for line in self._lines() if not _is_info(line)]
        assert (code, len(told)) == (2, 1), told
        return told[0]

    def log(self):
        """What it logged: every line on stderr is a JSON object."""
        return [json.loads(line) for line in self._lines()]

    def _lines(self):
        with open(self.errors) as errors:
            return [line.rstrip("\n") for line in errors]

    def end(self):
        """Its exit code, once it was told to end."""
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(20)
        self.process.stdout.close()
        return code


def _is_info(line):
    return line.startswith("{") and json.loads(line)["level"] == "INFO"


@pytest.fixture
def start(tmp_path_factory):
    """Start servers with these variables and no others: `start(CQ_DB_PATH=...)`."""
    folder = tmp_path_factory.mktemp("stderr")
    servers = []

    def begin(before="", **environ):
        servers.append(Server(folder, environ, before))
        return servers[-1]

    yield begin
    for server in servers:
        server.end()


def remedied(line, name):
    """Whether a refusal names the variable, the fault and what to do now."""
    return name in line and re.search(r"; \w+ .+\.$", line) is not None


# What a start refuses

RUBBISH = "d0-not-repeat-this"
BAD = [
    ("CQ_PORT", "http"),
    ("CQ_PORT", "65536"),
    ("CQ_PORT", "-1"),
    ("CQ_PORT", "٣٠٠٠"),
    ("CQ_THREADS", "many"),
    ("CQ_THREADS", "0"),
    # Half the threads may hash passwords: with one thread nobody could sign in.
    ("CQ_THREADS", "1"),
    ("CQ_DB_PATH", "~nobody-has-this-name/cq.db"),
    ("CQ_DATABASE_URL", f"/srv/{RUBBISH}.db"),
    ("CQ_DATABASE_URL", f"mysql://cq:{RUBBISH}@db.example.org/cq"),
    ("CQ_DATABASE_URL", f"postgresql+asyncpg://cq:{RUBBISH}@db.example.org/cq"),
    ("CQ_DATABASE_URL", f"postgresql://cq:{RUBBISH}@db.example.org"),
    ("CQ_DATABASE_URL", "sqlite://"),
    ("CQ_DATABASE_URL", "sqlite:///:memory:"),
    ("CQ_JWT_SECRET", f"{RUBBISH}-short"),
    ("CQ_JWT_SECRET", "change-me-change-me-change-me-change-me"),
    ("CQ_JWT_SECRET", "Replace-this-with-thirty-two-random-bytes"),
    ("CQ_API_KEY_PEPPER", "change-me"),
    ("CQ_API_KEY_PEPPER", "CHANGE_ME_IN_PRODUCTION"),
    ("CQ_API_KEY_PEPPER", "changeme"),
    ("CQ_API_KEY_PEPPER", "secret"),
    ("CQ_API_KEY_PEPPER", "Password"),
    ("CQ_OPEN_READS", "maybe"),
    ("CQ_SELF_REVIEW", "2"),
    ("CQ_HUMAN_REVIEW", "-"),
    ("CQ_VOTE_WINDOW", "a day"),
    ("CQ_VOTE_WINDOW", "-1h"),
    ("CQ_VOTE_WINDOW", "24"),
    # Longer ago than any date.
    ("CQ_VOTE_WINDOW", "999999999d"),
    ("CQ_READ_RATE", "fast"),
    ("CQ_READ_RATE", "10/fortnight"),
    ("CQ_WRITE_RATE", "-3/minute"),
    ("CQ_WRITE_RATE", "none"),
    ("CQ_PUBLIC_URL", "cq.example.org"),
    ("CQ_PUBLIC_URL", "ftp://cq.example.org"),
    ("CQ_PUBLIC_URL", "https://"),
    ("CQ_PUBLIC_URL", "https://cq.example.org?a=b"),
    ("CQ_PUBLIC_URL", "http://[::1"),
    # Clients refuse a document whose address has such a port.
    ("CQ_PUBLIC_URL", "https://cq.example.org:99999"),
    ("CQ_NODE_NAME", "n" * 201),
    ("CQ_NODE_NAME", "named, but nobody is led here"),
    ("CQ_TRUSTED_PROXIES", "yes"),
    ("CQ_TRUSTED_PROXIES", "-1"),
    ("CQ_TRUSTED_PROXIES", "10"),
    ("CQ_METRICS_TOKEN", "d0-not"),
    ("CQ_METRICS_TOKEN", "change-me-change-me"),
    ("CQ_METRICS_TOKEN", f"{RUBBISH} {RUBBISH}"),
    ("CQ_LOG", "xml"),
    ("CQ_LOG_LEVEL", "loud"),
    ("CQ_STALE_AFTER", "half a year"),
    ("CQ_SAFETY", "strict"),
    ("CQ_QUERY_LOG", "some"),
    ("CQ_EMBEDDER", "hashed"),
    ("CQ_DEVELOPMENT", "maybe"),
]
# Only trying shows that these are bad.
TRIED = [
    ("CQ_HOST", "no such host"),
    ("CQ_HOST", "300.1.1.1"),
    ("CQ_DATABASE_URL", f"sqlite://cq:{RUBBISH}@db.example.org/cq.db"),
    ("CQ_DATABASE_URL", f"sqlite:////tmp/{RUBBISH}.db?timeout=soon"),
]
# No value of these is bad.
ANYTHING = {"CQ_API_KEY_PEPPERS_OLD"}


def complete(name, value):
    """`value` beside what it needs to be looked at."""
    return {**({"CQ_PUBLIC_URL": "https://x.org"} if len(value) > 200 else {}), name: value}


def repeated(name, value, line):
    """Whether a refusal shows what may be a secret; an address that it advises is none."""
    return RUBBISH in line or (name in config.SECRET - {"CQ_DATABASE_URL"} and value in line)


def test_every_variable_has_a_bad_value_here():
    assert {name for name, _ in BAD + TRIED} | ANYTHING == set(config.VARIABLES)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_one_line_with_the_remedy(name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(config.ConfigError) as refused:
        config.from_env({**SECRETS, **complete(name, value)})
    line = refused.value.format_message()
    assert refused.value.exit_code == 2
    assert "\n" not in line
    assert remedied(line, name), line
    assert not repeated(name, value, line)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [*dict(BAD).items(), *TRIED])
def test_a_server_with_a_bad_value_ends_with_exit_code_2(start, tmp_path, name, value):
    here = {"CQ_DB_PATH": str(tmp_path / "cq.db"), **SECRETS}
    line = start(**{**here, **complete(name, value)}).refusal()
    assert remedied(line, name), line
    assert not repeated(name, value, line)


def test_a_blank_value_counts_as_unset(tmp_path):
    blank = dict.fromkeys(set(config.VARIABLES) - {"CQ_DB_PATH"}, " \t")
    settings = config.from_env({**blank, "CQ_DB_PATH": str(tmp_path / "cq.db")})
    assert settings["CQ_PORT"] == 3000
    assert settings["CQ_API_KEY_PEPPERS_OLD"] == []
    assert len(settings["CQ_JWT_SECRET"]) >= 32


@pytest.mark.parametrize(
    "content",
    [
        "not JSON",
        "[]",
        "{}",
        '{"CQ_JWT_SECRET": "x"}',
        '{"CQ_JWT_SECRET": 1, "CQ_API_KEY_PEPPER": null}',
        '{"CQ_JWT_SECRET": "", "CQ_API_KEY_PEPPER": ""}',
        '{"CQ_JWT_SECRET": "short", "CQ_API_KEY_PEPPER": "short"}',
    ],
)
def test_a_secrets_file_without_good_secrets_is_refused(tmp_path, content):
    (tmp_path / "secrets.json").write_text(content)
    with pytest.raises(config.ConfigError) as refused:
        config.from_env({"CQ_DB_PATH": str(tmp_path / "cq.db")})
    assert str(tmp_path / "secrets.json") in refused.value.format_message()
    assert (tmp_path / "secrets.json").read_text() == content


def test_a_taken_port_is_one_line(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        here = {"CQ_DB_PATH": str(tmp_path / "cq.db"), **SECRETS}
        line = start(CQ_PORT=port, **here).refusal()
    assert port in line
    assert remedied(line, "CQ_PORT"), line


def test_a_folder_as_the_database_is_refused(tmp_path):
    for name, value in (("CQ_DB_PATH", tmp_path), ("CQ_DATABASE_URL", f"sqlite:///{tmp_path}")):
        with pytest.raises(config.ConfigError) as refused:
            config.from_env({**SECRETS, name: str(value)})
        line = refused.value.format_message()
        assert str(tmp_path) in line
        assert remedied(line, name), line
    assert not list(tmp_path.iterdir())


def test_a_path_through_a_link_that_leads_nowhere_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(config.ConfigError) as refused:
        config.from_env({**SECRETS, "CQ_DB_PATH": str(tmp_path / "loop" / "cq.db")})
    assert remedied(refused.value.format_message(), "CQ_DB_PATH")


# Root writes anywhere, so the server gives root up before it looks at its variables.
UNPRIVILEGED = """
import os
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


@contextmanager
def shared_folder():
    """A folder that everybody reads and only its owner writes, as are those above it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield folder
        folder.chmod(0o755)


@pytest.mark.slow
def test_a_folder_or_file_that_cannot_be_written_is_refused(start):
    with shared_folder() as folder:
        kept = folder / "kept.db"
        kept.touch()
        for path, mode in ((folder / "cq.db", 0o555), (folder / "below" / "cq.db", 0o555)):
            folder.chmod(mode)
            line = start(UNPRIVILEGED, CQ_DB_PATH=str(path), **SECRETS).refusal()
            assert str(path) in line
            assert "Permission denied" in line
            assert remedied(line, "CQ_DB_PATH"), line
        folder.chmod(0o777)
        kept.chmod(0o444)
        line = start(UNPRIVILEGED, CQ_DB_PATH=str(kept), **SECRETS).refusal()
        assert str(kept) in line
        assert remedied(line, "CQ_DB_PATH"), line
        assert list(folder.iterdir()) == [kept]


def tables(path):
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


@pytest.mark.slow
def test_a_file_that_is_no_database_is_refused_and_left_alone(start, tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, this is no database. " * 200)
    before = path.read_bytes()
    line = start(CQ_DB_PATH=str(path), **SECRETS).refusal()
    assert str(path) in line
    assert remedied(line, "CQ_DB_PATH"), line
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_url_that_the_database_cannot_follow_is_refused(start, tmp_path):
    url = f"sqlite:///file:{tmp_path}/cq.db?vfs=none-of-these&uri=true"
    line = start(CQ_DATABASE_URL=url, **SECRETS).refusal()
    assert "none-of-these" in line
    assert remedied(line, "CQ_DATABASE_URL"), line


@pytest.mark.slow
def test_the_database_of_another_cq_is_refused_and_gets_no_table(start, tmp_path):
    path = tmp_path / "cq.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE knowledge_units (id TEXT PRIMARY KEY, data TEXT NOT NULL)")
    before = tables(path)
    line = start(CQ_DB_PATH=str(path), **SECRETS).refusal()
    assert str(path) in line
    assert "another cq" in line
    assert remedied(line, "CQ_DB_PATH"), line
    assert tables(path) == before


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_a_database_of_a_newer_version_is_refused(start, environ):
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    line = start(**environ).refusal()
    assert environ["CQ_DB_PATH"] in line
    assert "newer" in line
    assert "update this one" in line


# What a start says and makes


def operate(environ, *command, typed=""):
    """Run `flask ...` as an operator does, with these variables and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
    done = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", *command],
        cwd=ROOT,
        env={**kept, **environ},
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_admin(environ):
    operate(environ, "user", "add", "ada", "--password-stdin", typed=f"{PASSWORD}\n")


def make_key(url, token):
    body = {"name": "agent", "ttl": "1d"}
    answer = send(url, "POST", f"{API}/users/me/api-keys", body, token)
    assert answer.status == 201, answer.body
    return answer.json["token"]


@pytest.mark.slow
def test_a_first_start_says_what_it_made_and_the_next_one_uses_it(start, tmp_path):
    path, secrets = tmp_path / "new" / "cq.db", tmp_path / "new" / "secrets.json"
    first = start(CQ_DB_PATH=str(path)).listening()
    assert first.said[:2] == [
        f"cq made the database {path}",
        f"cq made random secrets in {secrets}",
    ]
    assert "user add" in "\n".join(first.said)
    made = json.loads(secrets.read_text())
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert not any(secret in first.errors.read_text() for secret in made.values())
    assert sorted(made) == ["CQ_API_KEY_PEPPER", "CQ_JWT_SECRET"]
    assert made["CQ_API_KEY_PEPPER"] != made["CQ_JWT_SECRET"]
    make_admin({"CQ_DB_PATH": str(path)})
    token = log_in(first.url)
    key = make_key(first.url, token)
    first.end()

    second = start(CQ_DB_PATH=str(path)).listening()
    assert len(second.said) == 1
    assert json.loads(secrets.read_text()) == made
    assert send(second.url, "GET", f"{API}/users/me", token=token).status == 200
    assert send(second.url, "POST", f"{API}/knowledge", proposal(), key).status == 201


@pytest.mark.slow
def test_first_starts_at_once_all_serve_and_agree_on_the_secrets(start, tmp_path):
    here = {"CQ_DB_PATH": str(tmp_path / "cq.db")}
    servers = [start(**here) for _ in range(3)]
    urls = [server.listening().url for server in servers]
    said = "\n".join(line for server in servers for line in server.said)
    assert said.count("random secrets") == 1
    make_admin(here)
    token = log_in(urls[0])
    key = make_key(urls[1], token)
    for url in urls:
        assert send(url, "GET", f"{API}/users/me", token=token).status == 200
        assert send(url, "POST", f"{API}/knowledge", proposal(), key).status == 201
    assert {path.name for path in tmp_path.iterdir()} >= {"cq.db", "secrets.json"}
    assert not list(tmp_path.glob("tmp*"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "*"])
@pytest.mark.slow
def test_port_0_prints_the_port_that_answers(start, environ, host):
    server = start(**{**environ, "CQ_HOST": host}).listening()
    port = urlsplit(server.url).port
    assert port > 0
    assert send(f"http://127.0.0.1:{port}", "GET", "/health").status == 200


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CQ_DB_PATH", "CQ_DATABASE_URL"])
def test_a_path_with_any_characters_is_that_very_path(start, tmp_path, name):
    """Row 50 of the troublesome inputs."""
    path = tmp_path / "a %20 b #1 ?x=1& ä 日本" / "cq %41; 'né'.db"
    value = str(path) if name == "CQ_DB_PATH" else f"sqlite:///{quote(str(path))}"
    server = start(**{name: value}).listening()
    assert f"cq made the database {path}" in server.said
    assert send(server.url, "GET", "/ready").status == 200
    server.end()
    assert "units" in tables(path)
    assert (path.parent / "secrets.json").exists()
    assert [found.name for found in tmp_path.iterdir()] == [path.parent.name]


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_without_write_ahead_logging_the_rollback_journal_serves_and_the_log_warns(start, environ):
    """Row 18: a file system that cannot share memory, as SQLite's dot-file locking does."""
    path = environ.pop("CQ_DB_PATH")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
    url = f"sqlite:///file:{path}?vfs=unix-dotfile&uri=true"
    server = start(**environ, CQ_DATABASE_URL=url).listening()
    token = log_in(server.url)
    key = make_key(server.url, token)
    unit = send(server.url, "POST", f"{API}/knowledge", proposal(), key).json
    for asked in ("POST", f"/review/{unit['id']}/approve"), ("GET", "/review/queue"):
        answer = send(server.url, asked[0], API + asked[1], token=token)
        assert answer.status == 200, answer.body
    for _ in range(20):
        found = send(server.url, "GET", f"{API}/knowledge?domains=state&q=lock", token=key)
        assert found.status == 200, found.body
        assert [one["id"] for one in found.json["data"]] == [unit["id"]]
    warnings = [line for line in server.log() if line["level"] == "WARNING"]
    assert any("write-ahead logging" in line["message"] for line in warnings)
    server.end()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# What a node says of itself


@pytest.mark.slow
def test_a_node_says_that_it_lives_and_is_ready_whatever_the_rates(start, environ):
    rates = {"CQ_READ_RATE": "1/hour", "CQ_WRITE_RATE": "1/hour"}
    server = start(**environ, **rates).listening()
    for _ in range(3):
        for path in ("/health", f"{API}/health"):
            answer = send(server.url, "GET", path)
            assert (answer.status, answer.json) == (200, {"status": "ok"})
        answer = send(server.url, "GET", "/ready")
        assert (answer.status, answer.json["status"]) == (200, "ok")
        answer = send(server.url, "GET", "/.well-known/cq-node.json")
        assert (answer.status, answer.json) == (404, {"detail": "Not Found"})
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.slow
def test_a_node_with_a_public_address_leads_clients_there(start, environ):
    more = {"CQ_PUBLIC_URL": "https://cq.example.org/team/", "CQ_NODE_NAME": "Ünit 1"}
    server = start(**environ, **more).listening()
    answer = send(server.url, "GET", "/.well-known/cq-node.json")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json == {
        "version": 1,
        "api_base_url": "https://cq.example.org/team/api/v1",
        "api_version": "v1",
        "node_name": "Ünit 1",
    }


def test_a_node_without_a_name_leaves_it_out(make_call):
    client = make_call(CQ_PUBLIC_URL="http://127.0.0.1:3000").app.test_client()
    assert client.get("/.well-known/cq-node.json").json == {
        "version": 1,
        "api_base_url": "http://127.0.0.1:3000/api/v1",
        "api_version": "v1",
    }


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_a_node_whose_database_is_gone_lives_but_is_not_ready(start, environ):
    server = start(**environ).listening()
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database:
        database.execute("ALTER TABLE changes RENAME TO lost")
    assert soon(lambda: send(server.url, "GET", "/ready").status in (500, 503))
    assert send(server.url, "GET", "/health").status == 200


# Whoever runs the tests in the background may have had this one ignored.
INTERRUPTED = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "before"),
    [(signal.SIGTERM, ""), (signal.SIGINT, INTERRUPTED)],
    ids=["SIGTERM", "SIGINT"],
)
def test_a_signal_ends_a_server_with_exit_code_0(start, environ, number, before):
    server = start(before, **environ).listening()
    with closing(socket.create_connection(("127.0.0.1", urlsplit(server.url).port))):
        assert send(server.url, "GET", "/health").status == 200
        server.process.send_signal(number)
        assert server.process.wait(20) == 0
    assert not [line for line in server.log() if line["level"] != "INFO"]


# A database that cannot be written


def content(path):
    """All rows, but for the times at which keys were used."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE api_keys SET last_used_at = NULL")
        return list(database.iterdump())


@contextmanager
def locked(path):
    """Hold the database as another writer does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def run(target, *args, **kwargs):
    """A running thread and the list that its answer will stand in."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(target(*args, **kwargs)))
    thread.start()
    return thread, answers


@pytest.fixture
def busy(call, serve, environ):
    """(url, path of the database, id of an approved unit): a server whose keys were used just now."""
    unit = call.approve()["id"]
    url = serve().url
    for name in ("carl", "cleo"):
        # The use of a key is noted once a minute, which is a write.
        send(url, "POST", f"{API}/knowledge/ku_{'0' * 32}/confirmations", token=call.keys[name])
    return url, environ["CQ_DB_PATH"], unit


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_a_locked_database_refuses_writes_for_now_while_reads_go_on(call, busy):
    url, path, unit = busy
    carl, cleo, rita = call.keys["carl"], call.keys["cleo"], call.tokens["rita"]
    writes = [
        ("/knowledge", proposal("another one"), carl),
        (f"/knowledge/{unit}/confirmations", None, cleo),
        (f"/knowledge/{unit}/flags", {"reason": "stale"}, carl),
        (f"/review/{unit}/retire", None, rita),
        ("/users/me/api-keys", {"name": "more", "ttl": "1d"}, rita),
    ]
    reads = [
        ("/knowledge?domains=state", cleo),
        ("/knowledge?q=lock", None),
        (f"/knowledge/{unit}", carl),
        ("/knowledge/stats", carl),
        ("/review/queue", rita),
        ("/review/stats", rita),
        ("/users/me/api-keys", rita),
    ]
    before = content(path)
    with locked(path):
        waiting = [run(send, url, "POST", API + path, *rest) for path, *rest in writes]
        for read, token in reads:
            assert send(url, "GET", API + read, token=token).status == 200
        login = {"username": "cleo", "password": PASSWORD}
        assert send(url, "POST", f"{API}/auth/login", login).status == 200
        for thread, answers in waiting:
            thread.join()
            (answer,) = answers
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert "try again" in answer.json["detail"]
    assert content(path) == before
    for path, body, token in writes:
        assert send(url, "POST", API + path, body, token).status in (200, 201)


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_a_read_by_a_key_that_rested_does_not_wait_for_a_locked_database(call, busy):
    """The time of a key's use is noted at the first call in a while; no answer waits for that."""
    url, path, _ = busy
    with locked(path):
        writing, _ = run(
            send, url, "POST", f"{API}/knowledge", proposal("another one"), call.keys["carl"]
        )
        found = send(url, "GET", f"{API}/knowledge?domains=state", token=call.keys["rita"])
        assert found.status == 200
        assert writing.is_alive()
        writing.join()


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_a_write_into_a_locked_database_is_refused_while_its_client_still_waits(call, busy):
    """Whoever comes while another waits for the lock has the same patience, not the sum of both."""
    url, path, unit = busy
    with locked(path):
        first, _ = run(
            send, url, "POST", f"{API}/knowledge", proposal("another one"), call.keys["carl"]
        )
        for _ in range(50):
            assert send(url, "GET", f"{API}/knowledge?domains=state").status == 200
        confirmation = f"{API}/knowledge/{unit}/confirmations"
        patient = {"timeout": CLIENT_PATIENCE}
        assert send(url, "POST", confirmation, token=call.keys["cleo"], **patient).status == 503
        # And so has the first call of a key, which notes the use of it besides.
        assert send(url, "POST", confirmation, token=call.keys["ada"], **patient).status == 503
        first.join()


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, 800_000))
"""


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_a_full_disk_refuses_writes_for_now_and_keeps_what_was_answered(start, call, environ):
    """The limit of a file's size stands for the end of the disk."""
    server = start(FULL, **environ).listening()
    answers = []
    for number in range(200):
        body = proposal(f"unit {number}", insight=long_insight(number))
        answers.append(send(server.url, "POST", f"{API}/knowledge", body, call.keys["carl"]))
        if answers[-1].status != 201:
            break
    refused = answers.pop()
    assert refused.status == 503, refused.body
    assert int(refused.headers["Retry-After"]) > 0
    assert len(answers) > 3
    queue = send(server.url, "GET", f"{API}/review/queue?limit=100", token=call.tokens["rita"])
    assert queue.status == 200
    stored = {item["knowledge_unit"]["id"] for item in queue.json["items"]}
    assert stored == {answer.json["id"] for answer in answers}
    server.end()
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        database.execute("INSERT INTO units_fts (units_fts, rank) VALUES ('integrity-check', 1)")
        for table, column in (("units", "pk"), ("unit_domains", "unit_pk"), ("events", "unit_pk")):
            counted = database.execute(f"SELECT COUNT(DISTINCT {column}) FROM {table}").fetchone()
            assert counted == (len(answers),)


def long_insight(number):
    """Words that hardly repeat, so that they take room."""
    words = [hashlib.sha256(f"{number} {place}".encode()).hexdigest() for place in range(120)]
    return {"summary": f"unit {number}", "detail": " ".join(words), "action": "Look again."}


# Logs


@pytest.mark.slow
def test_logs_are_json_lines_with_request_ids_and_without_secrets(start, call, environ):
    server = start(**environ, CQ_LOG_LEVEL="DEBUG").listening()
    key, secret = call.keys["carl"], call.keys["carl"].split(".")[-1]
    asked = f"{API}/knowledge?domains=state"
    mine = send(server.url, "GET", asked, token=key, headers={"X-Request-ID": "my-request_1"})
    assert mine.headers["X-Request-ID"] == "my-request_1"
    ids = {"my-request_1"}
    encoded = "".join(f"%{ord(char):02X}" for char in key)
    for path in (
        f"{API}/knowledge/{key}",
        f"{API}/knowledge/{encoded}",
        f"/{key.upper()}/x",
        f"{API}/knowledge?q={encoded}",
        f"{API}/knowledge?domains=state&key={key}",
        f"{API}/users?password={quote(PASSWORD)}",
        "/line%0Abreak%0D%E2%80%A8%FF%00%22",
    ):
        answer = send(server.url, "GET", path, headers={"X-Request-ID": f"{key} not an id"})
        assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-ID"])
        ids.add(answer.headers["X-Request-ID"])
    token = log_in(server.url, "carl")
    wrong = {"username": "carl", "password": f"{PASSWORD}!"}
    assert send(server.url, "POST", f"{API}/auth/login", wrong).status == 401
    made = make_key(server.url, token)
    server.end()

    written = server.errors.read_text()
    for hidden in (secret, made.split(".")[-1], PASSWORD, token, *SECRETS.values()):
        assert hidden.lower() not in written.lower()
        assert quote(hidden) not in written
    log = server.log()
    assert {line["request_id"] for line in log if "request_id" in line} >= ids
    for line in log:
        assert {"time", "level", "logger", "message"} <= line.keys()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    (told,) = [line for line in log if line.get("request_id") == "my-request_1"]
    assert told["message"].startswith("GET /api/v1/knowledge 200"), told
    assert (told["method"], told["route"]) == ("GET", "/api/v1/knowledge")
    assert (told["status"], told["user"], told["address"]) == (200, "carl", "127.0.0.1")
    assert told["duration_ms"] >= 0


@pytest.mark.only("sqlite", why="a database in a file")
@pytest.mark.slow
def test_an_unexpected_failure_is_logged_with_its_trace_but_without_hashes(start, call, environ):
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database:
        for table in ("users", "api_keys"):
            database.execute(
                f"CREATE TRIGGER no_{table} BEFORE INSERT ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'cannot be added'); END"
            )
    server = start(**environ).listening()
    somebody = {"username": "somebody", "password": PASSWORD}
    ids = set()
    for path, body in (("/users", somebody), ("/users/me/api-keys", {"name": "x", "ttl": "1d"})):
        answer = send(server.url, "POST", API + path, body, call.tokens["ada"])
        assert (answer.status, answer.json) == (500, {"detail": "Internal Server Error"})
        ids.add(answer.headers["X-Request-ID"])
    server.end()
    errors = [line for line in server.log() if line["level"] == "ERROR"]
    assert {line["request_id"] for line in errors} == ids
    for line in errors:
        assert "cannot be added" in line["trace"]
        assert "$2b$" not in line["trace"]
        assert not re.search(r"\b[0-9a-f]{64}\b", line["trace"])
