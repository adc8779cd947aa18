"""How well questions find their answers: `python bench/retrieval.py FOLDER`.

The folder holds units.jsonl (proposals with an `id`) and queries-*.jsonl (`query`, and `relevant`:
the id of the one unit that answers it). Questions that no unit answers: bench/unanswerable.txt.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this folder would hide the standard library's `http` behind bench/http.py.
sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT / "bench"))]

# ruff: noqa: E402
import argparse
import json
import math
import tempfile
import time
from collections import Counter

import auth
import config
import search
from app import create_app
from bench.tables import markdown, plain
from models import Actor, ApiKey, Unit, User, db, full_text

LIMIT = 10
SWITCHES = {"CQ_READ_RATE": "off", "CQ_WRITE_RATE": "off", "CQ_LOG_LEVEL": "WARNING"}
MEASURES = ("recall@1", "recall@5", "MRR@10", "nDCG@10")


class Node:
    """An app over the database in a folder, asked through HTTP as an agent asks."""

    def __init__(self, folder, embedder):
        variables = {**SWITCHES, "CQ_DB_PATH": f"{folder}/cq.db", "CQ_EMBEDDER": embedder}
        self.app = create_app(config.from_env(variables))
        self.client = self.app.test_client()
        self.key = None

    def ask(self, **query):
        """The ids that a query finds, best first."""
        answer = self.client.get(
            "/api/v1/knowledge",
            query_string={"limit": LIMIT, **query},
            headers={"Authorization": f"Bearer {self.key}"},
        )
        if answer.status_code != 200:
            raise SystemExit(f"Not measured: {answer.status_code} {answer.text}")
        return [unit["id"] for unit in answer.json["data"]]

    def fill(self, units):
        """Propose and approve them all under their own ids."""
        with self.app.app_context():
            ada = User.add("ada", auth.hash_password("bench"), "admin")
            db.session.commit()
            id, secret = auth.new_key()
            ApiKey.add(ada.id, "bench", [], "1d", 86400, id, secret[:8], auth.key_hash(secret))
            db.session.commit()
            self.key = auth.key_token(id, secret)
            by = Actor(ada.id, ada.username, ada.role, "key")
            for unit in units:
                words = {name: unit[name] for name in ("domains", "insight", "context")}
                Unit.propose(by, **words, key=unit["id"])
                Unit.decide(unit["id"], "approved", by)
                db.session.commit()

    def wait(self, units):
        """Until all units have vectors."""
        began = time.monotonic()
        with self.app.app_context():
            known = search.meaning()
            if not known.embedder.settled():
                raise SystemExit(f"Not measured: {known.embedder.reason}")
            while known.vectors.count() < units:
                time.sleep(0.2)
                told(f"{known.vectors.count()} of {units} units embedded")
        told("")
        return time.monotonic() - began


def told(line):
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def by_words(node, question):
    """What full text alone finds."""
    with node.app.app_context():
        return ids(pk for pk, _ in full_text.matching(question, LIMIT, set))


def by_meaning(node, question):
    """What vectors alone find."""
    with node.app.app_context():
        known = search.meaning()
        (vector,) = known.embedder.vectors([question])
        return ids(pk for pk, _ in known.vectors.nearest(vector, LIMIT))


def ids(pks):
    pks = list(pks)
    units = Unit.numbered(pks)
    return [units[pk].id for pk in pks]


def rarest(questions, units, many=3):
    """For each question, those of its words that stand in the fewest units."""
    having = Counter()
    for unit in units:
        having.update(set(content(" ".join(unit["insight"].values()))))
    for question in questions:
        yield sorted(dict.fromkeys(content(question)), key=lambda word: having[word])[:many]


def content(text):
    spaced = "".join(char if char.isalnum() or char == "_" else " " for char in text.casefold())
    return [word for word in spaced.split() if word not in full_text.STOP]


def measures(found, wanted):
    """Recall@1, recall@5, MRR@10 and nDCG@10 of ranked ids, each question having one answer."""
    places = [
        ranked.index(one) + 1 if one in ranked[:LIMIT] else None
        for ranked, one in zip(found, wanted, strict=True)
    ]
    told = [place for place in places if place]
    sums = (
        sum(place == 1 for place in told),
        sum(place <= 5 for place in told),
        sum(1 / place for place in told),
        sum(1 / math.log2(place + 1) for place in told),
    )
    return [total / len(places) for total in sums]


def measure(folder, embedder):
    """(tables, seconds that embedding took, units); a table is rows of texts, a head first."""
    units = lines(folder / "units.jsonl")
    sets = {path.stem: lines(path) for path in sorted(folder.glob("queries-*.jsonl"))}
    queries = [query for each in sets.values() for query in each]
    nothing = (Path(__file__).parent / "unanswerable.txt").read_text().splitlines()
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as place:
        node, plain_node = Node(place, embedder), Node(place, "off")
        node.fill(units)
        plain_node.key = node.key
        took = node.wait(len(units))
        asked = [query["query"] for query in queries]
        tags = [",".join(words) for words in rarest(asked, units)]
        ways = {
            "domain mode": [plain_node.ask(q=question) for question in asked],
            "full text alone": [by_words(node, question) for question in asked],
            "vectors alone": [by_meaning(node, question) for question in asked],
            "fused (the default)": [node.ask(q=question) for question in asked],
            "tags only, domain mode": [plain_node.ask(domains=words.split(",")) for words in tags],
            "tags only, fused": [node.ask(domains=words.split(",")) for words in tags],
        }
        empty = {
            "fused (the default)": sum(not node.ask(q=question) for question in nothing),
            "domain mode": sum(not plain_node.ask(q=question) for question in nothing),
        }
        search.stop(node.app)
    tables, places = [], {f"all {len(queries)}": slice(None)}
    for name, each in sets.items():
        start = next(place for place, query in enumerate(queries) if query is each[0])
        places[name] = slice(start, start + len(each))
    for name, place in places.items():
        wanted = [query["relevant"] for query in queries[place]]
        tables.append([[name, *MEASURES]])
        for way, found in ways.items():
            figures = measures(found[place], wanted)
            tables[-1].append([way, *(f"{figure:.3f}" for figure in figures)])
    silent = [["", f"of {len(nothing)} without an answer, silent", f"of {len(queries)}, silent"]]
    for way, count in empty.items():
        lost = sum(not ranked for ranked in ways[way])
        silent.append([way, str(count), str(lost)])
    return [*tables, silent], took, len(units)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with units.jsonl and queries-*.jsonl")
    parser.add_argument("--embedder", default="minilm", help="as CQ_EMBEDDER")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    options = parser.parse_args()
    if not (options.folder / "units.jsonl").is_file():
        parser.error(f"{options.folder} has no units.jsonl")
    tables, took, units = measure(options.folder, options.embedder)
    print(f"{units} units embedded by {options.embedder} in {took:.0f} s.")
    for each in tables:
        print("", *(markdown if options.markdown else plain)(each), sep="\n")


if __name__ == "__main__":
    main()
