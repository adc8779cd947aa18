"""Queries answered by meaning, beside the encoder alone and beside the query in domain mode.

New texts are short, and no two are the same. Repeated ones were all asked before.
"""

import json
import random
from itertools import count, cycle
from typing import NamedTuple
from urllib.parse import quote_plus

from bench import load, store, texts
from bench.encoder import TOGETHER, Alone
from bench.load import Row
from bench.server import Server

FEW, MANY = 1, 8
# So many texts are repeated.
POOL = 200
NEEDED = b"Cq-Search: semantic"
ONE, TOGETHERS = "encoder alone, 1 text", f"encoder alone, {TOGETHER} texts at once"
DOMAIN, TAGS = "two domains, domain mode", "two domains, by meaning"
NEW, REPEATED = "new text", "repeated text"
# What each figure is compared with.
TO = {
    NEW: {FEW: "p50 of encoder + two domains", MANY: "texts/s of encoder"},
    REPEATED: {MANY: "two domains, domain mode"},
    TAGS: {MANY: "two domains, domain mode"},
}
SIZES = (1000, 10_000, 100_000)
MEMORY, ENCODER, MATRIX = "by meaning MB", "encoder alone MB", "matrix MB"


def streams(key):
    """(client's number -> endless requests with new texts, the same with repeated ones)."""
    numbers = count(1)
    rng = random.Random("repeated")
    pool = [_request(texts.question(rng), key) for _ in range(POOL)]

    def new(client):
        rng = random.Random(f"new {client}")
        return (_request(f"{texts.question(rng)} {number}", key) for number in numbers)

    def repeated(client):
        start = client * POOL // MANY
        return cycle(pool[start:] + pool[:start])

    return new, repeated


def _request(text, key):
    return load.request("GET", f"/knowledge?q={quote_plus(text)}&limit=5", key)


class Sides(NamedTuple):
    """What takes turns: a server in domain mode, one that knows meaning, and the encoder alone."""

    plain: Server
    known: Server
    alone: Alone


def measure(size, sides, domain, key, seconds):
    """(rows, {fact: figure}); `domain` gives a client's stream of queries by two domains."""
    new, repeated = streams(key)
    answered = _warm(sides.known.port, repeated(0))
    turn = seconds / load.TURNS
    # Streams that go on: words that were asked before are counted no more.
    new, repeated, domain = (
        [stream(client) for client in range(MANY)] for stream in (new, repeated, domain)
    )

    def plain(many):
        return load.run(sides.plain.port, domain[:many], turn)

    def meant(streams):
        return load.run(sides.known.port, streams, turn, NEEDED)

    def row(many, what, it, bar, part):
        runs, bars, ratio = load.in_turns(it, bar, part)
        return bars, Row(size, many, what, load.together(runs), ratio)

    for each in (new, domain):
        meant(each)
    rows = []
    bars, made = row(
        FEW,
        NEW,
        lambda: meant(new[:FEW]),
        lambda: (sides.alone.run(1, turn), plain(FEW)),
        lambda it, *both: 2 * _middle(it) / sum(_middle(run) for bar in both for run in bar),
    )
    for what, part in zip((ONE, DOMAIN), zip(*bars, strict=True), strict=True):
        rows.append(Row(size, FEW, what, load.together(part)))
    rows.append(made)
    bars, made = row(MANY, NEW, lambda: meant(new), lambda: sides.alone.run(TOGETHER, turn), _rates)
    rows += [Row(size, MANY, TOGETHERS, load.together(bars)), made]
    bars, made = row(MANY, REPEATED, lambda: meant(repeated), lambda: plain(MANY), _rates)
    more, last = row(MANY, TAGS, lambda: meant(domain), lambda: plain(MANY), _rates)
    rows += [Row(size, MANY, DOMAIN, load.together([*bars, *more])), made, last]
    return rows, {f"of {POOL} texts answered": answered, **_memory(size, sides)}


def _warm(port, stream):
    """Ask each of the repeated texts; how many of them find units."""
    bodies = [load.ask(port, next(stream)) for _ in range(POOL)]
    return sum(bool(json.loads(body)["data"]) for body in bodies)


def _middle(run):
    return run.within(50)


def _rates(it, *bars):
    return 2 * it.rate / sum(bar.rate for bar in bars)


def _memory(size, sides):
    matrix = (size + store.PENDING) * sides.alone.middles.shape[1] * 4 / 2**20
    return {MEMORY: sides.known.resident(), ENCODER: sides.alone.resident, MATRIX: matrix}


def targets(rows, facts):
    """[(what is asked, what was measured, whether it is met)]; None where it was not measured."""
    known = {(row.size, row.clients, row.what): row.ratio for row in rows}
    told = []

    def goal(text, figure, shown, met):
        told.append((text, figure and shown.format(figure), figure and met(figure)))

    for size in SIZES:
        goal(
            f"new text at {size}, 1 client: at most 1.5 times encoder + two domains",
            known.get((size, FEW, NEW)),
            "{:.2f} times",
            lambda ratio: ratio <= 1.5,
        )
    for what, least in ((NEW, 0.7), (REPEATED, 0.5)):
        for size in SIZES:
            goal(
                f"{what} at {size}: at least {least} of {TO[what][MANY]}",
                known.get((size, MANY, what)),
                "{:.2f}",
                lambda ratio, least=least: ratio >= least,
            )
    held = facts.get(SIZES[-1], {})
    goal(
        "memory at 100000: at most the encoder's and 3 times the matrix",
        (held[MEMORY] - held[ENCODER]) / held[MATRIX] if MATRIX in held else None,
        "{:.1f} times",
        lambda times: times <= 3,
    )
    return told


def table(rows):
    """The figures as rows of texts, the first one its head."""
    head = ["units", "clients", "by meaning", "requests/s", "p50 ms", "p95 ms", "part", "of"]
    made = [head]
    for size, clients, what, run, ratio in rows:
        figures = [f"{run.rate:.0f}", f"{run.within(50):.1f}", f"{run.within(95):.1f}"]
        part = ["", ""] if ratio is None else [f"{ratio:.2f}", TO[what][clients]]
        made.append([f"{size}", f"{clients}", what, *figures, *part])
    return made
