"""Hundreds of units at once, real ones where they are at hand: proposed, approved in bulk, found again.

The variable CQ_RETRIEVAL_DATA names a folder with `units.jsonl`; where there is none, units of the
same shape are made up.
"""

import json
import os
import random
from pathlib import Path

import pytest

from cq import unit as rules
from tests.cast import ROOT

pytestmark = pytest.mark.slow
COUNT = 974
DEFAULT = ROOT.parent / "shared" / "data" / "retrieval"


def units():
    path = Path(os.environ.get("CQ_RETRIEVAL_DATA") or DEFAULT) / "units.jsonl"
    if not path.exists():
        return made_up()
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def made_up():
    """Units that share their words and tags about as much as real ones: a few are in most."""
    rng = random.Random(974)
    syllables = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "io", "u")]
    words = sorted({"".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(3000)})
    weights = [1 / place for place in range(1, len(words) + 1)]
    tags = [f"tool-{number}" for number in range(60)]

    def text(low, high):
        return " ".join(rng.choices(words, weights, k=rng.randint(low, high)))

    def unit():
        return {
            "id": f"ku_{rng.getrandbits(128):032x}",
            "domains": [rng.choice(tags), "static-analysis"],
            "insight": {
                "summary": f"Checks for {text(8, 30)}.",
                "detail": text(20, 150),
                "action": f"```python\n{text(5, 40)}\n```",
            },
            "context": {"languages": ["python"], "frameworks": [], "pattern": ""},
            "extensions": {"made-up:rule": text(2, 2).replace(" ", "-")},
        }

    return [unit() for _ in range(COUNT)]


def test_what_is_made_up_is_the_same_each_time_and_tells_units_apart():
    first, second = made_up(), made_up()
    assert first == second
    assert len(first) == COUNT
    assert len({unit["id"] for unit in first}) == COUNT
    assert len({unit["insight"]["summary"] for unit in first}) == COUNT


@pytest.fixture
def stored(make_call):
    """(call, units): all of them approved in an empty server."""
    call, known = make_call(CQ_READ_RATE="off", CQ_WRITE_RATE="off"), units()
    assert len(known) == COUNT
    for unit in known:
        body = {name: value for name, value in unit.items() if name != "id"}
        headers = {"Idempotency-Key": unit["id"]}
        answer = call("POST", "/knowledge", body, key="carl", headers=headers)
        assert (answer.status_code, answer.json["id"]) == (201, unit["id"])
    for start in range(0, COUNT, 200):
        ids = [unit["id"] for unit in known[start : start + 200]]
        answer = call("POST", "/review/bulk", {"decision": "approve", "ids": ids}, user="rita")
        assert answer.status_code == 200, answer.text
        assert [(one["unit_id"], one["status"]) for one in answer.json["data"]] == [
            (id, "approved") for id in ids
        ]
    return call, known


def test_hundreds_of_units_are_stored_as_they_came_and_found_again(stored):
    call, known = stored
    stats = call("GET", "/knowledge/stats", key="cleo").json
    assert stats["total_count"] == COUNT
    for unit in known:
        kept = call("GET", f"/knowledge/{unit['id']}", key="cleo").json
        for name in ("insight", "context", "extensions"):
            assert kept[name] == unit[name]
        assert kept["domains"] == rules.normalise(unit["domains"])
    by_tags(call, known)
    by_words(call, known)


def by_tags(call, known):
    """Each stands in the answer to its own tags, or is one of more equals than an answer holds."""
    for unit in known:
        asked = {"domains": unit["domains"], "limit": 50, "explain": 1}
        answer = call("GET", "/knowledge", key="cleo", query_string=asked).json
        if unit["id"] not in [found["id"] for found in answer["data"]]:
            equal = rules.relevance(1, 1) * rules.START
            assert len(answer["data"]) == 50
            assert answer["explain"][-1]["score"] == pytest.approx(equal), unit["domains"]


def by_words(call, known):
    """The start of a summary finds its unit among the first five, nearly always."""
    among_five = 0
    for unit in known:
        among_five += unit["id"] in call.found(q=unit["insight"]["summary"][:200], limit=5)
    assert among_five / COUNT >= 0.95
