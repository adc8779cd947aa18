"""Vectors: made of which texts, kept as which bytes, found how near, and how they follow the store."""

import json
import os
import random
import struct
import subprocess
import sys
import threading
import time
from itertools import pairwise
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import pytest
from click.testing import CliRunner
from flask.cli import FlaskGroup
from sqlalchemy import select

import embeddings
from embeddings import GONE, PENDING, PRIVATE, PUBLIC, Matrix
from embeddings.encoders import Hashed
from models import VECTORS, Change, Unit, Vector, db
from models.base import write
from tests.cast import HASHED, ROOT, alter, eventually

DETAIL = 8000


def unit_rows(rng, count, dimension):
    rows = rng.standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# Texts


def prose(rng, space=" "):
    """Words of which each stands once, so that a piece has one place in it."""
    words = (f"{'x' * rng.randint(0, 12)}{number}" for number in range(rng.randint(0, 900)))
    return space.join(words)[:DETAIL]


def mixed(rng):
    """Short words and such as fill a window, in lines and out of them."""
    words = [
        f"{number}" + "".join(rng.choices("abcdefghij", k=rng.choice([1, 5, 9, 120, 950])))
        for number in range(rng.randint(1, 60))
    ]
    return "".join(word + rng.choice([" ", "\n", "\n\n", "\t"]) for word in words)[:DETAIL]


def unbroken(rng, low, high):
    """Characters without any space; no stretch of them comes twice."""
    return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(0, DETAIL)))


TEXTS = {
    "prose": prose,
    "lines": lambda rng: prose(rng, "\n"),
    "tabs": lambda rng: prose(rng, "\t"),
    "wide spaces": lambda rng: prose(rng, "\u3000"),
    "mixed": mixed,
    "one word": lambda rng: unbroken(rng, ord("a"), ord("z")),
    "CJK": lambda rng: unbroken(rng, 0x4E00, 0x9FFF),
    "emoji": lambda rng: unbroken(rng, 0x1F300, 0x1F5FF),
    "8000 of CJK": lambda rng: "".join(chr(rng.randint(0x4E00, 0x9FFF)) for _ in range(DETAIL)),
    "a word of 8000": lambda rng: "".join(rng.choices("abcdefghij", k=DETAIL)),
}


def places(text, pieces):
    """(start, end) of each piece."""
    start = -1
    for piece in pieces:
        start = text.find(piece, start + 1)
        assert start >= 0, "a piece is no part of the text, or not behind the one before"
        yield start, start + len(piece)


@pytest.mark.parametrize("kind", TEXTS)
def test_windows_overlap_and_lose_nothing(kind):
    """Of any text: one that is short is one piece, whole."""
    rng = random.Random(kind)
    for _ in range(40):
        text = TEXTS[kind](rng)
        summary, *pieces = embeddings.passages("the summary", text)
        assert summary == "the summary"
        assert all(len(piece) <= 900 for piece in pieces)
        if len(text) <= 200:
            assert pieces == [text]
        found = list(places(text, pieces))
        assert found[0][0] == 0
        assert found[-1][1] == len(text)
        for (_, end), (start, _) in pairwise(found):
            # Where words fill a window alone, what overlaps may be nothing; then none is torn.
            between = kind == "mixed" and text[start - 1].isspace() and start == end
            assert start < end or between, "no overlap"


@pytest.mark.parametrize("kind", ["prose", "lines", "tabs", "wide spaces"])
def test_windows_cut_no_word(kind):
    """Whatever stands between words."""
    rng = random.Random(kind)
    for _ in range(40):
        text = TEXTS[kind](rng)
        words = set(text.split())
        _, *pieces = embeddings.passages("", text)
        # Only the end of the text itself may be the middle of a word.
        assert set(" ".join(pieces).split()) <= words


def test_a_long_text_makes_no_more_than_a_few_dozen_windows():
    rng = random.Random(0)
    for make in TEXTS.values():
        assert len(embeddings.passages("", make(rng))) <= 42


def test_the_first_row_is_the_summary_twice_and_the_beginning_of_the_detail_once():
    rows = unit_rows(np.random.default_rng(1), 5, 16)
    made = embeddings.pooled(rows)
    assert made.shape == (4, 16)
    assert made.dtype == np.float32
    first = 2 * rows[0] + rows[1]
    assert np.allclose(made[0], first / np.linalg.norm(first), atol=1e-6)
    assert np.array_equal(made[1:], rows[2:])
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    assert embeddings.pooled(rows[:2]).shape == (1, 16)


def test_words_that_change_place_are_other_words():
    """What tells whether a unit's rows are of its words."""
    digest = embeddings.digest
    assert digest("ab", "c") == digest("ab", "c")
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc", ""), digest("c", "ab")}) == 4


# Bytes


def test_a_vector_is_kept_as_little_endian_float32():
    vector = np.array([0.6, -0.8, 0.0], np.float32)
    blob = embeddings.pack(vector)
    assert blob == struct.pack("<3f", *vector.tolist())
    assert embeddings.pack(vector.astype(">f8")) == blob
    assert np.array_equal(embeddings.unpack(blob, 3), vector)
    for row in unit_rows(np.random.default_rng(2), 50, 384):
        assert np.array_equal(embeddings.unpack(embeddings.pack(row), 384), row)


GOOD = struct.pack("<4f", 0.5, -0.5, 0.5, 0.5)
BAD = {
    "nothing": b"",
    "too short": GOOD[:-1],
    "too long": GOOD + b"\0",
    "another dimension": GOOD[:12],
    "not a number": struct.pack("<4f", float("nan"), 0, 0, 0),
    "infinite": struct.pack("<4f", float("inf"), 0, 0, 0),
    "endless both ways": struct.pack("<4f", float("inf"), float("-inf"), 0, 1),
    "zero": bytes(16),
    "a little short": struct.pack("<4f", 0.99, 0, 0, 0),
    "twice as long": struct.pack("<4f", 1, -1, 1, 1),
    "huge": struct.pack("<4f", 3e38, 3e38, 3e38, 3e38),
    "a signal": struct.pack("<4I", 0x7FA00000, 0, 0, 0),
    "turned round": struct.pack(">4f", 0.5, -0.5, 0.5, 0.5),
}


@pytest.mark.parametrize("kind", BAD)
def test_bytes_that_are_no_vector_of_length_1_are_refused(kind):
    """Row 49: without a word of numpy's about it."""
    assert embeddings.unpack(GOOD, 4) is not None
    assert embeddings.unpack(BAD[kind], 4) is None


# The matrix


class Plain:
    """The same as `Matrix`, by the plain rule."""

    def __init__(self):
        self.units = {}

    def put(self, pk, kind, rows):
        self.units[pk] = (kind, np.array(rows))

    def drop(self, pk):
        self.units.pop(pk, None)

    def mark(self, pk, kind):
        if pk in self.units:
            self.units[pk] = (kind, self.units[pk][1])
        return pk in self.units

    def similarities(self, vector, least=PENDING):
        return {
            pk: float((rows @ vector).max())
            for pk, (kind, rows) in self.units.items()
            if kind >= least
        }


def check(matrix, plain, rng, vector):
    for least in (PENDING, PRIVATE, PUBLIC):
        similar = plain.similarities(vector, least)
        assert matrix.count(least) == len(similar)
        for limit in (1, 7, len(plain.units) + 5):
            found = matrix.nearest(vector, limit, least)
            best = sorted(similar.values(), reverse=True)[:limit]
            assert [likeness for _, likeness in found] == pytest.approx(best, abs=1e-5)
            assert len(dict(found)) == len(found)
            for pk, likeness in found:
                assert likeness == pytest.approx(similar[pk], abs=1e-5)
    some = rng.sample(range(200), 20)
    known = plain.similarities(vector)
    assert matrix.similarities(some, vector) == pytest.approx(
        {pk: known[pk] for pk in some if pk in known}, abs=1e-5
    )
    for pk in some:
        first = plain.units[pk][1][0] if pk in plain.units else None
        assert np.array_equal(matrix.of(pk), first) if first is not None else matrix.of(pk) is None


@pytest.mark.parametrize("dimension", [7, 100])
def test_the_matrix_finds_what_the_plain_rule_finds_through_any_change(dimension):
    """Thousands of them: units of one row and of many, of every kind, come, change and go."""
    rng, numbers = random.Random(dimension), np.random.default_rng(dimension)
    pool = unit_rows(numbers, 300, dimension)
    matrix, plain = Matrix(dimension), Plain()
    most = 0
    for step in range(2000):
        pk, kind = rng.randrange(200), rng.choice([PENDING, PRIVATE, PUBLIC])
        verb = rng.choice(["put", "put", "drop", "mark"])
        if verb == "put":
            # Out of a pool, so that some are equal.
            rows = [pool[rng.randrange(300)] for _ in range(rng.choice([1, 1, 1, 2, 5]))]
            matrix.put(pk, kind, rows)
            plain.put(pk, kind, rows)
        elif verb == "drop":
            matrix.drop(pk)
            plain.drop(pk)
        else:
            assert matrix.mark(pk, kind) == plain.mark(pk, kind)
        most = max(most, sum(len(rows) for _, rows in plain.units.values()))
        if step % 100 == 0:
            check(matrix, plain, rng, pool[rng.randrange(300)])
            check(matrix, plain, rng, unit_rows(numbers, 1, dimension)[0])
    # A place that was given up is used again: a unit's earlier rows stand beside its new ones never.
    assert matrix.size == most


def test_an_empty_matrix_has_nothing_near():
    matrix = Matrix(5)
    vector = unit_rows(np.random.default_rng(0), 1, 5)[0]
    assert matrix.nearest(vector, 10) == []
    assert matrix.similarities([1, 2], vector) == {}
    matrix.put(1, PRIVATE, [vector])
    matrix.drop(1)
    matrix.drop(1)
    assert matrix.nearest(vector, 10) == []
    assert matrix.count(GONE) == 0
    assert not matrix.mark(1, PUBLIC)


def test_equals_are_all_found_once():
    """As many as are asked for, also where one unit has more rows than that."""
    rows = unit_rows(np.random.default_rng(3), 2, 12)
    near, far = rows if rows[0] @ rows[1] < 0.9 else (rows[0], -rows[0])
    matrix = Matrix(12)
    matrix.put(1, PRIVATE, [near] * 60)
    for pk in range(2, 40):
        matrix.put(pk, PRIVATE, [near, near])
    matrix.put(40, PRIVATE, [far])
    for limit in (1, 5, 39, 40, 100):
        found = dict(matrix.nearest(near, limit))
        assert len(found) == min(limit, 40)
        assert set(found) - {40} <= set(range(1, 40))
    assert (40 in dict(matrix.nearest(near, 39)), 40 in dict(matrix.nearest(near, 40))) == (0, 1)


@pytest.mark.parametrize("dimension", [100, 384])
def test_of_many_rows_the_first_fifty_are_those_of_the_exact_product(dimension):
    """Beyond what is multiplied out: at least 98 of 100 of them, for everybody and in public."""
    numbers = np.random.default_rng(dimension)
    centres = unit_rows(numbers, 8, dimension)
    count = 8000
    rows = centres[numbers.integers(0, 8, count)] + 0.9 * unit_rows(numbers, count, dimension)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kinds = numbers.choice([PENDING, PRIVATE, PUBLIC], count, p=[0.02, 0.23, 0.75])
    matrix = Matrix(dimension)
    matrix.reserve(count)
    for pk in range(count):
        matrix.put(pk, int(kinds[pk]), rows[pk : pk + 1])
    kept = []
    asked = centres[numbers.integers(0, 8, 30)] + 0.7 * unit_rows(numbers, 30, dimension)
    asked = (asked / np.linalg.norm(asked, axis=1, keepdims=True)).astype(np.float32)
    for vector in asked:
        similar = rows @ vector
        for least in (PENDING, PRIVATE, PUBLIC):
            shown = np.flatnonzero(kinds >= least)
            exact = shown[np.argsort(-similar[shown])[:50]]
            found = matrix.nearest(vector, 50, least)
            assert len(found) == 50
            assert all(kinds[pk] >= least for pk, _ in found)
            assert all(abs(likeness - similar[pk]) < 1e-5 for pk, likeness in found)
            kept.append(len(set(exact.tolist()) & set(dict(found))) / 50)
    assert np.mean(kept) >= 0.98


# The store


def store(app, count, first=1, **more):
    """Put so many approved units into the database at once, as one change."""
    with app.app_context():
        change = write()
        rows = [
            {
                **ROW,
                "pk": pk,
                "id": f"ku_{pk:032x}",
                "summary": f"unit{pk} word{pk}",
                "detail": f"detail{pk} of it",
                "changed": change,
                **more,
            }
            for pk in range(first, first + count)
        ]
        db.session.execute(Unit.__table__.insert(), rows)
        db.session.commit()


ROW = {
    "status": "approved",
    "version": 1,
    "tier": "private",
    "domains": ["many"],
    "action": "a",
    "languages": [],
    "frameworks": [],
    "pattern": "",
    "confidence": 0.5,
    "confirmations": 1,
    "first_observed": "2026-01-01T00:00:00.000000Z",
    "last_confirmed": "2026-01-01T00:00:00.000000Z",
    "created_at": "2026-01-01T00:00:00.000000Z",
    "created_by": "carl",
    "revision": 1,
    "open_flags": 0,
    "content_hash": "x",
}


def kept(app, model="hashed"):
    """{row number of a unit: [(content hash, bytes)]} of what this model made."""
    with app.app_context():
        rows = db.session.execute(
            select(Vector.unit_pk, Vector.content_hash, Vector.vector)
            .where(Vector.model == model)
            .order_by(Vector.unit_pk, Vector.part)
        ).all()
    made = {}
    for pk, content_hash, blob in rows:
        made.setdefault(pk, []).append((content_hash, blob))
    return made


def number_of(app, id):
    with app.app_context():
        return Unit.find(id).pk


def meaning_of(call, id, question):
    """How near a unit is to a question, or None where it was not answered by meaning."""
    answer = call("GET", "/knowledge", key="carl", query_string={"q": question, "explain": 1})
    if answer.headers["CQ-Search"] != "semantic":
        return None
    ids = [unit["id"] for unit in answer.json["data"]]
    parts = dict(zip(ids, answer.json["explain"], strict=True))
    return parts[id]["meaning"] if id in parts else None


def ready(call):
    answer = call.app.test_client().get("/ready").json
    return answer["search"], answer["embedder"]


def begin(call):
    """Let the server begin with its vectors, as serving does."""
    ready(call)


def stop(call):
    call.app.extensions["cq_meaning"].stop()


class Reading(Hashed):
    """Keeps what it was given to read."""

    def __init__(self):
        self.read = []

    def encode(self, texts):
        self.read += texts
        return super().encode(texts)


def test_what_was_proposed_without_an_embedder_is_embedded_by_the_next_start(make_call):
    call = make_call()
    unit = call.approve("Certificates expire at midnight")
    pending = call.propose("Certificates expire at noon")
    assert kept(call.app) == {}
    later = make_call(**HASHED)
    later.understands(1)
    assert meaning_of(later, unit["id"], "Certificates expire at midnight") > 0.8
    similar = f"/review/{pending['id']}/similar"
    assert eventually(lambda: later("GET", similar, user="rita").json["mode"] == "semantic")
    assert len(kept(call.app)) == 2


def test_a_restart_makes_no_vector_again(make_call):
    first = make_call(encoder=lambda _: Hashed())
    for number in range(5):
        first.approve(f"Remark number {number}")
    first.understands(5)
    before = kept(first.app)
    stop(first)
    reading = Reading()
    second = make_call(encoder=lambda _: reading)
    second.understands(5)
    second.approve("One more remark")
    second.understands(6)
    assert {pk: rows for pk, rows in kept(first.app).items() if pk in before} == before
    summaries = [text for text in reading.read if text.startswith(("Remark", "One"))]
    assert summaries == ["One more remark"]


def test_a_unit_that_comes_back_brings_the_vectors_it_had(make_call):
    reading = Reading()
    call = make_call(encoder=lambda _: reading)
    unit = call.approve("Certificates expire at midnight")["id"]
    call.understands(1)
    for verb in ("retire", "reopen", "approve"):
        assert call("POST", f"/review/{unit}/{verb}", user="rita").status_code == 200
        call.understands(int(verb == "approve"))
    call.approve("One more remark")
    call.understands(2)
    assert reading.read.count("Certificates expire at midnight") == 1
    assert meaning_of(call, unit, "certificates expire at midnight") > 0.8


def test_everything_that_was_there_is_embedded_however_much_it_is(make_call):
    call = make_call()
    store(call.app, 300)
    later = make_call(**HASHED)
    later.understands(300)
    assert len(kept(call.app)) == 300


def test_everything_that_one_change_brings_is_embedded_however_much_it_is(make_call):
    """Beside a change before and one in the middle of it; nothing waits for the next one."""
    call = make_call(**HASHED)
    store(call.app, 1)
    call.understands(1)
    store(call.app, 300, first=2)
    call.understands(301)
    store(call.app, 40, first=302)
    store(call.app, 250, first=342)
    call.understands(591)
    assert len(kept(call.app)) == 591


class Held(Hashed):
    """Holds at texts that say so, until it may go on."""

    def __init__(self, word):
        self.word = word
        self.begun, self.going = threading.Event(), threading.Event()

    def encode(self, texts):
        if any(self.word in text for text in texts):
            self.begun.set()
            assert self.going.wait(20)
        return super().encode(texts)


def test_a_unit_edited_while_it_is_embedded_ends_with_vectors_of_its_last_words(make_call):
    held = Held("Certificates")
    call = make_call(encoder=lambda _: held)
    begin(call)
    unit = call.propose("Certificates expire at midnight")["id"]
    assert held.begun.wait(20)
    words = {"summary": "Leap seconds stop clocks", "detail": "They are added in June."}
    edited = call("PATCH", f"/review/{unit}", {"insight": words}, user="rita")
    assert edited.status_code == 200
    call("POST", f"/review/{unit}/approve", user="rita")
    held.going.set()
    pk = number_of(call.app, unit)
    wanted = embeddings.digest(**words)
    assert eventually(lambda: [made for made, _ in kept(call.app).get(pk, [])] == [wanted])
    call.understands(1)
    expected = embeddings.pooled(Hashed().encode(embeddings.passages(**words)))
    assert eventually(lambda: kept(call.app)[pk] == [(wanted, embeddings.pack(expected[0]))])
    assert eventually(lambda: (meaning_of(call, unit, words["summary"]) or 0) > 0.8)


def test_a_unit_deleted_while_it_is_embedded_hinders_nobody(make_call):
    held = Held("Certificates")
    call = make_call(encoder=lambda _: held)
    begin(call)
    unit = call.propose("Certificates expire at midnight")["id"]
    assert held.begun.wait(20)
    alter(call.app, "DELETE FROM units WHERE id = :id", id=unit)
    held.going.set()
    other = call.approve("Leap seconds stop clocks")["id"]
    call.understands(1)
    assert meaning_of(call, other, "Leap seconds stop clocks") > 0.8
    assert list(kept(call.app)) == [number_of(call.app, other)]


def test_rows_of_a_unit_that_went_away_are_not_written(app):
    with app.app_context():
        Vector.put("hashed", 4, {77: ("x", [GOOD])})
        db.session.commit()
    assert kept(app) == {}


class Turned(Hashed):
    """Another geometry of the same dimension: near to itself, far from `Hashed`."""

    model = "turned"

    def __init__(self, refused=()):
        self.refused = refused

    def encode(self, texts):
        if any(word in text for word in self.refused for text in texts):
            raise RuntimeError("not this one")
        return np.roll(super().encode(texts), 97, axis=1)


def test_rows_of_another_model_are_made_anew_and_never_mixed(make_call):
    """By meaning again only when the new model made its own; what the old one made is kept."""
    old = make_call(encoder=lambda _: Hashed())
    ids = [old.approve(f"Remark{n} about{n} things{n}")["id"] for n in range(10)]
    old.understands(10)
    before = kept(old.app)
    assert len(before) == 10
    stop(old)

    held = Held("Remark")
    held.model = "turned"
    held.encode = lambda texts, encode=held.encode: np.roll(encode(texts), 97, axis=1)
    new = make_call(encoder=lambda _: held)
    begin(new)
    assert held.begun.wait(20)
    mode, told = ready(new)
    assert (mode, told["state"], told["vectors"]) == ("domain", "ready", 0)
    assert told["reason"] == "0 of 10 approved units have vectors of this model yet"
    question = "Remark3 about3 things3"
    answer = new("GET", "/knowledge", key="carl", query_string={"q": question})
    assert answer.headers["CQ-Search"] == "domain"
    assert answer.json["data"][0]["id"] == ids[3]
    held.going.set()
    new.understands(10)
    for n, id in enumerate(ids):
        assert meaning_of(new, id, f"Remark{n} about{n} things{n}") > 0.8
    assert kept(new.app) == before
    assert len(kept(new.app, "turned")) == 10
    stop(new)

    reading = Reading()
    again = make_call(encoder=lambda _: reading)
    again.understands(10)
    assert meaning_of(again, ids[3], question) > 0.8
    assert [text for text in reading.read if "Remark" in text] == [question]


@pytest.mark.parametrize(("missing", "mode"), [(2, "semantic"), (3, "domain")])
def test_answers_go_by_meaning_once_nine_of_ten_units_have_vectors(make_call, missing, mode):
    call = make_call()
    store(call.app, 20)
    refused = [f"word{pk}" for pk in range(12, 12 + missing)]
    turned = make_call(encoder=lambda _: Turned(refused))
    assert eventually(lambda: ready(turned)[1].get("vectors") == 20 - missing)
    answer = turned("GET", "/knowledge", key="carl", query_string={"q": "unit3 word3"})
    assert answer.headers["CQ-Search"] == mode
    assert ready(turned)[0] == mode


def test_a_unit_that_could_not_be_embedded_is_tried_again_once_its_words_change(make_call):
    call = make_call()
    good = call.approve("Leap seconds stop clocks")["id"]
    bad = call.propose("Certificates with poison")["id"]
    turned = make_call(encoder=lambda _: Turned(["poison"]))
    turned.understands(1)
    words = {"insight": {"summary": "Certificates without it"}}
    assert turned("PATCH", f"/review/{bad}", words, user="rita").status_code == 200
    turned("POST", f"/review/{bad}/approve", user="rita")
    turned.understands(2)
    assert meaning_of(turned, bad, "Certificates without it") > 0.8
    assert meaning_of(turned, good, "Leap seconds stop clocks") > 0.8


def test_new_tags_are_known_before_anybody_asks(make_call):
    """The first question after a decision finds kin already."""
    call = make_call(**HASHED)
    call.understands(0)
    call.approve("Remark number one", ["alpha"])
    kin = call.app.extensions["cq_meaning"].kin
    assert eventually(lambda: kin.of("alpha") is not None)


def damage(app, pk, blob):
    """Put other bytes in the place of a unit's first row, as a bad disk would."""
    alter(
        app, "UPDATE vectors SET vector = :blob WHERE unit_pk = :pk AND part = 0", blob=blob, pk=pk
    )


RUINS = [
    b"",
    np.full(256, np.nan, "<f4").tobytes(),
    np.full(256, 3e38, "<f4").tobytes(),
    bytes(1024),
    b"\xff" * 1024,
    random.Random(5).randbytes(1024),
    random.Random(6).randbytes(1020),
]


@pytest.mark.only("sqlite", "postgres", why="vectors that are read as bytes")
def test_damaged_vectors_spoil_nothing_and_are_made_anew(make_call):
    """Row 49: found at a start; the unit is answered meanwhile and by meaning afterwards."""
    call = make_call(**HASHED)
    store(call.app, 20)
    call.understands(20)
    before = kept(call.app)
    stop(call)
    for pk, blob in enumerate(RUINS, 3):
        damage(call.app, pk, blob)
    assert kept(call.app) != before
    later = make_call(**HASHED)
    later.understands(20)
    assert kept(call.app) == before
    assert meaning_of(later, f"ku_{3:032x}", "unit3 word3") > 0.8


@pytest.mark.only("sqlite", "postgres", why="vectors that are read as bytes")
def test_a_damaged_row_that_another_process_wrote_leaves_its_unit_without_one(make_call):
    call = make_call(**HASHED)
    store(call.app, 20)
    call.understands(20)
    with call.app.app_context():
        change = write(VECTORS)
        where = Vector.__table__.update().where(Vector.unit_pk == 3)
        db.session.execute(where.values(vector=RUINS[2], changed=change))
        db.session.commit()
    assert eventually(lambda: ready(call)[1]["vectors"] == 19)


# Reindex


def reindex(call):
    """(exit code, what was said, progress and errors)."""
    flask = FlaskGroup(create_app=lambda: call.app, load_dotenv=False)
    done = CliRunner().invoke(flask, ["reindex"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


class Weary(Reading):
    """Fails after so many texts."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def encode(self, texts):
        if len(self.read) + len(texts) > self.most:
            raise RuntimeError("too weary")
        return super().encode(texts)


def test_reindex_makes_what_is_missing_and_says_so(make_call):
    reading = Reading()
    call = make_call(encoder=lambda _: reading)
    store(call.app, 30)
    store(call.app, 1, first=31, status="pending")
    store(call.app, 1, first=32, status="rejected")
    code, said, progress = reindex(call)
    assert (code, said) == (0, "All 31 units have vectors of hashed.\n")
    assert "units" in progress
    assert set(kept(call.app)) == set(range(1, 32))


def test_reindex_of_what_is_up_to_date_encodes_nothing(make_call):
    store(make_call().app, 30)
    assert reindex(make_call(encoder=lambda _: Hashed()))[0] == 0
    reading = Reading()
    call = make_call(encoder=lambda _: reading)
    before = kept(call.app)
    assert reindex(call)[:2] == (0, "All 30 units have vectors of hashed.\n")
    assert reading.read == ["warm"]
    assert kept(call.app) == before


def test_reindex_goes_on_where_it_ended(make_call):
    """Row 58: a failure is an exit code and a line; what was made by then is kept, and all else."""
    call = make_call()
    store(call.app, 300)
    alter(
        call.app,
        "INSERT INTO vectors (unit_pk, model, part, dimension, content_hash, changed, vector)"
        " VALUES (1, 'earlier', 0, 4, 'x', 1, :vector)",
        vector=GOOD,
    )
    weary = Weary(350)
    code, said, told = reindex(make_call(encoder=lambda _: weary))
    assert code == 1
    assert said == ""
    assert "RuntimeError: too weary" in told
    assert "of 300 units" in told
    assert "run it again" in told
    half = kept(call.app)
    assert 100 < len(half) < 300
    assert len(kept(call.app, "earlier")) == 1

    reading = Reading()
    code, said, _ = reindex(make_call(encoder=lambda _: reading))
    assert code == 0
    assert "All 300 units have vectors of hashed.\n" in said
    assert "1 vectors of other models are dropped.\n" in said
    assert len(kept(call.app)) == 300
    assert kept(call.app, "earlier") == {}
    assert half.items() <= kept(call.app).items()
    # A summary and a detail of each that was missing.
    assert len(reading.read) == 1 + 2 * (300 - len(half))


def test_reindex_under_another_model_makes_all_anew_and_drops_what_the_other_made(make_call):
    call = make_call(encoder=lambda _: Hashed())
    store(call.app, 20)
    assert reindex(call)[0] == 0
    before = kept(call.app)
    code, said, _ = reindex(make_call(encoder=lambda _: Turned()))
    assert code == 0
    assert said == "All 20 units have vectors of turned.\n20 vectors of other models are dropped.\n"
    after = kept(call.app, "turned")
    assert set(after) == set(before)
    assert all(after[pk] != before[pk] for pk in after)
    assert kept(call.app) == {}


def test_reindex_makes_damaged_and_outdated_vectors_anew(make_call):
    call = make_call(encoder=lambda _: Hashed())
    store(call.app, 40)
    assert reindex(call)[0] == 0
    before = kept(call.app)
    for pk, blob in enumerate(RUINS, 3):
        damage(call.app, pk, blob)
    alter(call.app, "UPDATE vectors SET content_hash = 'of other words' WHERE unit_pk = 20")
    reading = Reading()
    later = make_call(encoder=lambda _: reading)
    assert reindex(later)[0] == 0
    assert kept(later.app) == before
    assert len(reading.read) == 1 + 2 * (len(RUINS) + 1)


def test_reindex_without_a_model_is_refused(make_call):
    code, said, told = reindex(make_call())
    assert (code, said) == (1, "")
    assert "CQ_EMBEDDER is off" in told


def test_reindex_with_a_model_that_cannot_be_loaded_keeps_what_is_there(make_call):
    """Row 58."""
    call = make_call(encoder=lambda _: Hashed())
    store(call.app, 5)
    assert reindex(call)[0] == 0
    before = kept(call.app)

    def broken(_):
        raise FileNotFoundError("no such model")

    code, said, told = reindex(make_call(encoder=broken))
    assert (code, said) == (1, "")
    assert "the model is missing" in told
    assert kept(call.app) == before


def test_a_server_takes_in_what_a_reindex_beside_it_makes(make_call):
    call = make_call(**HASHED)
    store(call.app, 20)
    call.understands(20)
    alter(call.app, "UPDATE vectors SET content_hash = 'of other words'")
    alter(call.app, "UPDATE units SET summary = 'Leap seconds stop clocks' WHERE pk = 7")
    assert reindex(make_call(**HASHED))[0] == 0
    assert eventually(
        lambda: (meaning_of(call, f"ku_{7:032x}", "Leap seconds stop clocks") or 0) > 0.8
    )


MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.stdout.strip())
sys.stderr.write(done.stderr)
"""


@pytest.mark.slow
def test_reindex_needs_no_more_memory_for_more_units(make_call, environ):
    """Row 26: 5,000 units of 8 kB."""
    call = make_call()
    peaks = []
    for first, count in ((1, 500), (501, 4500)):
        store(call.app, count, first=first, detail=("some words of a long detail. " * 300)[:8000])
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                MEASURED,
                sys.executable,
                "-m",
                "flask",
                "--app",
                "app",
                "reindex",
            ],
            cwd=ROOT,
            env={**os.environ, **environ, **HASHED},
            capture_output=True,
            text=True,
            check=True,
        )
        code, peak, said = done.stdout.split(maxsplit=2)
        assert (code, said.strip()) == (
            "0",
            f"All {first - 1 + count} units have vectors of hashed.",
        ), done
        peaks.append(int(peak) / 1024)
    assert peaks[1] < 250, peaks
    assert peaks[1] < peaks[0] + 30, peaks


# Two processes


class Remote:
    """Calls to a real server, as a person's session or by a person's API key."""

    def __init__(self, process, call):
        self.url, self.call = process.url, call

    def __call__(self, method, path, body=None, user=None, key=None, **query):
        token = self.call.tokens[user] if user else self.call.keys[key or "carl"]
        request = Request(
            f"{self.url}{path}" + (f"?{urlencode(query)}" if query else ""),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urlopen(request, timeout=20) as answer:
                return answer.headers.get("CQ-Search"), json.load(answer)
        except HTTPError as refusal:
            with refusal:
                raise AssertionError(refusal.read()) from None

    def vectors(self):
        _, told = self("GET", "/ready")
        return told["search"] == "semantic" and told["embedder"]["vectors"]


@pytest.mark.slow
def test_a_unit_approved_through_one_process_is_found_by_meaning_through_the_other(
    serve, make_call
):
    """Within a second, fresh as it is, and gone within a second."""
    call = make_call()
    store(call.app, 20)
    one, other = (Remote(serve(**HASHED), call) for _ in range(2))
    assert eventually(lambda: one.vectors() == 20 and other.vectors() == 20)
    for n in range(4):
        words = f"certificates{n} expire{n} at midnight{n}"
        insight = {"summary": words, "detail": words, "action": "a"}
        body = {"domains": ["elsewhere"], "insight": insight}
        id = one("POST", "/api/v1/knowledge", body)[1]["id"]
        one("POST", f"/api/v1/review/{id}/approve", {}, user="rita")
        assert within_a_second(other, words, [(id, True)])
        other("POST", f"/api/v1/review/{id}/retire", {}, user="rita")
        assert within_a_second(one, words, [])


def within_a_second(remote, question, answer):
    """Whether it answers so by then: the time is what is promised."""
    began = time.monotonic()
    return eventually(lambda: meant(remote, question) == answer, 5) and time.monotonic() < began + 1


def meant(remote, question):
    """[(id, whether by its vector)] of an answer by meaning, else None."""
    mode, answer = remote("GET", "/api/v1/knowledge", q=question, explain=1)
    if mode != "semantic":
        return None
    pairs = zip(answer["data"], answer["explain"], strict=True)
    return [(unit["id"], parts["meaning"] > 0.9) for unit, parts in pairs]


@pytest.mark.slow
def test_two_processes_embed_a_bulk_without_doing_it_twice(serve, make_call):
    call = make_call()
    one, other = (Remote(serve(**HASHED), call) for _ in range(2))
    assert eventually(lambda: one.vectors() == 0 and other.vectors() == 0)
    before = written(call.app)
    store(call.app, 400, detail=("some words of a long detail. " * 300)[:8000])
    assert eventually(lambda: one.vectors() == 400 and other.vectors() == 400, 60)
    assert len(kept(call.app)) == 400
    # Sixteen at a time: 25 steps if nothing is done twice, 50 if everything is.
    assert 25 <= written(call.app) - before < 40


def written(app):
    """How often vectors were written."""
    with app.app_context():
        return db.session.scalar(select(Change.number).where(Change.id == VECTORS))
