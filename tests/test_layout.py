"""The house rules: who imports whom, how long a file is, what the README tells."""

import ast
import os
import re
import subprocess
import sys

import pytest

import config
from cq import cli
from tests.cast import ROOT

LENGTH = 320
MODELS = {"cq.unit", "errors", "models"}
# What each module may import of ours; a name stands for the modules below it too.
MAY = {
    "cq": {"cq.client", "cq.failures"},
    "cq.unit": set(),
    "cq.failures": set(),
    "cq.prompts": set(),
    "cq.ranking": {"cq", "cq.unit"},
    "cq.wire": {"cq", "cq.unit", "cq.wire"},
    "cq.safety": {"cq", "cq.safety"},
    "cq.record": {"cq", "cq.unit"},
    "cq.store": {"cq", "cq.failures", "cq.record", "cq.store", "cq.unit"},
    "cq.transport": {"cq"},
    "cq.ttl": set(),
    "cq.credentials": {"cq.failures"},
    "cq.account": {"cq", "cq.credentials", "cq.discovery", "cq.failures", "cq.remote", "cq.ttl"},
    "cq.discovery": {"cq", "cq.failures", "cq.transport"},
    "cq.remote": {"cq", "cq.discovery", "cq.failures", "cq.record", "cq.transport", "cq.unit"},
    "cq.client": {
        "cq", "cq.client", "cq.failures", "cq.ranking", "cq.record", "cq.remote", "cq.safety", "cq.store", "cq.unit",
        "cq.wire",
    },
    "cq.mcp": {"cq", "cq.failures", "cq.mcp", "cq.prompts", "cq.safety", "cq.unit"},
    "cq.hosts": {"cq", "cq.failures", "cq.hosts", "cq.prompts"},
    "cq.hook": {"cq", "cq.safety"},
    "cq.cli": {"cq"},
    "config": set(),
    "errors": set(),
    "logs": set(),
    "rates": set(),
    "schemas": {"cq", "cq.wire", "cq.unit", "schemas"},
    "models": {"cq", *MODELS},
    "auth": {"auth", "errors", "logs", "models", "rates"},
    "embeddings": {"embeddings"},
    "index": {"cq", "cq.unit", "embeddings", "index", "models"},
    "search": {"cq", "cq.unit", "embeddings", "errors", "index", "models", "search"},
    "tally": {"cq", "errors", "models"},
    "proxies": set(),
    "routes": {"auth", "cq", "errors", "models", "routes", "schemas", "search", "tally"},
    "routes.metrics": {"auth", "errors", "logs", "models", "proxies", "search"},
    "files": set(),
    "admin": {"auth", "cq", "errors", "models", "schemas", "search"},
    "migrations": {"config", "migrations", "models"},
    "backups": {"admin", "config", "files", "migrations", "models"},
    "transfer": {"admin", "cq", "errors", "files", "models", "transfer"},
    "upstream": {"admin", "cq", "errors", "models", "schemas", "transfer"},
    "app": {
        "admin", "auth", "backups", "config", "embeddings", "errors", "logs", "migrations", "models", "proxies", "routes", "schemas",
        "search", "tally", "transfer", "upstream",
    },
}  # fmt: skip
# What the command line reads, and what the server sets for itself.
AGENT = {
    "CQ_ADDR", "CQ_API_KEY", "CQ_APPROVAL", "CQ_CONFIG_DIR", "CQ_INSTALL_BINARY", "CQ_LOCAL_DB_PATH",
    "CQ_LOCAL_DATABASE_URL", "CQ_TIMEOUT",
}  # fmt: skip
OWN = {"CQ_DATABASE", "CQ_MADE"}
UNKNOWN = {
    "cq": {"flask", "sqlalchemy", "numpy", "httpx", "requests"},
    "cq.store": {"http", "urllib.request", "flask", "sqlalchemy"},
    "cq.client": {"click", "http", "urllib", "sqlite3"},
    "cq.mcp": {"click", "flask", "http", "sqlite3", "sqlalchemy"},
    "cq.hosts": {"click", "http", "sqlite3"},
    "cq.unit": {"marshmallow", "sqlite3", "http", "click"},
    "models": {"flask", "schemas"},
    "schemas": {"flask", "models"},
    "config": {"flask"},
    "rates": {"flask"},
    "embeddings": {"flask", "sqlalchemy"},
    "index": {"flask"},
}


def modules():
    """{dotted name: path} of the product's own Python, without scripts, benches and tests."""
    found = {}
    for folder in (
        ".",
        "auth",
        "cq",
        "embeddings",
        "index",
        "models",
        "routes",
        "schemas",
        "search",
        "migrations",
        "transfer",
    ):
        for path in (ROOT / folder).rglob("*.py") if folder != "." else ROOT.glob("*.py"):
            if path.parent.name == "versions":
                continue
            dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[dotted.removesuffix(".__init__")] = path
    return found


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def below(table, name):
    """The entry of a module or of the nearest package above it."""
    while name not in table:
        if "." not in name:
            return None
        name = name.rpartition(".")[0]
    return table[name]


def test_every_module_imports_only_what_it_may():
    ours = modules()
    for name, path in ours.items():
        allowed = below(MAY, name)
        assert allowed is not None, f"{name} stands in no row"
        for used in imports(path):
            if used in ours and used != name:
                assert any(used == one or used.startswith(f"{one}.") for one in allowed), (
                    name,
                    used,
                )


def test_no_module_knows_what_it_must_not():
    for name, path in modules().items():
        forbidden = below(UNKNOWN, name) or set()
        assert not {used.partition(".")[0] for used in imports(path)} & forbidden, name


@pytest.mark.slow
def test_every_module_can_be_imported_first():
    for name in modules():
        if name in ("migrations.env", "migrations.versions"):
            continue
        done = subprocess.run(
            [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True
        )
        assert done.returncode == 0, (name, done.stderr.decode())


def test_what_agents_install_needs_no_library_of_the_server():
    code = "import cq.cli, cq.client, cq.wire, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "marshmallow" in loaded
    assert not loaded & {"flask", "sqlalchemy", "numpy", "werkzeug", "waitress", "flask_smorest"}


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        python = (str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))
        return [name for name in python if not name.startswith(".")]
    return listed.stdout.split("\n")[:-1]


def test_no_file_outgrows_a_room():
    for name in tracked():
        path = ROOT / name
        if name.endswith((".py", ".js", ".css")) and not name.startswith(
            ("tests/", "migrations/v")
        ):
            assert len(path.read_text().splitlines()) <= LENGTH, name


def test_every_module_says_what_it_holds():
    for name in tracked():
        if name.endswith(".py") and (ROOT / name).read_text().strip():
            assert ast.get_docstring(ast.parse((ROOT / name).read_text())), name


def test_nothing_is_left_for_later():
    words = re.compile(
        r"\b(TO" r"DO|FIX" r"ME|XX" r"X|NotImplemented" r"Error)\b|mark\.(skip|xfail)"
    )
    for name in tracked():
        if name.endswith((".py", ".js")):
            assert not words.search((ROOT / name).read_text()), name


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text()


def test_the_readme_tells_every_variable_and_its_default(readme):
    for name, (default, _) in config.VARIABLES.items():
        row = re.search(rf"^\| `{name}` \| (.*?) \|", readme, re.M)
        assert row, name
        if default:
            assert row[1] == f"`{default}`", name
    for name in AGENT:
        assert re.search(rf"^\| `{name}` \|", readme, re.M), name
    assert set(re.findall(r"`(CQ_[A-Z_]+)`", readme)) <= {*config.VARIABLES, *AGENT}


def test_no_variable_is_read_that_is_not_in_the_table():
    for name in tracked():
        if name.endswith(".py") and not name.startswith(("tests/", "bench/", "scripts/")):
            for variable in re.findall(r"[\"'](CQ_[A-Z_]+)[\"']", (ROOT / name).read_text()):
                known = AGENT if name.startswith("cq/") else {*config.VARIABLES, *OWN}
                assert variable in known, (name, variable)


def test_the_readme_tells_every_route(readme, app):
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/api/v1/") and rule.rule != "/api/v1/health":
            path = rule.rule.removeprefix("/api/v1").replace("<", "{").replace(">", "}")
            for method in rule.methods - {"HEAD", "OPTIONS"}:
                assert f"`{method} {path}`" in readme, (method, path)


def test_the_readme_tells_every_command(readme, app):
    # `db` is Flask-Migrate's, for whoever changes the schema.
    for name in app.cli.commands.keys() - {"db"}:
        command = app.cli.commands[name]
        for below in getattr(command, "commands", [None]):
            told = f"{name} {below}" if below else name
            assert re.search(rf"`{told}[ `]", readme), told


def test_the_readme_tells_every_command_of_an_agent(readme):
    for name in cli.PLACES:
        # What a host's hooks call is for nobody else.
        if name.startswith("_"):
            continue
        assert re.search(rf"`{name}[ `]", readme), name


def test_the_readme_tells_every_target(readme):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    for target in set(targets) - {"setup", "lint"}:
        assert f"make {target}" in readme, target


def test_ci_runs_the_command_of_the_readme(readme):
    assert "\nmake test\n" in readme
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test")
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_everything_that_is_installed_is_pinned():
    for name in sorted(path.name for path in ROOT.glob("requirements*.txt")):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith(("#", "-r")):
                assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line), line
