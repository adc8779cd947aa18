"""Ten minutes of agents and reviewers on a server that is killed every 20 s: `make soak`.

At the end the database is what the clients were told, no more and no less: see `check.py`. Exit
code 1 if it is not.
"""

import argparse
import json
import secrets
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from bench import load
from bench.load import request
from bench.soak.check import TOLD, Rows, by_api, check, intact
from bench.soak.ledger import Ledger, read
from bench.soak.node import Node
from bench.soak.people import Agent, Reviewer
from bench.tables import plain, say

AGENTS, REVIEWERS = 4, 2
# Short runs are to see several kills, too.
LONG, OFTEN, SELDOM = 120, 8, 20
# MiB a minute that the lives of a server may grow by, by their median: units take room in memory.
# Lives that lasted for fewer seconds had not become warm.
GROWTH, SETTLED = 60, 15


def main():
    asked = _options()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="cq-soak-"))
    try:
        violations = soak(asked, folder)
    except BaseException:
        print(f"The run did not end; its files are in {folder}.", file=sys.stderr)
        raise
    if violations:
        print(f"\n{len(violations)} violations; the run's files are in {folder}.")
        for text in violations[: 4 * TOLD]:
            print(f"  {text}")
        sys.exit(1)
    if folder != asked.folder:
        shutil.rmtree(folder)
    print("\nNothing lost, nothing doubled.")


def _options():
    options = argparse.ArgumentParser(prog="make soak", description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--every", type=float, help="seconds between two kills")
    options.add_argument("--embedder", choices=("off", "hashed"), default="off")
    options.add_argument("--database", type=make_url, help="the URL of an empty database")
    options.add_argument("--folder", type=Path, help="an empty folder to leave the files in")
    asked = options.parse_args()
    asked.every = asked.every or (OFTEN if asked.seconds < LONG else SELDOM)
    return asked


def soak(asked, folder):
    """Run it and print what was seen; the violations."""
    environ = _environ(asked, folder)
    url = make_url(environ["CQ_DATABASE_URL"])
    node, ledger = Node(folder, environ), Ledger(folder / "ledger.jsonl")
    backup = folder / "backup.db" if url.get_backend_name() == "sqlite" else None
    stop, results = threading.Event(), {}
    try:
        root, people = _people(node, ledger, stop)
        before = _load(asked, node, people, ledger, backup)
        results["calls"] = ledger.faults
        entries = read(folder / "ledger.jsonl")
        rows = _rows(url)
        results.update(check(rows, entries, len(entries)))
        results["API"] = list(by_api(rows, node.port, root))
        node.stop()
        results["integrity"] = list(intact(url))
        if backup:
            results.update(_restored(folder, environ, backup, root, entries, before))
    finally:
        stop.set()
        node.stop()
        ledger.close()
    results["log"] = _log(node.log)
    results["memory"] = _memory(node.lives)
    _tell(node.lives, ledger, len(rows.units), results)
    return [f"{name}: {text}" for name, found in results.items() for text in found]


def _environ(asked, folder):
    development = {"CQ_DEVELOPMENT": "1"} if asked.embedder == "hashed" else {}
    url = asked.database or make_url(f"sqlite:///{folder / 'cq.db'}")
    return {
        "CQ_DATABASE_URL": url.render_as_string(hide_password=False),
        "CQ_EMBEDDER": asked.embedder,
        "CQ_READ_RATE": "off",
        "CQ_WRITE_RATE": "off",
        # The restored server has to know the same keys and sessions.
        "CQ_JWT_SECRET": secrets.token_hex(32),
        "CQ_API_KEY_PEPPER": secrets.token_hex(32),
        **development,
    }


def _people(node, ledger, stop):
    """Start the server and give it accounts: (the admin's token, whoever acts)."""
    password = secrets.token_hex(16)
    add = ("user", "add", "root", "--role", "admin", "--password-stdin")
    node.flask(*add, typed=f"{password}\n")
    node.start()

    def call(path, body, token=None):
        return json.loads(
            load.ask(node.port, request("POST", path, token, json.dumps(body).encode()))
        )

    def session(name):
        return call("/auth/login", {"username": name, "password": password})["token"]

    root = session("root")
    people = []
    for kind, role, number in (Agent, "contributor", AGENTS), (Reviewer, "reviewer", REVIEWERS):
        for place in range(number):
            name = f"{kind.__name__.lower()}-{place + 1}"
            call("/users", {"username": name, "password": password, "role": role}, root)
            token = session(name)
            if kind is Agent:
                key = {"name": "soak", "ttl": "7d"}
                token = call("/users/me/api-keys", key, token)["token"]
            people.append(kind(node, ledger, stop, name, token))
    return root, people


def _load(asked, node, people, ledger, backup):
    """Let all work so long while the server is killed again and again, and a backup is made once.

    How many entries the ledger had when the backup began.
    """
    began, seconds = time.monotonic(), asked.seconds
    before, saving = 0, None
    for person in people:
        person.start()
    while (age := time.monotonic() - began) < seconds:
        say(f"{age:.0f} of {seconds:.0f} s, {ledger.written} writes, {len(ledger.faults)} faults")
        time.sleep(min(0.5, seconds - age))
        if not node.runs():
            ledger.fault("the server ended by itself")
            node.kill()
            node.start()
        if backup and saving is None and age > seconds / 2:
            before = ledger.written
            saving = threading.Thread(target=_save, args=[node, backup, ledger])
            saving.start()
        if node.age() > asked.every and seconds - age > 2:
            node.kill()
            node.start()
    people[0].stop.set()
    for person in [*people, *([saving] if saving else [])]:
        person.join()
    say("")
    return before


def _save(node, backup, ledger):
    try:
        node.flask("backup", backup)
    except RuntimeError as fault:
        ledger.fault(str(fault))


def _rows(url):
    engine = create_engine(url)
    try:
        return Rows(engine)
    finally:
        engine.dispose()


def _restored(folder, environ, backup, root, entries, before):
    """Put the backup into a second server; what was acknowledged before it began is there."""
    aside = folder / "aside"
    aside.mkdir()
    url = make_url(f"sqlite:///{aside / 'cq.db'}")
    second = Node(aside, {**environ, "CQ_DATABASE_URL": str(url)})
    if not backup.exists():
        return {"backup": ["was not made"]}
    try:
        second.flask("restore", backup)
        second.start()
        ready = load.ask(second.port, b"GET /ready HTTP/1.1\r\nHost: cq\r\n\r\n")
        rows = _rows(url)
        results = check(rows, entries, before)
        results["API"] = list(by_api(rows, second.port, root))
    finally:
        second.stop()
    results["integrity"] = list(intact(url))
    results["log"] = _log(second.log)
    results["ready"] = [] if json.loads(ready)["status"] == "ok" else [ready.decode()]
    return {f"backup's {name}": found for name, found in results.items()}


def _log(path):
    """Failures that the server itself did not expect."""
    lines = path.read_text().splitlines()
    return [line[:500] for line in lines if not line.startswith("{") or '"level": "ERROR"' in line]


def _memory(lives):
    slopes = [life.slope for life in lives if life.slope is not None and life.lasted > SETTLED]
    if slopes and median(slopes) > GROWTH:
        return [f"grows by {median(slopes):.0f} MiB a minute, more than {GROWTH}"]
    return []


def _tell(lives, ledger, units, results):
    calls = [["calls", "done", "asked again", "busy (503)", "refused", "never known"]]
    counters = (ledger.done, ledger.repeated, ledger.busy, ledger.refused, ledger.maybe)
    for did in sorted(set().union(*counters)):
        calls.append([did, *(str(counter[did]) for counter in counters)])
    born = [["life", "listens s", "lasted s", "MiB at first", "at last", "MiB/min"]]
    for number, life in enumerate(lives, 1):
        sizes = [f"{life.samples[place][1]:.0f}" for place in (0, -1)] if life.samples else ["", ""]
        slope = "" if life.slope is None else f"{life.slope:.1f}"
        born.append([str(number), f"{life.start:.1f}", f"{life.lasted:.1f}", *sizes, slope])
    found = [["check", "violations"]]
    found += [[name, str(len(texts))] for name, texts in results.items()]
    for table in calls, born, found:
        print("\n".join(plain(table)), end="\n\n")
    print(f"{units} units, {ledger.written} writes acknowledged, {len(lives) - 1} kills.")


if __name__ == "__main__":
    main()
