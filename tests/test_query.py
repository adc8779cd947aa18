"""Finding by tags: U's ranking, whatever the index does to be fast."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

import search
from cq import unit as rules
from models import Unit, db
from models.base import write
from tests.cast import proposal


def test_the_worked_examples_rank_as_upstream_ranks_them(call, app):
    """The table of the agent specification, section 3.7: order A B D C G with these scores."""
    context = {"languages": ["go"], "frameworks": ["grpc"], "pattern": "API-Client"}
    bare = {"languages": [], "frameworks": [], "pattern": ""}
    table = {
        "A": (["api", "payments"], context, 0.5, 0.5),
        "B": (["api", "payments"], bare, 0.9, 0.495),
        "C": (["api"], {**bare, "languages": ["go"]}, 0.8, 0.34),
        "D": (["api", "payments", "stripe"], bare, 1.0, 0.55 * 2 / 3),
        "E": (["zzz"], context, 1.0, None),
        "G": (["api", "db", "x"], bare, 0.5, 0.06875),
    }
    names = {}
    for name, (domains, words, confidence, _) in table.items():
        names[call.approve(name, domains, context=words)["id"]] = name
        set_confidence(app, name, confidence)
    answer = call(
        "GET",
        "/knowledge",
        key="cleo",
        query_string={
            "domains": ["api", "payments"],
            "languages": "go",
            "frameworks": "grpc",
            "pattern": "api-client",
            "limit": 10,
            "explain": 1,
        },
    ).json
    assert [names[unit["id"]] for unit in answer["data"]] == list("ABDCG")
    scores = [part["score"] for part in answer["explain"]]
    assert scores == pytest.approx([table[name][3] for name in "ABDCG"])


def set_confidence(app, summary, confidence):
    with app.app_context():
        change = write()
        rows = Unit.__table__.update().where(Unit.summary == summary)
        db.session.execute(rows.values(confidence=confidence, changed=change))
        db.session.commit()


def test_ties_go_to_the_greater_id(call):
    ids = [call.approve(f"same {number}", ["tie"])["id"] for number in range(9)]
    assert call.found(domains="tie", limit=4) == sorted(ids, reverse=True)[:4]


def plain_ranking(units, asked, limit, public_only):
    """The rule of the HTTP specification, section 3.3, unit by unit."""

    def found():
        for unit in units:
            if unit["status"] != "approved" or (public_only and unit["tier"] != "public"):
                continue
            shared = len(set(unit["domains"]) & set(asked["domains"]))
            if shared:
                relevance = rules.relevance(
                    shared,
                    len(set(unit["domains"]) | set(asked["domains"])),
                    bool(set(map(str.casefold, unit["languages"])) & set(asked["languages"])),
                    bool(set(map(str.casefold, unit["frameworks"])) & set(asked["frameworks"])),
                    bool(asked["pattern"]) and unit["pattern"].casefold() == asked["pattern"],
                )
                yield relevance * unit["confidence"], unit["id"]

    return [id for _, id in sorted(found(), reverse=True)[:limit]]


def test_the_index_ranks_like_the_plain_rule_through_any_change(app, actor):
    """Thousands of units with few values, so that ties abound, changed in every way meanwhile."""
    rng = random.Random(7)
    tags = [f"t{number}" for number in range(14)]
    units = {}

    def row(pk):
        return {
            "pk": pk,
            "id": rules.new_id(),
            "status": "approved",
            "version": 1,
            "tier": rng.choice(["private", "public"]),
            "domains": rng.sample(tags, rng.randint(1, 4)),
            "summary": "s",
            "detail": "d",
            "action": "a",
            "languages": rng.sample(["Python", "go"], rng.randint(0, 2)),
            "frameworks": rng.sample(["flask", "gin"], rng.randint(0, 1)),
            "pattern": rng.choice(["", "", "api"]),
            "confidence": rng.choice([0.0, 0.35, 0.5, 0.5, 0.8]),
            "confirmations": 1,
            "first_observed": "x",
            "last_confirmed": "x",
            "created_at": "x",
            "created_by": "carl",
            "revision": 1,
            "open_flags": 0,
            "content_hash": "x",
        }

    def store(rows):
        change = write()
        for values in rows:
            values["changed"] = change
            units[values["pk"]] = values
            db.session.execute(Unit.__table__.delete().where(Unit.pk == values["pk"]))
        db.session.execute(Unit.__table__.insert(), rows)
        db.session.commit()

    def check():
        for _ in range(60):
            asked = {
                "domains": rng.sample([*tags, "none"], rng.randint(1, 3)),
                "languages": rng.choice([[], [], ["python"], ["python", "go"]]),
                "frameworks": rng.choice([[], ["gin"]]),
                "pattern": rng.choice(["", "", "api"]),
            }
            limit, private = rng.choice([1, 5, 50]), rng.choice([True, False])
            _, found = search.find(**asked, limit=limit, private=private)
            ids = [units[pk]["id"] for pk, _ in found]
            assert ids == plain_ranking(units.values(), asked, limit, not private), asked

    store([row(pk) for pk in range(1, 3001)])
    check()
    for step in range(12):
        some = rng.sample(sorted(units), 40)
        changed = []
        for pk in some:
            kind = rng.randrange(4)
            if kind == 0:
                changed.append({**units[pk], "confidence": rng.choice([0.0, 0.5, 0.8])})
            elif kind == 1:
                changed.append({**units[pk], "status": "retired"})
            elif kind == 2:
                fresh = row(pk)
                changed.append(
                    {**fresh, "id": units[pk]["id"], "revision": units[pk]["revision"] + 1}
                )
            else:
                changed.append({**units[pk], "tier": "public", "status": "approved"})
        store(changed + [row(3001 + 20 * step + more) for more in range(20)])
        check()


def test_the_index_misses_nothing_that_was_decided_while_a_request_was_reading(app, call):
    """A reader's snapshot from before a decision must not be what the index takes for the state."""
    with app.app_context():
        assert db.session.query(Unit).count() == 0
        with ThreadPoolExecutor() as elsewhere:
            unit = elsewhere.submit(call.approve, "decided meanwhile", ["meanwhile"]).result()
        search.index()
    assert call.found(domains="meanwhile") == [unit["id"]]


def test_only_approved_units_are_found(call):
    pending = call.propose("pending", ["seen"])
    rejected = call.propose("rejected", ["seen"])
    call("POST", f"/review/{rejected['id']}/reject", {"reason": "no"}, user="rita")
    approved = call.approve("approved", ["seen"])
    assert call.found(domains="seen") == [approved["id"]]
    assert call.found(q="pending rejected approved") == [approved["id"]]
    call("POST", f"/review/{approved['id']}/retire", user="rita")
    assert call.found(domains="seen") == []
    assert call.found(q="approved") == []
    assert pending["id"] not in call.found(q="pending")


def test_without_a_key_only_public_units_are_seen(call, make_call):
    private = call.approve("a private one", ["tiers"])["id"]
    public = call.approve("a public one", ["tiers"], tier="public")["id"]
    assert set(call.found(domains="tiers")) == {private, public}
    assert call.found(domains="tiers", key=None) == [public]
    assert call.found(q="private public one", key=None) == [public]
    assert call("GET", f"/knowledge/{private}").status_code == 404
    assert call("GET", f"/knowledge/{public}").status_code == 200
    assert call("GET", "/knowledge/stats").json["total_count"] == 1
    opened = make_call(CQ_OPEN_READS="1")
    assert set(opened.found(domains="tiers", key=None)) == {private, public}


def test_an_invalid_key_on_a_read_counts_as_none(call):
    public = call.approve("a public one", ["tiers"], tier="public")["id"]
    for header in (
        "Bearer nonsense",
        "Bearer cqa.v1.x.y",
        "Basic abc",
        f"Bearer {call.keys['carl'][:-1]}",
    ):
        answer = call(
            "GET",
            "/knowledge",
            headers={"Authorization": header},
            query_string={"domains": "tiers"},
        )
        assert [unit["id"] for unit in answer.json["data"]] == [public]


def test_a_query_shows_the_unit_without_its_author_or_the_words_of_flags(call):
    unit = call.approve(extensions={"acme:team": "infra"})
    call(
        "POST",
        f"/knowledge/{unit['id']}/flags",
        {"reason": "stale", "detail": "secret words"},
        key="cleo",
    )
    answer = call("GET", "/knowledge", key="cleo", query_string={"domains": "state"})
    (found,) = answer.json["data"]
    assert list(found) == [
        "id",
        "version",
        "domains",
        "insight",
        "context",
        "evidence",
        "tier",
        "superseded_by",
        "extensions",
        "flags",
    ]
    assert found["extensions"] == {"acme:team": "infra"}
    assert found["flags"][0]["reason"] == "stale"
    assert found["flags"][0]["detail"] is None
    assert "secret words" not in answer.text
    assert answer.headers["CQ-Search"] == "domain"
    assert answer.headers["Content-Type"] == "application/json"


def test_the_envelope_has_only_data(call):
    assert call("GET", "/knowledge?domains=nothing").json == {"data": []}
    assert call("GET", "/knowledge?domains=%20").json == {"data": []}


def test_text_finds_by_its_words_in_any_form(call):
    wanted = call.approve("Retries multiply when both proxies retry", ["http"])["id"]
    call.approve("Lock files go stale", ["npm"])
    assert call.found(q="why do proxy retries multiply?") == [wanted]
    assert call.found(q="retrying")[0] == wanted


def test_tags_and_text_together_put_first_what_both_find(call):
    call.approve("Retries multiply", ["http"])
    both = call.approve("Certificates expire at midnight", ["http"])["id"]
    call.approve("Certificates expire unnoticed", ["tls"])
    assert call.found(domains="http", q="certificates expire")[0] == both


def test_an_edit_moves_a_disputed_unit_to_its_new_words(call):
    unit = call.approve("Old words about yarn", ["yarn"])
    call("POST", f"/knowledge/{unit['id']}/flags", {"reason": "incorrect"}, key="cleo")
    edited = call(
        "PATCH",
        f"/review/{unit['id']}",
        {"domains": ["pnpm"], "insight": {"summary": "New words about pnpm"}},
        user="rita",
    )
    assert edited.status_code == 200
    assert call.found(domains="yarn") == []
    assert call.found(domains="pnpm") == [unit["id"]]
    assert call.found(q="yarn") == []
    assert call.found(q="pnpm words") == [unit["id"]]


def test_proposals_of_the_same_tag_in_other_spellings_are_one(call):
    unit = call(
        "POST", "/knowledge", proposal(domains=["HTTP", " http ", "ＨＴＴＰ"]), key="carl"
    ).json
    assert unit["domains"] == ["http"]


def test_an_answer_is_never_kept_that_is_older_than_what_it_is_kept_for(app, call):
    """A transaction that began before a change must not give the answer that is kept after it."""
    call.approve("Old lock", ["a"])
    with app.app_context():
        db.session.execute(text("SELECT count(*) FROM units_fts")).scalar()
        # In a thread, as another request: it shares nothing with this one.
        with ThreadPoolExecutor(1) as other:
            fresh = other.submit(call.approve, "Fresh lock", ["a"]).result()
        search.find(q="lock")
        db.session.rollback()
    assert fresh["id"] in call.found(q="lock")
