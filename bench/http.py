"""How fast the server answers over stores of several sizes: `python bench/http.py --help`.

Machines drift: what is measured takes turns with /health, and each turn is compared with the two
of health right before and after it.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this folder would hide the standard library's `http` behind this file.
sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT / "bench"))]

# ruff: noqa: E402
import argparse
import json
import os
import platform
import random
import subprocess
import tempfile
import time
from itertools import count, cycle
from statistics import median
from typing import NamedTuple

from bench import load, store
from bench.tables import markdown, plain

MOST, MOST_CLIENTS = 10_000_000, 500
# A client goes round so many requests; a seed of its own for each.
ROUND = 2000
WARM = 2.0
# So many turns with health make a figure.
TURNS = 4
# The writes come last: the reads then see the store as it was filled.
READS = ("query", "queue", "knowledge stats", "review stats")
WRITES = ("confirm", "propose")
SHOWN = ("health", "query", "queue", "propose", "confirm", "knowledge stats", "review stats")
# Counted at every request, never reached.
RATE = "1000000/second"


class Row(NamedTuple):
    """What was measured; its rate as a part of that of health, the median of all turns."""

    size: int
    clients: int
    what: str
    run: load.Run
    ratio: float | None = None


# The server


class Server:
    """`python app.py` over a database on a free port, with its defaults in all that costs time."""

    def __init__(self, path):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        asked = {
            "CQ_DB_PATH": str(path),
            "CQ_PORT": "0",
            "CQ_READ_RATE": RATE,
            "CQ_WRITE_RATE": RATE,
            "CQ_VOTE_WINDOW": "0",
        }
        self.log = path.with_name("server.log")
        self.began = time.perf_counter()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "app.py"],
                cwd=ROOT,
                env={**kept, **asked},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        for line in self.process.stdout:
            if line.startswith("cq listens on "):
                self.port = int(line.rsplit(":", 1)[1])
                self.started = time.perf_counter() - self.began
                return
        self.stop()
        raise load.Unanswered(f"the server does not start: {self.log.read_text()[-2000:]}")

    def resident(self):
        """The memory it holds, in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


# The requests


def streams(ids, key, token):
    """{what is measured: client's number -> its endless stream of requests}."""
    numbers = count(1)

    def query(client):
        rng = random.Random(f"query {client}")
        drawn = (store.draw(rng, 2) for _ in range(ROUND))
        paths = (f"/knowledge?domains={one}&domains={two}&limit=5" for one, two in drawn)
        return cycle([load.request("GET", path, key) for path in paths])

    def confirm(client):
        rng = random.Random(f"confirm {client}")
        chosen = (rng.choice(ids) for _ in range(ROUND))
        return cycle([load.request("POST", f"/knowledge/{id}/confirmations", key) for id in chosen])

    def propose(client):
        said = store.words(random.Random(f"propose {client}"))
        said["insight"]["summary"] = "Number 000000000 " + said["insight"]["summary"]
        head, tail = load.request("POST", "/knowledge", key, json.dumps(said).encode()).split(
            b"000000000"
        )
        return (head + b"%09d" % number + tail for number in numbers)

    def same(path, who=None):
        return lambda client: cycle([load.request("GET", path, who)])

    return {
        "health": same("/health"),
        "query": query,
        "queue": same("/review/queue", token),
        "knowledge stats": same("/knowledge/stats", key),
        "review stats": same("/review/stats", token),
        "confirm": confirm,
        "propose": propose,
    }


# Measuring


def measure(size, clients, seconds):
    """(rows, {fact about the server: figure}) of a fresh store of one size."""
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as folder:
        path = Path(folder) / "cq.db"
        began = time.perf_counter()
        asked = streams(*store.fill(path, size))
        facts = {"loaded in s": time.perf_counter() - began}
        say(f"{size} units loaded in {facts['loaded in s']:.1f} s")
        server = Server(path)
        try:
            facts["listens after s"] = server.started
            load.ask(server.port, next(asked["query"](0)))
            facts["first query answered after s"] = time.perf_counter() - server.began
            for what in READS:
                load.run(server.port, [asked[what](client) for client in range(8)], WARM / 4)
            load.run(server.port, [asked["query"](client) for client in range(8)], WARM)
            rows = []
            for measured in (READS, WRITES):
                for many in clients:
                    rows += _beside_health(server.port, asked, size, many, seconds, measured)
            facts["resident MB"] = server.resident()
        finally:
            server.stop()
    return sorted(_one_health(rows), key=lambda row: (row.clients, SHOWN.index(row.what))), facts


def _beside_health(port, asked, size, many, seconds, whats):
    """A row for each of them, and one for health."""

    def turn(what, streams):
        try:
            return load.run(port, streams, seconds / TURNS)
        except load.Unanswered as fault:
            raise load.Unanswered(f"{what}, {many} clients, {size} units: {fault}") from None

    alive = [asked["health"](client) for client in range(many)]
    health = [turn("health", alive)]
    for what in whats:
        streams = [asked[what](client) for client in range(many)]
        turns, parts = [], []
        for _ in range(TURNS):
            turns.append(turn(what, streams))
            health.append(turn("health", alive))
            parts.append(2 * turns[-1].rate / (health[-2].rate + health[-1].rate))
        yield Row(size, many, what, load.together(turns), median(parts))
        say(f"{size} units, {many} clients, {what}: {median(parts):.2f} of health")
    yield Row(size, many, "health", load.together(health))


def _one_health(rows):
    """The rows with all of health at a number of clients as one."""
    for many in dict.fromkeys(row.clients for row in rows):
        health = [row for row in rows if row.clients == many and row.what == "health"]
        yield health[0]._replace(run=load.together(row.run for row in health))
    yield from (row for row in rows if row.what != "health")


def targets(rows):
    """[(what is asked, what was measured, whether it is met)]; None where it was not measured."""
    known = {(row.size, row.what): row for row in rows if row.clients == 8}
    asked = [("query", 1000, 0.4), ("query", 10_000, 0.4), ("query", 100_000, 0.2)]
    asked += [(what, 100_000, 0.2) for what in ("knowledge stats", "review stats", "queue")]
    told = []
    for what, size, least in asked:
        row = known.get((size, what))
        goal = f"{what} at {size}: at least {100 * least:.0f} % of health"
        told.append((goal, row and f"{100 * row.ratio:.0f} %", row and row.ratio >= least))
    few, many = known.get((1000, "query")), known.get((100_000, "query"))
    times = many.run.within(95) / few.run.within(95) if few and many else None
    goal = "p95 of query at 100000: at most 3 times that at 1000"
    told.append((goal, times and f"{times:.1f} times", times and times <= 3))
    return told


# Telling


def say(line):
    """Progress: for a person who waits."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def tables(rows, facts):
    """Three tables, each a list of rows of texts, the first one its head."""
    measured = [["units", "clients", "what", "requests/s", "p50 ms", "p95 ms", "of health"]]
    for size, clients, what, run, ratio in rows:
        figures = [f"{run.rate:.0f}", f"{run.within(50):.1f}", f"{run.within(95):.1f}"]
        part = "" if ratio is None else f"{ratio:.2f}"
        measured.append([f"{size}", f"{clients}", what, *figures, part])
    goals = [["target, at 8 clients", "measured", ""]]
    for goal, figure, met in targets(rows):
        goals.append([goal, figure or "-", {None: "not measured", True: "met"}.get(met, "missed")])
    servers = [["units", *next(iter(facts.values()))]]
    for size, known in facts.items():
        servers.append([f"{size}", *(f"{figure:.1f}" for figure in known.values())])
    return measured, goals, servers


def main():
    options = read_options()
    rows, facts = [], {}
    try:
        for size in options.sizes:
            measured, facts[size] = measure(size, options.clients, options.seconds)
            rows += measured
    except load.Unanswered as fault:
        sys.exit(f"\nNot measured: {fault}")
    except KeyboardInterrupt:
        sys.exit(130)
    say("")
    made = tables(rows, facts)
    about = (
        f"{os.cpu_count()} cores for server and clients together, Python "
        f"{platform.python_version()}, {options.seconds:g} s a figure."
    )
    print(about)
    for table in made:
        print("", *plain(table), sep="\n")
    if options.markdown:
        parts = [about, *("\n".join(markdown(table)) for table in made)]
        options.markdown.write_text("\n\n".join(parts) + "\n")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=whole_numbers, default="1000,10000,100000", help="units")
    parser.add_argument("--clients", type=whole_numbers, default="1,8,32", help="at once")
    parser.add_argument("--seconds", type=float, default=4, help="of each figure")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too")
    options = parser.parse_args()
    if not 0.1 <= options.seconds <= 600:
        parser.error("--seconds takes 0.1 to 600")
    if options.clients[-1] > MOST_CLIENTS:
        parser.error(f"--clients takes at most {MOST_CLIENTS}")
    if options.markdown:
        try:
            options.markdown.open("a").close()
        except OSError as fault:
            parser.error(f"--markdown: {options.markdown} cannot be written ({fault.strerror})")
    return options


def whole_numbers(text):
    parts = text.split(",")
    if not all(part.isdecimal() and 0 < int(part) <= MOST for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of whole numbers from 1 to {MOST}, such as 1000,10000"
        )
    return sorted(set(map(int, parts)))


if __name__ == "__main__":
    main()
