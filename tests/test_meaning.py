"""Answers by meaning: what is found and what is left out, what explains it, and who may see it."""

import math
from functools import cache

import pytest

import embeddings
from embeddings.encoders import Hashed
from search.kin import short_for
from tests.cast import HASHED, eventually


@cache
def _small():
    return embeddings.load("onnx")


def small(_):
    """The real model in its small form, loaded once for all tests of a process."""
    return _small()


@pytest.fixture
def real(make_call):
    """A server that knows what words mean."""
    return make_call(encoder=small)


@pytest.fixture
def hashed(make_call):
    """A server to which texts mean the same as far as they share words."""
    return make_call(**HASHED)


def insight(summary, detail, action="Do what the summary says."):
    return {"summary": summary, "detail": detail, "action": action}


def approve(call, summary, detail=None, domains=("other",), tier="private"):
    """The id of an approved unit."""
    words = insight(summary, detail or summary)
    return call.approve(summary, domains, insight=words, tier=tier)["id"]


def propose(call, summary, detail=None, domains=("other",)):
    """The id of a pending unit."""
    return call.propose(summary, domains, insight=insight(summary, detail or summary))["id"]


def review(call, id, verb, body=None, user="rita"):
    answer = call("POST", f"/review/{id}/{verb}", body, user=user)
    assert answer.status_code == 200, answer.text


def asked(call, key="carl", **query):
    """(mode, {id: parts of its score}) in the order of the answer."""
    answer = call("GET", "/knowledge", key=key, query_string={"explain": 1, **query})
    assert answer.status_code == 200, answer.text
    assert "NaN" not in answer.text
    assert "Infinity" not in answer.text
    ids = [unit["id"] for unit in answer.json["data"]]
    return answer.headers["CQ-Search"], dict(zip(ids, answer.json["explain"], strict=True))


def similar(call, id, **query):
    """(mode, [(id, similarity)]) as rita is told."""
    answer = call("GET", f"/review/{id}/similar", user="rita", query_string=query)
    assert answer.status_code == 200, answer.text
    found = [(item["knowledge_unit"]["id"], item["similarity"]) for item in answer.json["data"]]
    return answer.json["mode"], found


def embedded(call, id):
    """Wait until a unit, also a pending one, has vectors."""
    assert eventually(lambda: similar(call, id)[0] == "semantic"), similar(call, id)


# What is meant


LORE = {
    "cron": (
        "Cron jobs run twice when daylight saving ends",
        "At the hour that is repeated the job starts again. Use UTC in crontab.",
    ),
    "upload": (
        "Large uploads are cut off by the reverse proxy",
        "nginx allows bodies of one megabyte unless client_max_body_size is set; it answers 413.",
    ),
    "lock": (
        "Killing terraform apply leaves the state locked",
        "The lock stays in the backend until somebody removes it by hand; later plans wait for it.",
    ),
    "fork": (
        "Connections in the pool are shared after fork",
        "A worker that was forked inherits open sockets, and two processes write into one.",
    ),
    "certificate": (
        "Certificates are not renewed while the clock is wrong",
        "The ACME client refuses when the system time is far off.",
    ),
    "npm": (
        "npm ci deletes node_modules before it installs",
        "A cached folder of modules is thrown away, which makes builds in containers slow.",
    ),
}


def tell(call, lore=LORE):
    """Approve them; {name: id} once they have vectors."""
    ids = {name: approve(call, *words) for name, words in lore.items()}
    call.understands(len(ids))
    return ids


IN_OTHER_WORDS = {
    "lock": "How do I free a stuck lock in terraform?",
    "fork": "two children of one process use the same database connections",
    "upload": "sending a big file fails with 413 Request Entity Too Large",
}
IN_NONE_OF_ITS_WORDS = {
    "cron": "recurring tasks executed two times on the night when summer time is over",
    "upload": "sending big files gives an error about the payload",
}


def test_a_question_in_other_words_finds_the_unit(real):
    ids = tell(real)
    for name, question in IN_OTHER_WORDS.items():
        mode, found = asked(real, q=question)
        assert mode == "semantic"
        assert next(iter(found), None) == ids[name], question


def test_a_question_that_shares_no_word_with_the_unit_finds_it(real):
    ids = tell(real)
    for name, question in IN_NONE_OF_ITS_WORDS.items():
        _, found = asked(real, q=question)
        assert next(iter(found), None) == ids[name], question
        assert found[ids[name]]["text"] == 0


@pytest.mark.slow
def test_the_default_model_finds_what_was_meant(make_call):
    call = make_call(CQ_EMBEDDER="minilm")
    ids = {name: approve(call, *words) for name, words in LORE.items()}
    assert eventually(lambda: asked(call, q="free a stuck lock")[0] == "semantic", 120)
    call.understands(len(ids))
    _, found = asked(call, q="How do I free a stuck lock in terraform?")
    assert next(iter(found)) == ids["lock"]
    assert asked(call, q="which mushrooms are good to eat in spring") == ("semantic", {})


FILLER = (
    "The quarterly report lists office plants, meeting rooms, parking spaces and the colours of "
    "the walls on each floor. Nobody has to read it before lunch. "
)


def test_what_stands_at_word_900_of_a_detail_is_found(real):
    """By meaning: a unit that says so much else is nearer than those that say only that."""
    fact = "Postgres refuses new connections once max_connections is reached, so use a pooler."
    detail = " ".join((FILLER * 60).split()[:900]) + f" {fact}"
    assert len(detail) < 8000
    long = approve(real, "Notes from the office", detail)
    decoys = [approve(real, f"Notes from floor {n}", FILLER * 7) for n in range(2)]
    real.understands(3)
    question = "Postgres refuses connections because too many are open"
    _, found = asked(real, q=question)
    assert list(found) == [long]
    _, found = asked(real, q=question, domains="other")
    assert set(found) == {long, *decoys}
    for decoy in decoys:
        assert found[long]["meaning"] > found[decoy]["meaning"] + 0.25


@pytest.mark.slow
def test_what_stands_anywhere_in_a_detail_made_of_code_is_found(real):
    """Code comes to more word pieces a character than prose: no part of it is out of reach."""
    code = "for (k of Object.keys(m)) { m[k] = (m[k] ?? 0) + (x[k]?.n || 0) * 0x1F; } // %d\n"
    fact = "Postgres refuses new connections once max_connections is reached, so use a pooler."
    lines = [code % number for number in range(16)]
    units = {}
    for place in range(6, 14):
        said = "".join([*lines[:place], f"{fact}\n", *lines[place:]])
        units[place] = approve(real, f"Counters in script {place}", said)
    without = approve(real, "Counters in a script", "".join(lines))
    real.understands(len(units) + 1)
    _, found = asked(real, q="Postgres refuses connections", domains="other", limit=50)
    for place, unit in units.items():
        assert found[unit]["meaning"] > found[without]["meaning"] + 0.25, place


NEED = "terraform state lock stuck"
AT_LENGTH = (
    "We run terraform in a pipeline and yesterday an apply was killed by the runner in the middle "
    "of its work. Since then the state is locked, every plan is stuck waiting for the lock, and "
    "we do not know how it can be released without breaking the state any further."
)


def test_the_same_need_in_four_words_and_in_forty_scores_alike(real):
    """Row 64: one threshold serves both."""
    ids = tell(real)
    assert len(NEED.split()) == 4
    assert len(AT_LENGTH.split()) >= 40
    scores = []
    for question in (NEED, AT_LENGTH):
        _, found = asked(real, q=question)
        assert next(iter(found)) == ids["lock"]
        scores.append(found[ids["lock"]]["score"])
    assert 0.6 < scores[0] / scores[1] < 1.6


def test_the_same_need_at_any_length_scores_alike_in_domain_mode(call):
    """Row 64: by words alone, too."""
    ids = {name: approve(call, *words) for name, words in LORE.items()}
    for question in (NEED, AT_LENGTH):
        mode, found = asked(call, q=question)
        assert mode == "domain"
        assert next(iter(found), None) == ids["lock"]


# Saying nothing


NOTHING = [
    "which mushrooms are good to eat in spring",
    "What time does the museum open on Sundays, and is there a discount for children?",
    "zxqv",
    "🙂",
    "这条河里有什么鱼",
]


def test_nothing_is_answered_when_nothing_is_near(real):
    tell(real)
    for question in NOTHING:
        assert asked(real, q=question) == ("semantic", {}), question


def test_nothing_is_answered_when_no_tag_is_near(real):
    tell(real)
    for tags in (["mushrooms"], ["opera", "ballet"], ["zxqv"]):
        assert asked(real, domains=tags) == ("semantic", {}), tags


def test_nothing_is_answered_when_few_words_fit_in_domain_mode(call):
    """One word of many that happens to stand in a unit makes no answer."""
    for words in LORE.values():
        approve(call, *words)
    for question in (
        *NOTHING,
        "which mushrooms grow in the garden behind the backend of a museum on sundays in spring",
    ):
        assert asked(call, q=question) == ("domain", {}), question


@pytest.mark.parametrize("variables", [HASHED, {}], ids=["semantic", "domain"])
def test_a_unit_that_shares_a_tag_is_answered_whatever_else_was_asked(make_call, variables):
    """Beside a hit, and where nothing else is near; what shares no tag has to be near."""
    call = make_call(**variables)
    tagged = approve(call, "Something of another sort", domains=["http"])
    near = approve(call, "Certificates expire at midnight")
    if variables:
        call.understands(2)
    mode, found = asked(call, domains="http", q="certificates expire at midnight")
    assert mode == ("semantic" if variables else "domain")
    assert list(found) == [near, tagged]
    assert list(asked(call, domains="http", q="zebra crossing")[1]) == [tagged]
    assert list(asked(call, domains="http")[1]) == [tagged]


def test_weak_followers_of_a_good_hit_are_left_out(hashed):
    hit = approve(hashed, "Certificates expire at midnight on weekends")
    approve(hashed, "Certificates come in chains of several parts with names of their issuers")
    hashed.understands(2)
    assert list(asked(hashed, q="certificates expire at midnight on weekends")[1]) == [hit]


# Tags that mean nearly the same


PAIRS = {
    "k8s": "kubernetes",
    "postgres": "postgresql",
    "js": "javascript",
    "golang": "go",
}


@pytest.mark.parametrize("turned", [False, True])
def test_a_tag_finds_its_other_spellings(real, turned):
    """Both ways round; the summaries tell nothing, so that only tags can find the units."""
    pairs = {after: before for before, after in PAIRS.items()} if turned else PAIRS
    units = {
        word: approve(real, f"Remark number {number}", "As was said at the time.", [word])
        for number, word in enumerate(pairs.values())
    }
    real.understands(len(units))
    for word, other in pairs.items():
        assert eventually(lambda word=word: real.found(domains=word)), word
        _, found = asked(real, domains=word)
        assert list(found) == [units[other]], word
        assert 0 < found[units[other]]["domain"] < 0.55


def test_unrelated_tags_are_not_taken_for_one_another(real):
    units = [
        approve(real, f"Remark number {number}", "As was said at the time.", [word])
        for number, word in enumerate(("tls", "kafka", "rust", "azure", "ssh", "flask"))
    ]
    near = approve(real, "One more remark", "As was said at the time.", ["kubernetes"])
    real.understands(len(units) + 1)
    # Once this one is found the other tags are known too.
    assert eventually(lambda: real.found(domains="k8s") == [near])
    for word in ("tf", "go", "aws", "ssl-pinning-of-nobody", "django", "gcp"):
        assert set(real.found(domains=word)) <= {near}, word
    assert real.found(domains="tf") == []


def test_an_exact_tag_comes_before_its_kin(real):
    kin = approve(real, "Remark number one", "As was said.", ["postgresql"])
    exact = approve(real, "Remark number two", "As was said.", ["postgres"])
    real.understands(2)
    assert eventually(lambda: len(real.found(domains="postgres")) == 2)
    assert real.found(domains="postgres") == [exact, kin]
    assert real.found(domains="postgresql") == [kin, exact]


def test_a_tag_beside_a_question_finds_its_kin_too(real):
    unit = approve(real, "Remark number one", "As was said at the time.", ["kubernetes"])
    real.understands(1)
    assert eventually(lambda: real.found(domains="k8s"))
    assert real.found(domains="k8s", q="which mushrooms are good to eat") == [unit]
    assert real.found(q="which mushrooms are good to eat") == []


def test_tags_that_are_kin_of_one_tag_count_once(hashed):
    """However many spellings of a tag are asked for, a unit fits them no better than wholly."""
    approve(hashed, "Remark number one", "As was said.", ["alpha"])
    hashed.understands(1)
    spellings = ["alpha beta", "alpha gamma", "alpha delta"]
    assert eventually(lambda: hashed.found(domains=spellings))
    ((_, parts),) = asked(hashed, domains=spellings)[1].items()
    # 0.55 is what tags come to that are the same.
    assert parts["domain"] < 0.55


def test_a_tag_and_its_kin_asked_together_fit_no_better_than_the_tag(hashed):
    unit = approve(hashed, "Remark number one", "As was said.", ["alpha"])
    hashed.understands(1)
    assert eventually(lambda: hashed.found(domains="alpha beta"))
    _, alone = asked(hashed, domains="alpha")
    _, both = asked(hashed, domains=["alpha", "alpha beta"])
    assert both[unit]["domain"] <= alone[unit]["domain"]


def test_a_tag_that_no_unit_has_any_more_hides_no_other_kin(hashed):
    """`alpha beta gamma` is nearer to `alpha beta` than `alpha` is, but nobody has it."""
    gone = approve(hashed, "Remark number one", "As was said.", ["alpha beta gamma"])
    hashed.understands(1)
    assert eventually(lambda: hashed.found(domains="alpha beta") == [gone])
    kept = approve(hashed, "Remark number two", "As was told.", ["alpha"])
    hashed.understands(2)
    review(hashed, gone, "retire")
    assert eventually(lambda: hashed.found(domains="alpha delta") == [kept])
    assert hashed.found(domains="alpha beta") == [kept]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("k8s", "kubernetes"),
        ("kubernetes", "k8s"),
        ("js", "javascript"),
        ("go", "golang"),
        ("postgres", "postgresql"),
        ("ci-cd", "cicd"),
        ("i18n", "internationalization"),
        ("gh-actions", "github-actions"),
    ],
)
def test_a_word_whose_letters_stand_in_another_in_order_could_be_short_for_it(one, other):
    """Digits and signs aside; the first letter is the same."""
    assert short_for(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tf", "tls"),
        ("pg", "gpg"),
        ("script", "javascript"),
        ("k", "kubernetes"),
        ("8", "88"),
        ("", "kubernetes"),
        ("c++", "cpp"),
        ("cba", "cab"),
        ("sk8", "kubernetes"),
    ],
)
def test_a_word_of_other_letters_is_not_short_for_another(one, other):
    """Nor is a single letter, nor what begins otherwise."""
    assert not short_for(one, other)
    assert not short_for(other, one)


# How answers are explained


def parts_of(call):
    """The names that the document gives to the parts of a score."""
    document = call.app.test_client().get("/api/openapi.json").json
    return set(document["components"]["schemas"]["Parts"]["properties"])


QUERIES = [
    {"q": "certificates expire at midnight"},
    {"q": "certificates expire at midnight", "domains": "tls"},
    {"q": "certificates", "domains": ["tls", "http"], "languages": "hcl", "pattern": "infra"},
]


@pytest.mark.parametrize("variables", [HASHED, {}], ids=["semantic", "domain"])
def test_explain_has_the_parts_of_each_unit(make_call, variables):
    """As the document names them: meaning takes part only where the header says so."""
    call = make_call(**variables)
    units = [
        approve(call, "Certificates expire at midnight", domains=["tls"]),
        approve(call, "Certificates expire at noon", domains=["tls", "http"]),
    ]
    names = parts_of(call)
    assert names == {"domain", "text", "meaning", "confidence", "score"}
    if variables:
        call.understands(2)
    else:
        names -= {"meaning"}
    for query in QUERIES + ([{"domains": ["tls", "http"]}] if variables else []):
        mode, found = asked(call, **query)
        assert mode == ("semantic" if variables else "domain")
        assert set(found) == set(units), query
        for parts in found.values():
            assert set(parts) == names
            assert all(map(math.isfinite, parts.values()))
            for name in names - {"score", "meaning"}:
                assert 0 <= parts[name] <= 1, (query, parts)
            assert -1 <= parts.get("meaning", 0) <= 1.0001
        scores = [parts["score"] for parts in found.values()]
        assert scores == sorted(scores, reverse=True)
    if not variables:
        _, found = asked(call, domains=["tls", "http"])
        assert all(set(parts) <= names for parts in found.values())


@pytest.mark.parametrize("variables", [HASHED, {}], ids=["semantic", "domain"])
def test_without_explain_the_answer_is_only_data(make_call, variables):
    call = make_call(**variables)
    approve(call, "Certificates expire at midnight", domains=["tls"])
    if variables:
        call.understands(1)
    for query in (*QUERIES, {"domains": "tls"}):
        answer = call("GET", "/knowledge", key="carl", query_string=query)
        assert set(answer.json) == {"data"}
        assert answer.headers["CQ-Search"] == ("semantic" if variables else "domain")


def test_an_empty_store_is_asked_by_meaning_and_answers_nothing(hashed):
    hashed.understands(0)
    assert asked(hashed, q="anything at all") == ("semantic", {})
    assert asked(hashed, domains=["any", "thing"]) == ("semantic", {})
    assert asked(hashed, q="anything", domains="any", key=None) == ("semantic", {})


class Named(Hashed):
    """An encoder that is made for a name."""

    def __init__(self, _):
        pass


class Failing(Named):
    """Loads, and fails at every question."""

    def encode(self, texts):
        if "warm" not in texts:
            raise RuntimeError("no vector today")
        return super().encode(texts)


def test_tags_alone_rank_as_upstream_ranks_them_where_meaning_fails(make_call):
    """The same order and the same scores as of a server without an embedder."""
    off = make_call()
    for number in range(12):
        domains = [("tls", "http", "dns")[number % 3], f"t{number % 4}"]
        unit = approve(off, f"Remark number {number}", domains=domains)
        for key in ("carl", "cleo")[: number % 3]:
            off("POST", f"/knowledge/{unit}/confirmations", key=key)
    failing = make_call(encoder=Failing)
    for query in ({"domains": ["tls", "t1"]}, {"domains": ["tls", "t1", "dns"], "limit": 50}):
        expected, found = asked(off, **query), asked(failing, **query)
        assert expected[0] == found[0] == "domain"
        assert len(found[1]) > 4
        assert list(found[1].items()) == list(expected[1].items())


def test_all_exact_tags_stay_in_when_meaning_takes_part(hashed):
    """Of tags alone: up to the limit, and before what is only near."""
    units = {approve(hashed, f"Word{n}a word{n}b word{n}c", domains=["tls"]) for n in range(8)}
    near = approve(hashed, "Tls", "tls", domains=["elsewhere"])
    hashed.understands(9)
    mode, found = asked(hashed, domains="tls", limit=50)
    assert mode == "semantic"
    assert units <= set(found) <= units | {near}
    assert len(asked(hashed, domains="tls", limit=3)[1]) == 3


class Picky(Named):
    """Fails at each text that says poison."""

    def encode(self, texts):
        if any("poison" in text for text in texts):
            raise RuntimeError("indigestible")
        return super().encode(texts)


def test_a_unit_without_a_vector_stays_in_with_a_neutral_term(make_call):
    """By its tag and by its words, as if it were half near."""
    off = make_call()
    for number in range(11):
        approve(off, f"Word{number}a word{number}b", domains=["plenty"])
    poison = approve(off, "Certificates with poison expire at midnight", domains=["tls"])
    call = make_call(encoder=Picky)
    call.understands(11)
    for query in ({"domains": "tls"}, {"q": "certificates expire at midnight"}):
        mode, found = asked(call, **query)
        assert mode == "semantic"
        assert list(found) == [poison], query
        assert found[poison]["meaning"] == 0.5
    assert asked(call, q="zebra crossing") == ("semantic", {})


# Who may see it


def test_nobody_finds_private_units_without_a_key(hashed):
    """D2: by meaning, by kin and by words, and nothing of them in what explains."""
    secret = approve(hashed, "Certificates expire at midnight", domains=["alpha beta"])
    public = approve(hashed, "Certificates expire at noon", domains=["alpha beta"], tier="public")
    hashed.understands(2)
    for query in (
        {"q": "certificates expire at midnight"},
        {"q": "midnight certificates", "domains": "alpha beta"},
        {"domains": "alpha beta"},
        {"domains": "alpha"},
    ):
        assert eventually(lambda query=query: len(hashed.found(**query)) == 2), query
        mode, found = asked(hashed, key=None, **query)
        assert mode == "semantic"
        assert list(found) == [public], query
        for headers in ({"Authorization": "Bearer cqa.v1.x.y"}, {"Authorization": "Bearer x"}):
            answer = hashed(
                "GET", "/knowledge", headers=headers, query_string={"explain": 1, **query}
            )
            assert secret not in answer.text
            assert len(answer.json["explain"]) == len(answer.json["data"]) == 1


def test_where_only_private_units_are_near_nobody_without_a_key_is_answered(hashed):
    secret = approve(hashed, "Certificates expire at midnight", domains=["alpha beta"])
    approve(hashed, "Something else in public", domains=["gamma"], tier="public")
    hashed.understands(2)
    for query in (
        {"q": "certificates expire at midnight"},
        {"domains": "alpha beta"},
        {"domains": "alpha"},
    ):
        assert eventually(lambda query=query: hashed.found(**query) == [secret]), query
        assert asked(hashed, key=None, **query) == ("semantic", {})


def test_a_private_tag_hides_no_public_kin(hashed):
    """D2: `alpha beta gamma` is nearer to `alpha beta` than `alpha` is, but it is not shown."""
    public = approve(hashed, "Remark number one", "As was said.", ["alpha"], tier="public")
    hashed.understands(1)
    assert eventually(lambda: hashed.found(domains="alpha beta", key=None) == [public])
    private = approve(hashed, "Remark number two", "As was told.", ["alpha beta gamma"])
    hashed.understands(2)
    assert eventually(lambda: private in hashed.found(domains="alpha beta"))
    assert hashed.found(domains="alpha beta", key=None) == [public]


WORDS = "Certificates expire at midnight"


def test_what_is_not_approved_is_in_no_answer_by_meaning(hashed):
    """Row 57: not in data, explain or counts; `similar` shows what is pending, and no more."""
    ids = {name: propose(hashed, WORDS, f"{name} {WORDS}", ["alpha beta"]) for name in STATES}
    for name, (verb, body) in STATES.items():
        if verb:
            review(hashed, ids[name], "approve", {"tier": "public"})
        if verb == "reject":
            review(hashed, ids[name], "reopen")
        if verb and verb != "approve":
            body = body and {"replacement": ids["approved"]}
            review(hashed, ids[name], verb, body)
    hashed.understands(1)
    embedded(hashed, ids["pending"])
    seen = ids["approved"]
    for query in ({"q": WORDS}, {"domains": "alpha beta"}, {"domains": "alpha"}):
        for key in ("carl", None):
            assert eventually(lambda query=query: hashed.found(**query) == [seen]), query
            _, found = asked(hashed, key=key, limit=50, **query)
            assert list(found) == [seen]
    assert hashed("GET", "/knowledge/stats").json["total_count"] == 1
    mode, near = similar(hashed, ids["pending"])
    assert (mode, [id for id, _ in near]) == ("semantic", [seen])
    mode, near = similar(hashed, seen)
    assert (mode, [id for id, _ in near]) == ("semantic", [ids["pending"]])


STATES = {
    "approved": ("approve", None),
    "pending": (None, None),
    "rejected": ("reject", None),
    "retired": ("retire", None),
    "superseded": ("supersede", True),
}


def test_a_retired_unit_is_gone_at_once_and_comes_back_by_meaning(hashed):
    unit = approve(hashed, WORDS)
    kept = approve(hashed, "Something else")
    hashed.understands(2)
    review(hashed, unit, "retire")
    assert hashed.found(q=WORDS) == []
    assert similar(hashed, kept)[1] == []
    review(hashed, unit, "reopen")
    assert hashed.found(q=WORDS) == []
    review(hashed, unit, "approve")
    hashed.understands(2)
    mode, found = asked(hashed, q=WORDS)
    assert (mode, list(found)) == ("semantic", [unit])
    assert found[unit]["meaning"] == pytest.approx(1, abs=1e-3)


def test_a_superseded_unit_leaves_its_place_to_the_other_at_once(hashed):
    old = approve(hashed, WORDS)
    new = approve(hashed, f"{WORDS} in UTC")
    hashed.understands(2)
    assert hashed.found(q=WORDS) == [old, new]
    review(hashed, old, "supersede", {"replacement": new})
    assert list(asked(hashed, q=WORDS)[1]) == [new]
    assert asked(hashed, q=WORDS)[0] == "semantic"


def test_a_decision_counts_for_meaning_in_the_very_next_answer(hashed):
    """A unit that had its vector while it was pending is found by it once it is approved."""
    for words in (WORDS, "Leap seconds stop clocks", "Lock files go stale"):
        unit = propose(hashed, words)
        embedded(hashed, unit)
        review(hashed, unit, "approve")
        mode, found = asked(hashed, q=words)
        assert mode == "semantic"
        assert found[unit]["meaning"] == pytest.approx(1, abs=1e-3)
        review(hashed, unit, "retire")


def test_a_unit_that_was_made_public_is_found_by_everybody_at_once(hashed):
    unit = approve(hashed, WORDS)
    approve(hashed, "Something else in public", tier="public")
    hashed.understands(2)
    assert hashed.found(q=WORDS, key=None) == []
    review(hashed, unit, "reopen")
    review(hashed, unit, "approve", {"tier": "public"})
    assert hashed.found(q=WORDS, key=None) == [unit]
    review(hashed, unit, "reopen")
    assert hashed.found(q=WORDS, key=None) == []
    review(hashed, unit, "approve", {"tier": "private"})
    assert hashed.found(q=WORDS, key=None) == []
    assert hashed.found(q=WORDS) == [unit]


def test_an_edited_unit_is_found_by_what_it_says_now(hashed):
    """Not by what it said; its kin changes with its tags."""
    unit = approve(hashed, WORDS, domains=["alpha beta"])
    approve(hashed, "Something else")
    hashed.understands(2)
    assert hashed.found(q=WORDS) == [unit]
    assert eventually(lambda: hashed.found(domains="alpha") == [unit])
    hashed("POST", f"/knowledge/{unit}/flags", {"reason": "incorrect"}, key="cleo")
    words = "Leap seconds stop clocks"
    edit = {"insight": insight(words, words), "domains": ["gamma delta"]}
    assert hashed("PATCH", f"/review/{unit}", edit, user="rita").status_code == 200

    def moved():
        mode, found = asked(hashed, q=words)
        return mode == "semantic" and list(found) == [unit] and found[unit]["meaning"] > 0.99

    assert eventually(moved)
    assert asked(hashed, q=WORDS) == ("semantic", {})
    assert eventually(lambda: hashed.found(domains="gamma") == [unit])
    assert hashed.found(domains="alpha") == []


# Near duplicates


def test_similar_is_for_reviewers(hashed):
    unit = propose(hashed, WORDS)
    path = f"/review/{unit}/similar"
    assert hashed("GET", path).status_code == 401
    assert hashed("GET", path, key="rita").status_code == 401
    assert hashed("GET", path, user="carl").status_code == 403
    assert hashed("GET", path, user="rita").status_code == 200
    assert hashed("GET", path, user="ada").status_code == 200


def test_similar_of_no_unit_is_not_found(hashed):
    for id in ("ku_" + "0" * 32, "nonsense", "ku_1"):
        assert hashed("GET", f"/review/{id}/similar", user="rita").status_code == 404


@pytest.mark.parametrize("limit", ["0", "21", "-1", "x", "", "1.5", "9" * 30])
def test_similar_takes_a_limit_from_1_to_20(hashed, limit):
    unit = propose(hashed, WORDS)
    answer = hashed("GET", f"/review/{unit}/similar?limit={limit}", user="rita")
    assert answer.status_code == 422
    assert answer.json["detail"][0]["loc"] == ["query", "limit"]


def test_similar_shows_the_nearest_first_without_the_unit_itself(hashed):
    """Nearest by what they say, five unless more are asked for, each as reviewers see it."""
    words = [f"w{number}" for number in range(30)]
    unit = propose(hashed, " ".join(words))
    ids = [
        (approve if step % 2 else propose)(hashed, " ".join([*words[: 29 - step], f"x{step}"]))
        for step in range(22)
    ]
    far = approve(hashed, "nothing of this sort")
    embedded(hashed, unit)
    assert eventually(lambda: len(similar(hashed, unit, limit=20)[1]) == 20)
    mode, near = similar(hashed, unit, limit=20)
    assert mode == "semantic"
    similarities = [likeness for _, likeness in near]
    assert similarities == sorted(similarities, reverse=True)
    assert all(0.5 <= likeness <= 1 for likeness in similarities)
    assert {id for id, _ in near} <= set(ids)
    assert far not in dict(near)
    assert similar(hashed, unit)[1] == near[:5]
    assert similar(hashed, unit, limit=1)[1] == near[:1]
    (item,) = hashed("GET", f"/review/{unit}/similar?limit=1", user="rita").json["data"]
    shown = hashed("GET", f"/review/{near[0][0]}", user="rita").json
    assert item == {**shown, "similarity": near[0][1]}


def test_of_equal_units_each_shows_the_others_and_never_itself(hashed):
    ids = [
        hashed.propose(WORDS, insight=insight(WORDS, WORDS, f"Way number {n}."))["id"]
        for n in range(5)
    ]
    for id in ids:
        embedded(hashed, id)
    for id in ids:
        mode, near = similar(hashed, id, limit=20)
        assert mode == "semantic"
        assert sorted(dict(near)) == sorted(set(ids) - {id})
        assert set(dict(near).values()) == {1.0}


def test_similar_goes_by_words_where_the_embedder_is_off(call):
    unit = propose(call, "Certificates of the gateway expire at midnight")
    pending = propose(call, "Certificates of the gateway expire at noon")
    approved = approve(call, "Certificates of a gateway expire unnoticed")
    rejected = propose(call, "Certificates of the gateway expire at dawn")
    review(call, rejected, "reject")
    approve(call, "Lock files go stale")
    mode, near = similar(call, unit)
    assert mode == "domain"
    assert sorted(dict(near)) == sorted([pending, approved])
    assert all(0.5 <= likeness <= 1 for _, likeness in near)
    assert [likeness for _, likeness in near] == sorted(dict(near).values(), reverse=True)


@pytest.mark.parametrize("variables", [HASHED, {}], ids=["semantic", "domain"])
def test_units_that_differ_in_one_number_are_both_stored_and_shown_as_alike(make_call, variables):
    """Row 29: advice, never a block; each is approved and found."""
    call = make_call(**variables)
    for one, other in (
        (
            "The broker of release 3.1 is slow to start",
            "The broker of release 3.2 is slow to start",
        ),
        ("The gateway speaks TLS on port 8443", "The gateway speaks TLS on port 9443"),
    ):
        first, second = propose(call, one), propose(call, other)
        assert first != second
        if variables:
            embedded(call, first)
            embedded(call, second)
        assert first in dict(similar(call, second)[1])
        review(call, first, "approve")
        review(call, second, "approve")
        assert second in dict(similar(call, first)[1])
        if variables:
            call.understands()
        assert call.found(q=one)[0] == first
        assert call.found(q=other)[0] == second


def test_a_unit_that_is_not_live_shows_its_likes_by_words(hashed):
    """It has no vector in memory: a reviewer who looks at it again is told still."""
    kept = approve(hashed, WORDS)
    gone = propose(hashed, f"{WORDS} again")
    review(hashed, gone, "reject")
    hashed.understands(1)
    mode, near = similar(hashed, gone)
    assert mode == "domain"
    assert list(dict(near)) == [kept]
