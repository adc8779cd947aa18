"""How fast the server answers over stores of several sizes: `python bench/http.py --help`.

What is measured takes turns with /health, the server's embedder being off; answers by meaning, of a
second server over the same store, take turns with the encoder alone: see bench/semantic.py.
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
import tempfile
import time
from contextlib import ExitStack
from itertools import count, cycle

from bench import load, semantic, store, texts
from bench.encoder import Alone
from bench.load import Row
from bench.server import Server
from bench.tables import markdown, plain, say, whole_numbers

MOST_CLIENTS = 500
# A client goes round so many requests; a seed of its own for each.
ROUND = 2000
WARM = 2.0
# The writes come last: the reads then see the store as it was filled.
READS = ("query", "queue", "knowledge stats", "review stats")
WRITES = ("confirm", "propose")
SHOWN = ("health", "query", "queue", "propose", "confirm", "knowledge stats", "review stats")


# The requests


def streams(ids, key, token):
    """{what is measured: client's number -> its endless stream of requests}."""
    numbers = count(1)

    def query(client):
        rng = random.Random(f"query {client}")
        drawn = (texts.tags(rng, 2) for _ in range(ROUND))
        paths = (f"/knowledge?domains={one}&domains={two}&limit=5" for one, two in drawn)
        return cycle([load.request("GET", path, key) for path in paths])

    def confirm(client):
        rng = random.Random(f"confirm {client}")
        chosen = (rng.choice(ids) for _ in range(ROUND))
        return cycle([load.request("POST", f"/knowledge/{id}/confirmations", key) for id in chosen])

    def propose(client):
        said = texts.proposal(random.Random(f"propose {client}"), client % texts.TOPICS)
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


def measure(size, clients, seconds, embedder):
    """(rows, rows of answers by meaning, {fact about the servers: figure}) of one size."""
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as folder, ExitStack() as running:
        path = Path(folder) / "cq.db"
        began = time.perf_counter()
        ids, key, token = store.fill(path, size)
        asked = streams(ids, key, token)
        facts = {"loaded in s": time.perf_counter() - began}
        say(f"{size} units loaded in {facts['loaded in s']:.1f} s")
        server = begun(running, Server(path))
        facts["listens after s"] = server.started
        load.ask(server.port, next(asked["query"](0)))
        facts["first query answered after s"] = server.age()
        for what in READS:
            load.run(server.port, [asked[what](client) for client in range(8)], WARM / 4)
        load.run(server.port, [asked["query"](client) for client in range(8)], WARM)
        rows, meant = [], []
        for many in clients:
            rows += _beside_health(server.port, asked, size, many, seconds, READS)
        if embedder != "off":
            meant, known = by_meaning(path, size, server, asked["query"], key, seconds, embedder)
        for many in clients:
            rows += _beside_health(server.port, asked, size, many, seconds, WRITES)
        facts["resident MB"] = server.resident()
    rows = sorted(_one_health(rows), key=lambda row: (row.clients, SHOWN.index(row.what)))
    return rows, meant, {**facts, **(known if meant else {})}


def by_meaning(path, size, plain, domain, key, seconds, embedder):
    """(rows, facts) of a second server, which knows meaning."""
    with ExitStack() as running:
        say(f"{size} units: the encoder alone is loaded")
        alone = begun(running, Alone(embedder, path.with_name("encoder.log")))
        store.embed(path, alone.model, alone.middles)
        say(f"{size} units: the server loads its model")
        known = begun(running, Server(path, embedder))
        facts = {"by meaning after s": known.meaning()}
        known.rest()
        say(f"{size} units: answers by meaning")
        sides = semantic.Sides(plain, known, alone)
        rows, more = semantic.measure(size, sides, domain, key, seconds)
    return rows, {**facts, **more}


def begun(running, process):
    """This process, to be stopped at the end."""
    running.callback(process.stop)
    return process


def _beside_health(port, asked, size, many, seconds, whats):
    """A row for each of them, and one for health."""

    def turn(what, streams):
        try:
            return load.run(port, streams, seconds / load.TURNS)
        except load.Unanswered as fault:
            raise load.Unanswered(f"{what}, {many} clients, {size} units: {fault}") from None

    alive = [asked["health"](client) for client in range(many)]
    health = []
    for what in whats:
        streams = [asked[what](client) for client in range(many)]
        runs, bars, part = load.in_turns(
            lambda what=what, streams=streams: turn(what, streams),
            lambda: turn("health", alive),
            lambda it, *bars: 2 * it.rate / sum(bar.rate for bar in bars),
            health[-1:],
        )
        health += bars[1:] if health else bars
        yield Row(size, many, what, load.together(runs), part)
        say(f"{size} units, {many} clients, {what}: {part:.2f} of health")
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


def tables(rows, meant, facts):
    """Tables, each a list of rows of texts, the first one its head."""
    measured = [["units", "clients", "what", "requests/s", "p50 ms", "p95 ms", "of health"]]
    for size, clients, what, run, ratio in rows:
        figures = [f"{run.rate:.0f}", f"{run.within(50):.1f}", f"{run.within(95):.1f}"]
        part = "" if ratio is None else f"{ratio:.2f}"
        measured.append([f"{size}", f"{clients}", what, *figures, part])
    goals = [["target, at 8 clients", "measured", ""]]
    for goal, figure, met in [*targets(rows), *semantic.targets(meant, facts)]:
        goals.append([goal, figure or "-", {None: "not measured", True: "met"}.get(met, "missed")])
    servers = [["units", *next(iter(facts.values()))]]
    for size, known in facts.items():
        servers.append([f"{size}", *(f"{figure:.1f}" for figure in known.values())])
    return [measured, *([semantic.table(meant)] if meant else []), goals, servers]


def main():
    options = read_options()
    rows, meant, facts = [], [], {}
    try:
        for size in options.sizes:
            measured, *more, facts[size] = measure(
                size, options.clients, options.seconds, options.embedder
            )
            rows += measured
            meant += more[0]
    except load.Unanswered as fault:
        sys.exit(f"\nNot measured: {fault}")
    except KeyboardInterrupt:
        sys.exit(130)
    say("")
    made = tables(rows, meant, facts)
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
    parser.add_argument("--embedder", default="minilm", help="as CQ_EMBEDDER; off leaves it out")
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


if __name__ == "__main__":
    main()
