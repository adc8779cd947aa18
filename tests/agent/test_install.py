"""What `pip install .` brings to a machine that has nothing else."""

import shutil
import subprocess
import sys

import pytest

from tests.cast import ROOT

SERVER = {"flask", "sqlalchemy", "numpy", "torch", "waitress", "werkzeug", "alembic", "jinja2"}


@pytest.mark.slow
def test_an_empty_environment_gets_the_command_and_no_library_of_the_server(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    bin = tmp_path / "env" / "bin"
    source = tmp_path / "source"
    shutil.copytree(ROOT / "cq", source / "cq", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", source)
    install = [bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, source], check=True)
    listed = subprocess.run(
        [bin / "python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
        check=True,
        capture_output=True,
        text=True,
    )
    names = {line.partition("==")[0].lower() for line in listed.stdout.splitlines()}
    assert {"cq", "click", "marshmallow"} <= names
    assert not names & SERVER
    environ = {"HOME": str(tmp_path), "PATH": str(bin)}
    run = {"env": environ, "cwd": tmp_path, "capture_output": True, "text": True}
    assert subprocess.run(["cq", "--version"], **run).stdout.startswith("cq v")
    assert "Core Protocol" in subprocess.run(["cq", "prompt", "skill"], **run).stdout
    say = ["cq", "propose", "--summary", "s", "--detail", "d", "--action", "a", "--domain", "x"]
    assert subprocess.run(say, **run).returncode == 0
    assert "s" in subprocess.run(["cq", "query", "--domain", "x"], **run).stdout
    # The true package `keyring`, with a store that needs no desktop.
    subprocess.run([*install, f"{source}[keyring]", "keyrings.alt==5.0.2"], check=True)
    environ["PYTHON_KEYRING_BACKEND"] = "keyrings.alt.file.PlaintextKeyring"
    keep = "from cq.credentials import *; save(Session('http://n', 'carl', 'a.b.c', ''))"
    subprocess.run(["python", "-c", keep], check=True, **run)
    assert not (tmp_path / ".config" / "cq").exists()
    status = ["cq", "auth", "status", "--addr", "http://n"]
    assert "Signed in: carl" in subprocess.run(status, **run).stdout
    assert subprocess.run(["cq", "auth", "logout"], **run).stdout == "Signed out.\n"
    assert subprocess.run(status, **run).returncode == 1
