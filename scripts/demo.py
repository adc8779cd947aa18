"""`make demo`: a server of its own in instance/demo, filled by `scripts/seed.py`, left running.

Standard library only. A second start finds the running server and changes nothing; `stop` ends it.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "instance" / "demo"
LOG, SERVER, STATE = FOLDER / "server.log", FOLDER / "server.json", FOLDER / "people.json"
ADMIN = "admin"
PATIENCE = 60


def main():
    if sys.argv[1:] == ["start"]:
        start()
    elif sys.argv[1:] == ["stop"]:
        stop()
    else:
        sys.exit("usage: demo.py start|stop")


def start():
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = read(SERVER)
    if not runs(known):
        known = {**known, **launch()}
        write(SERVER, known)
    if "password" not in known or "cq made the database" in LOG.read_text():
        known["password"] = secrets.token_urlsafe(12)
        make_admin(known["password"])
    write(SERVER, known)
    seed = [
        sys.executable,
        "scripts/seed.py",
        "--url",
        known["url"],
        "--admin",
        ADMIN,
        "--password-stdin",
        "--state",
        str(STATE),
    ]
    done = subprocess.run(seed, cwd=ROOT, input=known["password"] + "\n", text=True)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"admin      {ADMIN}  {known['password']}")
    print(f"API page   {known['url']}/api/docs")
    print("The server goes on running; `make stop` ends it. Its files are in instance/demo.")


def stop():
    known = read(SERVER)
    if not runs(known):
        print("No demo server is running.")
        return
    os.kill(known["pid"], signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while answers(known["url"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    print("The demo server has ended.")


def environ():
    """The caller's variables, with the demo's own database."""
    return {**os.environ, "CQ_DB_PATH": str(FOLDER / "cq.db"), "CQ_DATABASE_URL": ""}


def launch():
    """Start the server away from this terminal; {"url", "pid"} once it listens."""
    with LOG.open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env=environ(),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        said = LOG.read_text()
        for line in said.splitlines():
            if line.startswith("cq listens on "):
                return {"url": line.split()[-1], "pid": server.pid}
        if server.poll() is not None:
            sys.exit(f"The server did not start:\n{said.strip()}")
        time.sleep(0.1)
    server.terminate()
    sys.exit(f"The server did not start within {PATIENCE} s; see {LOG}.")


def make_admin(password):
    """Make the admin, or give the one that is there this password."""
    flask = [sys.executable, "-m", "flask", "--app", "app", "user"]
    for command in (["add", ADMIN, "--role", "admin"], ["passwd", ADMIN]):
        done = subprocess.run(
            [*flask, *command, "--password-stdin"],
            cwd=ROOT,
            env=environ(),
            input=password + "\n",
            text=True,
            capture_output=True,
        )
        if done.returncode == 0:
            return
    sys.exit(f"No admin could be made: {done.stderr.strip()}")


def runs(known):
    """Whether the server that was noted is still there, and not another one in its place."""
    try:
        os.kill(known["pid"], 0)
    except (KeyError, ProcessLookupError, PermissionError):
        return False
    return answers(known["url"])


def answers(url):
    try:
        with urllib.request.urlopen(f"{url}/api/v1/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError, ValueError):
        return False


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def write(path, value):
    """Whole or not at all, for nobody else's eyes."""
    draft = path.with_suffix(".new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file)
    draft.replace(path)


if __name__ == "__main__":
    main()
