"""pgvector finds the nearest: as near as numpy would say, of no other units, and only where it is."""

import random

import numpy as np
import pytest
from sqlalchemy import insert, text

import search
from embeddings import pack
from embeddings.encoders import Hashed
from index.near import Near
from index.vectors import Vectors
from models import Unit, Vector, db, near
from models.base import write
from tests.cast import HASHED, eventually
from tests.commands import flask
from tests.homes import database_of

vector = pytest.mark.only("vector", why="pgvector")
MODEL, DIMENSION = "hashed", 256
WORDS = [f"word{number}" for number in range(3000)]


def store(rows, status=lambda _: "approved", tier=lambda _: "public"):
    """Units with these vectors, under the row numbers 1000, 1001 and so on."""
    change = write()
    db.session.execute(
        insert(Unit),
        [
            {
                "pk": 1000 + place,
                "id": f"ku_{place:032x}",
                "status": status(place),
                "tier": tier(place),
                "domains": [],
                "summary": "",
                "detail": "",
                "action": "",
                "languages": [],
                "frameworks": [],
                "pattern": "",
                "first_observed": "",
                "last_confirmed": "",
                "created_at": "",
                "created_by": "",
                "content_hash": "",
                "changed": change,
            }
            for place in range(len(rows))
        ],
    )
    made = {1000 + place: ("hash", [pack(row)]) for place, row in enumerate(rows)}
    Vector.put(MODEL, DIMENSION, made)
    db.session.commit()
    db.session.execute(text("ANALYZE"))
    db.session.commit()


def texts(count, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(5, 30))) for _ in range(count)]


@pytest.fixture
def inside(app):
    with app.app_context():
        yield
        db.session.remove()


@pytest.fixture
def crowd(inside):
    """(Near over 4,000 units of all states, their vectors): every fifth is public, private, pending,
    rejected and retired.
    """
    rows = Hashed().encode(texts(4000, "units"))
    states = ["approved", "approved", "pending", "rejected", "retired"]
    store(rows, lambda n: states[n % 5], lambda n: "private" if n % 5 else "public")
    found = Near()
    found.load(MODEL, DIMENSION)
    return found, rows


def exact(rows, asked, shown, limit):
    """The places of the rows of largest product, of those that may be shown."""
    similar = rows @ asked
    places = [place for place in np.argsort(-similar, kind="stable") if shown(place)]
    return places[:limit], similar


@vector
def test_pgvector_finds_what_is_nearest_and_may_be_shown(crowd):
    found, rows = crowd
    masks = [
        (lambda asked: found.nearest(asked, 10, private=True), lambda n: n % 5 < 2),
        (lambda asked: found.nearest(asked, 10, private=False), lambda n: n % 5 == 0),
    ]
    for nearest, shown in masks:
        hit = 0
        for asked in Hashed().encode(texts(40, "questions")):
            answer = nearest(asked)
            best, similar = exact(rows, asked, shown, 10)
            assert len(answer) == 10
            assert all(shown(pk - 1000) for pk, _ in answer)
            assert [similarity for _, similarity in answer] == pytest.approx(
                [similar[pk - 1000] for pk, _ in answer], abs=1e-5
            )
            assert answer == sorted(answer, key=lambda pair: -pair[1])
            hit += sum(similar[pk - 1000] >= similar[best[-1]] - 1e-6 for pk, _ in answer)
        assert hit / 400 >= 0.95


@vector
def test_similarities_are_those_of_the_rows(crowd):
    found, rows = crowd
    asked = Hashed().encode(["word1 word2 word3"])[0]
    told = found.similarities([1000, 1003, 5, 4999], asked)
    assert told.keys() == {1000, 1003, 4999}
    for pk, similarity in told.items():
        assert similarity == pytest.approx(float(rows[pk - 1000] @ asked), abs=1e-5)
    assert found.similarities([], asked) == {}


@vector
def test_alike_are_pending_and_approved_units_without_the_unit_itself(crowd):
    found, rows = crowd
    hit = 0
    for place in range(0, 400, 10):
        best, _ = exact(rows, rows[place], lambda n, own=place: n % 5 < 3 and n != own, 5)
        alike = [pk - 1000 for pk, _ in found.alike(1000 + place, 5)]
        assert all(each % 5 < 3 and each != place for each in alike)
        hit += len(set(best) & set(alike))
    assert hit / 200 >= 0.95
    assert found.alike(77, 5) is None


@vector
def test_a_unit_of_many_rows_is_found_once(inside):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((60, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    store(rows)
    asked = rows[0]
    blobs = [pack(asked)] * 50
    Vector.put(MODEL, DIMENSION, {1000: ("hash", blobs), 1001: ("hash", blobs)})
    db.session.commit()
    found = Near()
    found.load(MODEL, DIMENSION)
    pks = [pk for pk, _ in found.nearest(asked, 10)]
    assert len(pks) == len(set(pks)) == 10
    assert set(pks[:2]) == {1000, 1001}


@vector
def test_queries_are_answered_by_pgvector_and_ready_says_so(make_call):
    call = make_call(**HASHED)
    near_one = call.approve("The cache keeps a stale answer", ["cache"])
    call.approve("Locks outlive what was killed", ["locks"])
    call.understands(2)
    ready = call.app.test_client().get("/ready").json
    assert ready["embedder"]["nearest"] == "pgvector"
    assert call.found(q="a cache keeps a stale answer")[0] == near_one["id"]
    told = call(
        "GET", "/knowledge", key="carl", query_string={"q": "stale answer of a cache", "explain": 1}
    )
    assert told.headers["CQ-Search"] == "semantic"
    call("POST", f"/review/{near_one['id']}/retire", {}, user="rita")
    assert near_one["id"] not in call.found(q="a cache keeps a stale answer")


@vector
def test_vectors_that_were_written_without_pgvector_are_taken_over(make_call):
    call = make_call(**HASHED)
    unit = call.approve("The cache keeps a stale answer", ["cache"])
    call.understands(1)
    with call.app.app_context():
        db.session.execute(text("UPDATE vectors SET near = NULL"))
        db.session.commit()
        found = Near()
        found.load(MODEL, DIMENSION)
        assert found.count() == 1
        assert db.session.scalar(text("SELECT count(*) FROM vectors WHERE near IS NULL")) == 0
    assert call.found(q="a cache keeps a stale answer") == [unit["id"]]


@vector
def test_a_reindex_makes_what_pgvector_lacks_and_drops_the_index_of_another_model(
    make_call, environ
):
    call = make_call(**HASHED)
    call.approve("The cache keeps a stale answer", ["cache"])
    call.approve("Locks outlive what was killed", ["locks"])
    call.understands(2)
    search.stop(call.app)
    with call.app.app_context():
        near.index("another", 3)
        db.session.execute(text("UPDATE vectors SET near = NULL"))
        db.session.execute(text("UPDATE vectors SET vector = '' WHERE unit_pk = 1"))
        db.session.commit()
    code, said, told = flask({**environ, **HASHED}, "reindex")
    assert code == 0, told
    assert "All 2 units" in said
    with call.app.app_context():
        rows = db.session.execute(
            text("SELECT near IS NULL, octet_length(vector) FROM vectors")
        ).all()
        assert rows == [(False, 4 * DIMENSION)] * 2
        names = db.session.scalars(
            text("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'ix_vectors_near%'")
        ).all()
        assert len(names) == 1


@vector
def test_the_index_is_built_once_and_anew_where_it_was_not_built_to_its_end(inside, home, environ):
    def built():
        return home.run(
            "SELECT indexrelid::int, indisvalid FROM pg_index JOIN pg_class"
            " ON pg_class.oid = indexrelid WHERE relname LIKE 'ix_vectors_near%'",
            database_of(environ),
        )

    near.index(MODEL, DIMENSION)
    ((first, valid),) = built()
    near.index(MODEL, DIMENSION)
    assert built() == [(first, True)]
    home.run(
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = {first}", database_of(environ)
    )
    near.index(MODEL, DIMENSION)
    ((second, valid),) = built()
    assert (second != first, valid) == (True, True)


@pytest.mark.only("sqlite", "postgres", why="a database without pgvector")
def test_without_pgvector_numpy_serves_and_ready_says_so(make_call):
    call = make_call(**HASHED)
    unit = call.approve("The cache keeps a stale answer", ["cache"])
    call.understands(1)
    assert call.app.test_client().get("/ready").json["embedder"]["nearest"] == "numpy"
    assert type(call.app.extensions["cq_meaning"].vectors) is Vectors
    assert call.found(q="a cache keeps a stale answer") == [unit["id"]]


@pytest.mark.only("postgres", why="a database that has no pgvector yet")
def test_who_may_add_pgvector_has_it_at_the_next_start(home, environ, make_call):
    """An account that may not goes on with numpy; the vectors are taken over."""
    call = make_call(**HASHED)
    unit = call.approve("The cache keeps a stale answer", ["cache"])
    call.understands(1)
    search.stop(call.app)
    url = environ["CQ_DATABASE_URL"].replace("cq@", "postgres@")
    again = make_call(CQ_DATABASE_URL=url, **HASHED)
    assert eventually(lambda: again.found(q="a cache keeps a stale answer") == [unit["id"]])
    again.understands(1)
    assert again.app.test_client().get("/ready").json["embedder"]["nearest"] == "pgvector"
    found = home.run("SELECT near IS NULL FROM vectors", database_of(environ))
    assert found == [(False,)]
