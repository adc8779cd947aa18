"""Inputs that made trouble elsewhere: each test names its row in the table of troublesome inputs."""

import copy
import http.client
import io
import json
import logging
import time
import unicodedata
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

import logs
from tests.cast import PASSWORD, proposal

NOBODYS = f"ku_{'0' * 32}"
NUL = ("\x00", "a\x00b", "\x00a")
HALVES = ("\ud83d", "a\ude00b", "\udfff\ud800")
CARL, RITA, ADA = {"key": "carl"}, {"user": "rita"}, {"user": "ada"}


def send(call, method, path, body, **who):
    """A body as it stands, text or bytes, told to be JSON."""
    return call(method, path, data=body, content_type="application/json", **who)


def places(answer):
    """Where the problems of a 422 are."""
    assert answer.status_code == 422, answer.text
    return [tuple(problem["loc"]) for problem in answer.json["detail"]]


def with_value(body, place, value):
    """A copy of a body with another value at a place such as ("insight", "summary")."""
    body = copy.deepcopy(body)
    target = body
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return body


def waiting(call):
    """How many units are pending."""
    return call("GET", "/review/queue?limit=0", user="rita").json["total"]


# Every text that a body may hold: a route, who may call it, a body that fits, and the places of its
# texts. What is wrong with a body is told before anything is looked up.
INSIGHT = [("insight", name) for name in ("summary", "detail", "action")]
CONTEXT = [("context", "languages", 0), ("context", "frameworks", 0), ("context", "pattern")]
EXTENSION = [("extensions", "a:b"), ("extensions", "a:c", 0), ("extensions", "a:c", 1, "k")]
WORDS = {
    "domains": ["http", "retry"],
    "insight": {"summary": "s", "detail": "d", "action": "a"},
    "context": {"languages": ["go"], "frameworks": ["gin"], "pattern": "api"},
}
EXTENDED = {**WORDS, "created_by": "x", "extensions": {"a:b": "x", "a:c": ["x", {"k": "x"}]}}
UNIT_TEXTS = [("domains", 1), *INSIGHT, *CONTEXT]
BODIES = [
    ("POST", "/knowledge", CARL, EXTENDED, [*UNIT_TEXTS, *EXTENSION, ("created_by",)]),
    (
        "POST",
        f"/knowledge/{NOBODYS}/flags",
        CARL,
        {"reason": "stale", "detail": "x", "duplicate_of": NOBODYS},
        [("reason",), ("detail",), ("duplicate_of",)],
    ),
    ("PATCH", f"/review/{NOBODYS}", RITA, WORDS, UNIT_TEXTS),
    *(
        ("POST", f"/review/{NOBODYS}/{verb}", RITA, {"reason": "x"}, [("reason",)])
        for verb in ("approve", "reject", "reopen", "keep", "retire")
    ),
    ("POST", f"/review/{NOBODYS}/approve", RITA, {"tier": "public"}, [("tier",)]),
    (
        "POST",
        f"/review/{NOBODYS}/supersede",
        RITA,
        {"replacement": NOBODYS, "reason": "x"},
        [("replacement",), ("reason",)],
    ),
    (
        "POST",
        "/review/bulk",
        RITA,
        {"decision": "reject", "ids": [NOBODYS], "reason": "x", "tier": "public"},
        [("decision",), ("ids", 0), ("reason",), ("tier",)],
    ),
    (
        "POST",
        "/auth/login",
        {},
        {"username": "x", "password": "x"},
        [("username",), ("password",)],
    ),
    (
        "POST",
        "/users",
        ADA,
        {"username": "x", "password": "x", "role": "reviewer"},
        [("username",), ("password",), ("role",)],
    ),
    (
        "PATCH",
        "/users/nobody",
        ADA,
        {"password": "x", "role": "reviewer"},
        [("password",), ("role",)],
    ),
    (
        "PATCH",
        "/users/me",
        RITA,
        {"password": "x", "new_password": "x"},
        [("password",), ("new_password",)],
    ),
    (
        "POST",
        "/users/me/api-keys",
        RITA,
        {"name": "x", "ttl": "1d", "labels": ["x"]},
        [("name",), ("ttl",), ("labels", 0)],
    ),
]
QUERIES = [
    ("/knowledge?", CARL, ["domains", "q", "languages", "frameworks", "pattern"]),
    ("/knowledge?domains=x", CARL, ["limit", "explain"]),
    ("/review/queue?", RITA, ["limit", "offset", "cursor"]),
    ("/review/attention?", RITA, ["limit", "offset", "cursor"]),
    (
        "/review/units?",
        RITA,
        ["domain", "status", "confidence_min", "confidence_max", "limit", "offset", "cursor"],
    ),
    ("/users/me/proposals?", RITA, ["limit", "offset", "cursor"]),
    ("/users?", ADA, ["limit", "offset"]),
]


def test_the_table_of_texts_holds_every_text_of_every_body(call):
    """The tests below are about all of them, so a text that is added must be added there."""
    document = call.app.test_client().get("/api/openapi.json").json
    listed = {(method.lower(), _shape(path)): set() for method, path, *_ in BODIES}
    for method, path, _, _, texts in BODIES:
        listed[method.lower(), _shape(path)] |= {
            tuple(step for step in place if isinstance(step, str)) for place in texts
        }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not isinstance(operation, dict) or "requestBody" not in operation:
                continue
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            texts = {place for place in _texts(document, schema) if place[0] != "extensions"}
            key = method, _shape(path.removeprefix("/api/v1"))
            known = {place for place in listed.get(key, set()) if place[0] != "extensions"}
            verb = key[1].rpartition("/")[2]
            if verb == "reject":
                texts.discard(("tier",))
            assert known == texts, key


def _shape(path):
    """A path with its variable segments blanked."""
    return "/".join(
        "*" if part.startswith(("{", "ku_")) or part == "nobody" else part
        for part in path.split("/")
    )


def _texts(document, schema, place=()):
    """The places of all strings in a schema of the document."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from _texts(document, document["components"]["schemas"][name], place)
    for part in schema.get("allOf", []):
        yield from _texts(document, part, place)
    for name, below in schema.get("properties", {}).items():
        yield from _texts(document, below, (*place, name))
    if "items" in schema:
        yield from _texts(document, schema["items"], place)
    if schema.get("type") == "string" or "string" in (schema.get("type") or []):
        yield place


# Rows 1 and 2: the words of a question


PUNCTUATION = [
    'node 22.4 "beta" (x:y) a-b * ^',
    '"',
    '""',
    "''",
    "'",
    '"beta',
    "beta*",
    "^beta",
    "-beta",
    "+beta",
    "(beta",
    "beta)",
    "{beta}: x",
    "summary:beta",
    "summary : beta",
    "- summary : beta",
    "units_fts:beta",
    "beta; DROP TABLE units",
    "beta' OR '1'='1",
    "beta -- x",
    "beta \\ x",
    "beta % _ x",
    "NEAR(beta x, 5)",
    "NEAR(",
    "beta NEAR/2 x",
    "beta AND",
    "AND beta",
    "OR OR beta",
    "beta NOT NOT",
    "be\tta beta\r\nx",
    ":beta:",
    "beta\N{LEFT DOUBLE QUOTATION MARK}x\N{RIGHT DOUBLE QUOTATION MARK}",
    "\N{GRINNING FACE} beta",
    "beta " * 400,
]


def test_punctuation_in_a_question_is_never_syntax(call):
    """Row 1: the words are found whatever stands around them."""
    wanted = call.approve("Pin node 22.4 or the beta breaks", ["node"])["id"]
    call.approve("Lock files go stale", ["npm"])
    for question in PUNCTUATION:
        found = call.found(q=question, limit=50)
        assert (found == [wanted]) is ("beta" in question), question


def test_punctuation_in_tags_is_never_syntax(call):
    """Row 1: in any parameter that takes words."""
    for words in PUNCTUATION[:-1:2]:
        tag = call.approve(f"about {words}", [words], context={"pattern": words})["id"]
        for name in ("languages", "frameworks", "pattern"):
            assert call.found(domains=words, **{name: words})[0] == tag, (words, name)
        filtered = call("GET", "/review/units", query_string={"domain": words}, user="rita")
        assert tag in [item["knowledge_unit"]["id"] for item in filtered.json], words


def test_operators_are_words(call):
    """Row 2: they neither alter the question nor vanish from it."""
    both = call.approve("The android editor freezes", ["mobile"])["id"]
    near = call.approve("Ports near 8000 collide", ["ports"])["id"]
    salt = call.approve("Salt and pepper the hash", ["auth"])["id"]
    assert call.found(q="AND") == [salt]
    assert call.found(q="NOT NEAR OR") == [near]
    assert call.found(q="android NOT editor") == [both]
    assert call.found(q="android AND missing") == [both]
    assert call.found(q="NEAR(android pepper, 1)")[0] in (both, salt, near)
    assert set(call.found(q="android OR pepper")) == {both, salt}


def test_ordinary_words_that_hold_an_operator_stay_whole(call):
    """Row 2: `android` is no `roid`, `corner` no `cner`."""
    android = call.approve("The android editor freezes", ["mobile"])["id"]
    corner = call.approve("Corner notes are nearby", ["layout"])["id"]
    call.approve("The roid edit cner tes by", ["noise"])
    assert call.found(q="android editor") == [android]
    assert call.found(q="corner") == [corner]
    assert call.found(q="nearby notes") == [corner]


@pytest.mark.parametrize("question", ["AND", "NOT NEAR OR", '"', "''", "   ", "android editor"])
def test_a_question_without_a_hit_is_an_empty_answer(call, question):
    """Row 2: alone, with a tag that nobody uses, and as the tag itself."""
    call.approve("Retries multiply", ["http"])
    assert call.found(domains="unused", q=question) == []
    assert call.found(domains=question) == []
    assert call.found(q=question) == []


# Rows 4 to 6: spellings

BOTH_FORMS = ["réseau", "Ångström", "한국", "ガイド", "Việt", "й"]


def forms(word):
    return [unicodedata.normalize(form, word) for form in ("NFC", "NFD")]


def test_a_tag_is_one_in_composed_and_decomposed_form(call):
    """Row 4."""
    for word in BOTH_FORMS:
        units = [call.approve(f"{word} {n}", [form]) for n, form in enumerate(forms(word))]
        ids = {unit["id"] for unit in units}
        assert units[0]["domains"] == units[1]["domains"]
        for form in forms(word):
            assert set(call.found(domains=form)) == ids, word
            filtered = call("GET", "/review/units", query_string={"domain": form}, user="rita")
            assert {item["knowledge_unit"]["id"] for item in filtered.json} == ids


def not_found(call, words):
    """(stored, asked) of those words that do not find the text of another."""
    ids = {word: call.approve(f"{number} of {word}")["id"] for number, word in enumerate(words)}
    return [
        (stored, asked)
        for asked in words
        for stored in set(words) - {word for word in words if ids[word] in call.found(q=asked)}
    ]


def test_text_is_found_in_composed_and_decomposed_form(call):
    """Row 4: the words of a question too."""
    assert [pair for word in BOTH_FORMS for pair in not_found(call, forms(word))] == []


def test_languages_frameworks_and_patterns_compare_in_any_form_and_stay_as_sent(call):
    """Rows 4 to 6: each spelling lifts a unit as much as the same spelling does."""
    spellings = ["Café", "cafe\u0301", "CAFÉ", " café ", "ＣＡＦÉ"]
    for number, stored in enumerate(spellings):
        context = {"languages": [stored], "frameworks": [stored], "pattern": stored}
        unit = call.approve(f"stored {number}", [f"t{number}"], context=context)
        assert unit["context"] == context
        for asked in spellings:
            answer = call(
                "GET",
                "/knowledge",
                key="cleo",
                query_string={
                    "domains": f"t{number}",
                    "languages": asked,
                    "frameworks": asked,
                    "pattern": asked,
                    "explain": 1,
                },
            )
            assert answer.json["data"][0]["context"] == context
            assert answer.json["explain"][0]["score"] == pytest.approx(0.5), (stored, asked)


SAME = [
    ["ÉCOLE", "école", "E\u0301cole"],
    ["straße", "STRASSE", "Strasse", "STRAẞE"],
    ["İzmir", "I\u0307zmir", "i\u0307zmir"],
    ["ΛΌΓΟΣ", "λόγος"],
    ["ＨＴＴＰ", "http", "HTTP"],
    ["ﬁle", "file", "FILE"],
]


def test_a_tag_is_one_in_any_case(call):
    """Row 5: not only for ASCII."""
    for spellings in SAME:
        ids = {call.approve(f"{spellings[0]} {n}", [tag])["id"] for n, tag in enumerate(spellings)}
        for tag in spellings:
            assert set(call.found(domains=tag)) == ids, tag
    counts = call("GET", "/knowledge/stats", key="carl").json["domain_counts"]
    assert sorted(counts.values()) == sorted(map(len, SAME))


def test_text_is_found_in_any_case(call):
    """Row 5: the words of a question too; above all a word finds itself."""
    assert [pair for spellings in SAME for pair in not_found(call, spellings)] == []


def test_a_tag_in_several_spellings_is_stored_once(call):
    """Row 6: in a proposal and in an edit."""
    spellings = ["HTTP", " http ", "ＨＴＴＰ", "Retry", "", "retry"]
    unit = call.propose(domains=spellings)
    assert unit["domains"] == ["http", "retry"]
    edited = call("PATCH", f"/review/{unit['id']}", {"domains": ["TLS", *spellings]}, user="rita")
    assert edited.json["knowledge_unit"]["domains"] == ["tls", "http", "retry"]


def test_a_tag_in_several_spellings_is_asked_for_once(call):
    """Row 6: a repeated tag makes a question no broader."""
    call.approve(domains=["http", "tls"])
    scores = [
        call("GET", "/knowledge", key="carl", query_string={"domains": tags, "explain": 1}).json[
            "explain"
        ]
        for tags in (["http"], ["HTTP", " http ", "ＨＴＴＰ", ""])
    ]
    assert scores[0] == scores[1]


# Rows 8 and 9: what no text may hold


def test_half_characters_and_nul_are_refused_by_the_name_of_the_field(call):
    """Rows 8 and 9, in every text that a body may hold."""
    for method, path, who, body, texts in BODIES:
        for place in texts:
            named = place[:1] if place[0] == "extensions" else place
            for value in (*NUL, *HALVES):
                raw = json.dumps(with_value(body, place, value))
                answer = send(call, method, path, raw, **who)
                assert places(answer) == [("body", *named)], (method, path, place, value)
    assert waiting(call) == 0


def test_half_characters_and_nul_are_refused_in_the_keys_of_extensions(call):
    """Rows 8 and 9: at any depth, and nowhere else are keys kept."""
    for poison in (*NUL, *HALVES):
        for extensions in (
            {f"a:{poison}": 1},
            {poison: 1},
            {"a:b": {poison: 1}},
            {"a:b": [{"k": {poison: None}}]},
        ):
            body = json.dumps(proposal(extensions=extensions))
            assert places(send(call, "POST", "/knowledge", body, **CARL)) == [
                ("body", "extensions")
            ], extensions
        body = json.dumps(with_value(proposal(poison), ("insight", poison), "x"))
        assert send(call, "POST", "/knowledge", body, **CARL).status_code == 422
        body = json.dumps({**proposal("kept"), poison: {poison: poison}})
        answer = send(call, "POST", "/knowledge", body, **CARL)
        assert answer.status_code == 201
        assert set(answer.json["insight"]) == {"summary", "detail", "action"}
    assert waiting(call) == 1


def test_a_pair_of_halves_is_one_character(call):
    """Row 8: escaped as JSON does, it is stored whole."""
    body = json.dumps(proposal("a \N{GRINNING FACE} b")).replace("a \\ud83d", "a \\uD83D")
    assert "\\uD83D\\ude00" in body
    answer = send(call, "POST", "/knowledge", body, **CARL)
    assert answer.json["insight"]["summary"] == "a \N{GRINNING FACE} b"


def test_bytes_that_are_no_text_are_refused(call):
    """Rows 8 and 9: half characters as bytes, NUL as a byte."""
    body = json.dumps(proposal("a-b"))
    for raw, status in (
        (b"\xed\xa0\xbd", 400),
        (b"\xff", 400),
        (b"\xc0\x80", 400),
        (b"\xf0\x9f\x98", 400),
        (b"\x00", 422),
        (b"\x1f", 422),
    ):
        answer = send(call, "POST", "/knowledge", body.encode().replace(b"-", raw), **CARL)
        assert answer.status_code == status, raw
    assert waiting(call) == 0


def test_nul_in_a_query_is_refused_by_the_name_of_the_parameter(call):
    """Row 9."""
    for path, who, names in QUERIES:
        for name in names:
            for value in ("%00", "a%00b"):
                answer = call("GET", f"{path}&{name}={value}", **who)
                assert ("query", name) in [place[:2] for place in places(answer)], (path, name)


def test_bytes_of_a_query_that_are_no_text_break_nothing(call):
    """Row 8: they are read as the replacement character."""
    for path, who, names in QUERIES:
        for name in names:
            for value in ("%ED%A0%BD", "%FF", "%F0%9F%98", "%", "%zz", "%u0000"):
                answer = call("GET", f"{path}&{name}={value}", **who)
                assert answer.status_code in (200, 422), (path, name, value)
                assert answer.is_json


def test_a_path_of_odd_characters_is_unknown(call):
    """Rows 8 and 9: wherever a path holds a name."""
    for segment in ("%00", "ku_%00", "%ED%A0%BD", "%FF", f"{NOBODYS}%00", "%0A", f"{NOBODYS}%0A"):
        for method, path, who, body in (
            ("GET", f"/knowledge/{segment}", {}, None),
            ("POST", f"/knowledge/{segment}/confirmations", CARL, None),
            ("POST", f"/knowledge/{segment}/flags", CARL, {"reason": "stale"}),
            ("GET", f"/review/{segment}", RITA, None),
            ("PATCH", f"/review/{segment}", RITA, {"domains": ["x"]}),
            ("GET", f"/review/{segment}/history", RITA, None),
            ("POST", f"/review/{segment}/approve", RITA, None),
            ("POST", f"/review/{segment}/retire", RITA, None),
            ("PATCH", f"/users/{segment}", ADA, {"disabled": True}),
            ("GET", f"/users/{segment}/api-keys", ADA, None),
            ("POST", f"/users/{segment}/api-keys/{segment}/revoke", ADA, None),
            ("POST", f"/users/me/api-keys/{segment}/revoke", RITA, None),
            ("GET", f"/{segment}", {}, None),
        ):
            answer = call(method, path, body, **who)
            assert answer.status_code == 404, (method, path)
            assert isinstance(answer.json["detail"], str)


HEADERS = [
    "Accept",
    "Accept-Encoding",
    "Content-Encoding",
    "Content-Type",
    "Cookie",
    "Host",
    "Idempotency-Key",
    "Origin",
    "Range",
    "Sec-Fetch-Site",
    "X-CSRF-TOKEN",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-HTTP-Method-Override",
    "X-Request-ID",
]
ODD_VALUES = [
    "",
    "a\x00b",
    "\xed\xa0\xbd",
    "\xe9" * 100,
    "x" * 5000,
    "http://[",
    "http://[v1.x]",
    "http://a:b",
    "null",
    "-1",
    ";;=,",
]


def test_a_header_of_odd_characters_breaks_nothing(call):
    """Rows 8 and 9: read, refused or not looked at, but never an accident."""
    broken = []
    for name in HEADERS:
        for value in ODD_VALUES:
            headers = {"Content-Type": "application/json", name: value}
            about = f"{name} {value.encode()}"
            for method, path, who, body in (
                ("GET", "/review/queue?limit=0", RITA, None),
                ("GET", "/knowledge?domains=x", {}, None),
                ("POST", "/knowledge", CARL, json.dumps(proposal(about))),
            ):
                answer = call(method, path, data=body, headers=headers, **who)
                assert answer.is_json
                if answer.status_code >= 500:
                    broken.append((name, value, path))
    assert broken == []


def test_a_credential_of_odd_characters_is_none(call):
    """Rows 8 and 9: 401 where one is needed, ignored where none is."""
    for token in (
        "",
        " ",
        "\x00",
        "\xff\xff",
        "a.b.c",
        "..",
        f"cqa.v1.{'0' * 32}.{chr(233) * 52}",
        f"cqa.v1.{'0' * 31}\x00.{'a' * 52}",
        f"cqa.v1.\xff.{'a' * 52}",
        f"cqa.v1..{'a' * 52}",
        f"{call.keys['carl']}\x00",
        f"{call.tokens['rita']}\x00",
        "eyJhbGciOiJIUzI1NiJ9.W1tb.AAAA",
        "bnVsbA.bnVsbA.AAAA",
        f"{'W1tb' * 5000}.e30.AAAA",
        f"eyJhbGciOiJIUzI1NiJ9.{'W1tb' * 5000}.AAAA",
    ):
        headers = {"Authorization": f"Bearer {token}"}
        assert call("GET", "/review/queue", headers=headers).status_code == 401, token
        assert call("POST", "/knowledge", proposal(), headers=headers).status_code == 401, token
        assert call("GET", "/knowledge?domains=x", headers=headers).json == {"data": []}, token


# Row 10: too much


CEILINGS = [
    ("POST", "/knowledge", CARL, WORDS, ("insight", "summary"), 500),
    ("POST", "/knowledge", CARL, WORDS, ("insight", "detail"), 8000),
    ("POST", "/knowledge", CARL, WORDS, ("insight", "action"), 2000),
    ("POST", "/knowledge", CARL, WORDS, ("context", "pattern"), 200),
    ("POST", "/knowledge", CARL, WORDS, ("domains", 0), 64),
    ("POST", "/knowledge", CARL, WORDS, ("context", "languages", 0), 64),
    ("POST", "/knowledge", CARL, WORDS, ("context", "frameworks", 0), 64),
    ("PATCH", "/review/{pending}", RITA, WORDS, ("insight", "summary"), 500),
    ("PATCH", "/review/{pending}", RITA, WORDS, ("insight", "detail"), 8000),
    ("PATCH", "/review/{pending}", RITA, WORDS, ("insight", "action"), 2000),
    ("PATCH", "/review/{pending}", RITA, WORDS, ("context", "pattern"), 200),
    ("PATCH", "/review/{pending}", RITA, WORDS, ("domains", 0), 64),
    ("PATCH", "/review/{pending}", RITA, WORDS, ("context", "languages", 0), 64),
    ("POST", "/knowledge/{approved}/flags", CARL, {"reason": "stale"}, ("detail",), 1000),
    ("POST", "/review/{pending}/reject", RITA, {}, ("reason",), 1000),
    ("POST", "/review/{approved}/retire", RITA, {}, ("reason",), 1000),
    ("POST", "/review/bulk", RITA, {"decision": "reject", "ids": [NOBODYS]}, ("reason",), 1000),
    ("POST", "/users/me/api-keys", RITA, {"ttl": "1d"}, ("name",), 64),
    ("POST", "/users/me/api-keys", RITA, {"ttl": "1d", "name": "x"}, ("labels", 0), 64),
]


@pytest.mark.parametrize("char", ["x", "\N{GRINNING FACE}"])
def test_texts_are_as_long_as_their_ceiling_in_code_points_and_no_longer(call, char):
    """Row 10: 8,000 characters outside the basic plane fit, 8,001 of any do not; none is echoed."""
    approved = call.approve("approved")["id"]
    for number, (method, path, who, body, place, ceiling) in enumerate(CEILINGS):
        pending = call.propose(f"pending {number}")["id"]
        path = path.format(pending=pending, approved=approved)
        if place[-1] == 0:
            body = with_value(body, place[:-1], [None])
        long = send(
            call, method, path, json.dumps(with_value(body, place, char * (ceiling + 1))), **who
        )
        assert places(long) == [("body", *place)], place
        assert str(ceiling) in long.json["detail"][0]["msg"]
        assert char * 9 not in long.text
        assert len(long.data) < 300
        fits = send(call, method, path, json.dumps(with_value(body, place, char * ceiling)), **who)
        assert fits.status_code in (200, 201), (place, fits.text)


def test_a_question_has_a_ceiling(call):
    """Row 10: each word of a query too."""
    for name, ceiling in (
        ("q", 2000),
        ("pattern", 200),
        ("domains", 64),
        ("languages", 64),
        ("frameworks", 64),
    ):
        asked = {"domains": "x", name: "y" * ceiling}
        assert call.found(**asked) == []
        asked[name] += "y"
        answer = call("GET", "/knowledge", query_string=asked)
        assert [place[:2] for place in places(answer)] == [("query", name)]
        assert "yyyy" not in answer.text


def test_a_tag_that_grows_when_folded_keeps_its_ceiling(call):
    """Row 10: one character may stand for eighteen."""
    for tag, status in (("\ufdfa" * 3, 201), ("\ufdfa" * 4, 422), ("ß" * 32, 201), ("ß" * 33, 422)):
        answer = call("POST", "/knowledge", proposal(f"about {tag}", [tag]), **CARL)
        assert answer.status_code == status, tag
        asked = call("GET", "/knowledge", query_string={"domains": tag})
        assert asked.status_code == (200 if status == 201 else 422)


def test_lists_are_as_long_as_their_ceiling_and_no_longer(call):
    """Row 10: counted before repeats are dropped."""
    for place, fits, item in (
        (("domains",), 16, "t{}"),
        (("domains",), 16, "same"),
        (("context", "languages"), 16, "l{}"),
        (("context", "frameworks"), 16, "f{}"),
    ):
        for count, status in ((fits, 201), (fits + 1, 422)):
            items = [item.format(number) for number in range(count)]
            body = with_value(WORDS, place, items)
            body = with_value(body, ("insight", "summary"), f"{count} {item} in {place}")
            answer = call("POST", "/knowledge", body, **CARL)
            assert answer.status_code == status, (place, count)
            if status == 422:
                assert places(answer) == [("body", *place)]
    labels = {"name": "x", "ttl": "1d", "labels": ["a"] * 17}
    assert places(call("POST", "/users/me/api-keys", labels, **RITA)) == [("body", "labels")]


def test_extensions_have_a_ceiling_in_number_size_and_depth(call):
    """Row 10."""

    def deep(levels):
        value = "x"
        for level in range(levels):
            value = {"k": value} if level % 2 else [value]
        return value

    for extensions, status in (
        ({f"a:{number}": None for number in range(20)}, 201),
        ({f"a:{number}": None for number in range(21)}, 422),
        ({"a:b": "x" * 32_000}, 201),
        ({"a:b": "x" * 33_000}, 422),
        ({f"a:{number}": "x" * 3000 for number in range(11)}, 422),
        ({"a:b": deep(30)}, 201),
        ({"a:b": deep(40)}, 422),
        ({"a:b": deep(500)}, 422),
    ):
        body = proposal(
            f"about {str(extensions)[:60]}{len(str(extensions))}", extensions=extensions
        )
        answer = call("POST", "/knowledge", body, **CARL)
        assert answer.status_code == status, str(extensions)[:60]
        if status == 422:
            assert places(answer) == [("body", "extensions")]
            assert len(answer.data) < 300
        else:
            assert answer.json["extensions"] == extensions


def test_a_body_of_5_mb_is_too_large_for_every_route(call):
    """Row 10: whether its length is told or not, and whatever the route makes of bodies."""
    big = json.dumps(proposal("x" * 5_000_000)).encode()
    for method, path, who in (
        ("POST", "/knowledge", CARL),
        ("POST", "/knowledge", {}),
        ("POST", f"/knowledge/{NOBODYS}/confirmations", CARL),
        ("POST", "/auth/login", {}),
        ("PATCH", f"/review/{NOBODYS}", RITA),
        ("GET", "/knowledge?domains=x", {}),
        ("POST", "/nowhere", {}),
    ):
        answer = send(call, method, path, big, **who)
        assert answer.status_code == 413, (method, path)
        assert isinstance(answer.json["detail"], str)
        assert "xxx" not in answer.text
    answer = call(
        "POST",
        "/knowledge",
        input_stream=io.BytesIO(big),
        content_type="application/json",
        environ_overrides={"wsgi.input_terminated": True},
        **CARL,
    )
    assert answer.status_code == 413
    assert waiting(call) == 0


def test_a_server_tells_that_5_mb_are_too_large_and_goes_on(serve, call):
    """Row 10: over the network, with a length and in chunks."""
    address = urlsplit(serve().url)
    headers = {
        "Authorization": f"Bearer {call.keys['carl']}",
        "Content-Type": "application/json",
    }
    for body in (b"x" * 5_000_000, iter([b"x" * 50_000] * 100)):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
        connection.request("POST", "/api/v1/knowledge", body, headers)
        answer = connection.getresponse()
        told = answer.read()
        connection.close()
        assert answer.status == 413
        assert answer.getheader("Content-Type") == "application/json"
        assert b"xxx" not in told
        connection.request("GET", "/api/v1/health")
        assert json.loads(connection.getresponse().read()) == {"status": "ok"}
        connection.close()


# Row 11: nothing


BLANK = [
    "",
    " ",
    "\u00a0\n",
    "\t\r\n",
    "\u3000\u2028",
    "\u200b",
    "\u2060\ufeff",
    "\x07\x1b",
    "\u202e",
]


def test_text_that_shows_nothing_is_refused(call):
    """Row 11: in a proposal, in an edit, and in names."""
    unit = call.propose()["id"]
    for blank in BLANK:
        for place in INSIGHT:
            body = with_value(WORDS, place, blank)
            edit = {"insight": {place[1]: blank}}
            assert places(call("POST", "/knowledge", body, **CARL)) == [("body", *place)], blank
            assert places(call("PATCH", f"/review/{unit}", edit, **RITA)) == [("body", *place)]
        key = {"name": blank, "ttl": "1d"}
        assert places(call("POST", "/users/me/api-keys", key, **RITA)) == [("body", "name")]
        user = {"username": blank, "password": "x"}
        assert places(call("POST", "/users", user, **ADA)) == [("body", "username")]
    assert waiting(call) == 1


def test_tags_that_show_nothing_are_none(call):
    """Row 11: dropped among others, and a unit needs one that is left."""
    kept = []
    for number, blank in enumerate(BLANK):
        unit = call.propose(f"with a tag {number}", [blank, "http", blank])
        bare = call("POST", "/knowledge", proposal("without", [blank, f"{blank} "]), **CARL)
        edit = call("PATCH", f"/review/{unit['id']}", {"domains": [blank]}, **RITA)
        if (unit["domains"], bare.status_code, edit.status_code) != (["http"], 422, 422):
            kept.append(blank)
        assert call.found(domains=[blank]) == []
    assert kept == []


def test_a_blank_password_is_refused(call):
    """Row 11."""
    for blank in ("", " ", "\t\n", "\u00a0"):
        user = {"username": "x", "password": blank}
        assert places(call("POST", "/users", user, **ADA)) == [("body", "password")]


# Row 21: the clock


@pytest.fixture
def logged():
    """What the server logs meanwhile, as it would write it."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(logs.Lines())
    logger = logging.getLogger("cq")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield lines.getvalue
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def zone(monkeypatch):
    """`zone("Asia/Kathmandu")` moves this process there."""

    def move(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", ["Asia/Kathmandu", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_times_are_utc_whatever_the_zone(call, zone, logged, name):
    """Row 21: at any hour one of these zones has another date than UTC."""
    zone(name)
    before = datetime.now(UTC)
    unit = call.approve()["id"]
    call("POST", f"/knowledge/{unit}/confirmations", key="cleo")
    call("POST", f"/knowledge/{unit}/flags", {"reason": "stale"}, key="cleo")
    call("POST", f"/review/{unit}/keep", user="rita")
    item = call("GET", f"/review/{unit}", user="rita").json
    history = call("GET", f"/review/{unit}/history", user="rita").json
    key = call("POST", "/users/me/api-keys", {"name": "x", "ttl": "90d"}, user="rita").json
    stats = call("GET", "/review/stats", user="rita").json
    after = datetime.now(UTC)
    evidence = item["knowledge_unit"]["evidence"]
    inside = [evidence["first_observed"], evidence["last_confirmed"]]
    inside += [flag["timestamp"] for flag in item["knowledge_unit"]["flags"]]
    outside = [item["created_at"], item["reviewed_at"], key["created_at"]]
    outside += [event["at"] for event in history["events"]]
    outside += [flag["answered_at"] for flag in history["flags"]]
    outside += [entry["timestamp"] for entry in stats["recent_activity"]]
    assert len(inside) == 3
    assert len(outside) == 8
    for times, ending in ((inside, "Z"), (outside, "+00:00")):
        for text in times:
            assert text.endswith(ending)
            assert before <= datetime.fromisoformat(text) <= after
    life = datetime.fromisoformat(key["expires_at"]) - datetime.fromisoformat(key["created_at"])
    assert life == timedelta(days=90)
    (day,) = stats["trends"]["daily"]
    assert day["date"] in (str(before.date()), str(after.date()))
    moment = datetime.fromisoformat(json.loads(logged().splitlines()[0])["time"])
    assert before - timedelta(milliseconds=1) <= moment <= after


# Rows 29 and 30: nearly the same, and the same again


NEAR = [
    ("Node 22.4 breaks the build", "Node 22.5 breaks the build"),
    ("The proxy listens on port 8080", "The proxy listens on port 8081"),
    ("Retry 2⁵ times", "Retry 25 times"),
    ("Allow 10³ rows", "Allow 103 rows"),
    ("Wait ½ second", "Wait 1⁄2 second"),
    ("Use ＴＡＢ there", "Use TAB there"),
    ("Set DEBUG", "Set debug"),
    ("Use x = 1", "Use x == 1"),
    ("Needs v1", "Needs v1."),
]


def test_units_that_differ_in_a_detail_are_both_stored(call):
    """Row 29: in any of the three texts."""
    lost = []
    for pair in NEAR:
        for place in INSIGHT:
            bodies = [with_value(WORDS, place, text) for text in pair]
            answers = [call("POST", "/knowledge", body, **CARL).json for body in bodies]
            if [answer["insight"][place[1]] for answer in answers] != list(pair):
                lost.append((place[1], *pair))
    assert lost == []
    assert waiting(call) == 2 * 3 * len(NEAR)


def test_a_retry_makes_no_second_unit(call):
    """Row 30: without a key by the words, with one whatever the words, also after a decision."""
    for number, headers in enumerate(
        ({}, {"Idempotency-Key": "attempt 1"}, {"Idempotency-Key": f"ku_{'c' * 32}"})
    ):
        words = [f"tried {number} {headers and attempt}" for attempt in range(4)]
        (id,) = {call.propose(text, headers=headers)["id"] for text in words[:3]}
        assert call("POST", f"/review/{id}/approve", user="rita").status_code == 200
        assert call.propose(words[3], headers=headers)["id"] == id
    listed = call("GET", "/review/units", user="rita").json
    assert [item["status"] for item in listed] == ["approved"] * 3


def test_a_refused_attempt_does_not_use_its_key_up(call):
    """Row 30: what was not stored is no first attempt."""
    headers = {"Idempotency-Key": f"ku_{'c' * 32}"}
    for body, who, status in (
        (proposal(""), CARL, 422),
        (proposal(), {}, 401),
        (proposal("x" * 300_000), CARL, 413),
    ):
        assert call("POST", "/knowledge", body, headers=headers, **who).status_code == status
    assert call.propose("the one", headers=headers)["id"] == headers["Idempotency-Key"]
    assert call.propose("the one", headers=headers)["insight"]["summary"] == "the one"
    assert waiting(call) == 1


# Row 40: long passwords


def login(call, username, password):
    body = json.dumps({"username": username, "password": password})
    return send(call, "POST", "/auth/login", body)


def test_a_password_longer_than_bcrypt_reads_is_wrong_and_not_cut(call):
    """Row 40: alike for a real and an unreal account; 72 bytes are the most a new one takes."""
    for username in ("rita", "nobody"):
        answer = login(call, username, "é" * 73)
        assert (answer.status_code, answer.json) == (
            401,
            {"detail": "Invalid username or password"},
        )
    longest = "é" * 36
    for path, method, body, field in (
        ("/users", "POST", {"username": "lena"}, "password"),
        ("/users/carl", "PATCH", {}, "password"),
    ):
        for password in (longest + "x", "é" * 73):
            answer = call(method, path, {**body, field: password}, user="ada")
            assert places(answer) == [("body", field)]
            assert "éé" not in answer.text
    change = {"password": PASSWORD, "new_password": "é" * 73}
    assert places(call("PATCH", "/users/me", change, user="rita")) == [("body", "new_password")]
    made = call("POST", "/users", {"username": "lena", "password": longest}, user="ada")
    assert made.status_code == 201
    assert login(call, "lena", longest).status_code == 200
    assert login(call, "lena", longest + "x").status_code == 401


def test_a_password_with_nul_is_refused_and_not_cut(call):
    """Row 40: the part before the NUL opens nothing."""
    for username in ("rita", "nobody"):
        for password in (f"{PASSWORD}\x00", f"{PASSWORD}\x00x", "\x00"):
            assert places(login(call, username, password)) == [("body", "password")]


# Row 42: keys where they do not belong


def test_a_key_in_the_url_opens_nothing(call):
    """Row 42: as a parameter of any name, or in the path."""
    call.approve(domains=["tiers"])
    key, token = call.keys["carl"], call.tokens["rita"]
    for name in (
        "api_key",
        "key",
        "token",
        "access_token",
        "jwt",
        "Authorization",
        "authorization",
    ):
        for value in (key, token, f"Bearer {key}", f"Bearer {token}"):
            extra = {name: value}
            query = {"domains": "tiers", **extra}
            answer = call("POST", "/knowledge", proposal("by url"), query_string=extra)
            assert answer.status_code == 401
            answer = call("GET", "/review/queue", query_string=extra)
            assert answer.status_code == 401
            assert call("GET", "/knowledge", query_string=query).status_code == 401
    for path in (f"/knowledge/{key}", f"/{key}/knowledge", f"/users/{key}/api-keys"):
        assert call("GET", path).status_code == 401
    assert waiting(call) == 0


def test_a_key_in_a_body_or_cookie_opens_nothing(call):
    """Row 42."""
    key = call.keys["carl"]
    body = {**proposal(), "api_key": key, "token": key, "Authorization": f"Bearer {key}"}
    assert call("POST", "/knowledge", body).status_code == 401
    for name in ("api_key", "token", "Authorization", "access_token_cookie"):
        headers = {"Cookie": f"{name}={key}"}
        assert call("POST", "/knowledge", proposal(), headers=headers).status_code == 401


def test_a_key_in_a_header_of_another_form_opens_nothing(call):
    """Row 42: only `Authorization: Bearer KEY`, to the letter."""
    key = call.keys["carl"]
    for headers in (
        {"Authorization": key},
        {"Authorization": f"bearer {key}"},
        {"Authorization": f"BEARER {key}"},
        {"Authorization": f"Bearer  {key}"},
        {"Authorization": f"Bearer {key} "},
        {"Authorization": f"Bearer\t{key}"},
        {"Authorization": f"Token {key}"},
        {"Authorization": f"Basic {key}"},
        {"Authorization": f"Bearer {key},{key}"},
        {"Authorization": f"Bearer {key.upper()}"},
        {"X-API-Key": key},
        {"Api-Key": key},
        {"Proxy-Authorization": f"Bearer {key}"},
    ):
        answer = call("POST", "/knowledge", proposal(), headers=headers)
        assert (answer.status_code, answer.json) == (401, {"detail": "Invalid API key"}), headers
    assert waiting(call) == 0


def test_logs_hold_no_key_wherever_it_was_put(call, logged):
    """Row 42: nor a session's token or a password that was sent where it belongs."""
    key, token = call.keys["carl"], call.tokens["rita"]
    secret = key.rpartition(".")[2]
    for value in (key, token):
        headers = {"X-Request-ID": value, "Referer": f"http://x/?{value}", "User-Agent": value}
        call("GET", "/knowledge", query_string={"domains": "x", "api_key": value}, headers=headers)
        call("GET", "/knowledge", headers={"Authorization": f"Bearer  {value}"})
        call("POST", "/auth/login", {"username": value, "password": 5})
    for path in (f"/knowledge/{key}", f"/{key}/x", f"/knowledge/{key.replace('.', '%2E')}"):
        assert call("GET", path).status_code == 401
    login(call, "rita", "wrong horse battery staple")
    call("POST", "/knowledge", proposal(), headers={"Authorization": f"Bearer {key[:-1]}a"})
    call.propose()
    written = logged()
    assert written.count("GET /api/v1/knowledge") == 6
    assert written.count("POST /api/v1/auth/login") == 3
    for hidden in (secret, secret[:-1], token, token.rpartition(".")[2], "horse"):
        assert hidden not in written, hidden


def test_logs_hold_no_token_of_a_session_that_was_put_into_a_path(call, logged):
    """Row 42: it opens as much as a key does."""
    token = call.tokens["rita"]
    for path in (f"/knowledge/{token}", f"/{token}/x", f"/knowledge/{token.replace('.', '%2E')}"):
        assert call("GET", path).status_code == 401
    written = logged()
    assert written.count("GET /api/v1/") == 3
    assert token.rpartition(".")[2] not in written


# Row 43: markup


MARKUP = [
    "[a](java&#115;cript:alert(1))",
    "[a](javascript:alert(1))",
    "[a](data:text/html;base64,phncy)",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<script>alert(1)</script>",
    "</script><script>alert(1)",
    "\"><b onmouseover='alert(1)'>",
    "&lt;b&gt; &amp; &#x27;",
    "{{7*7}} ${7*7} <%= 7 %>",
    "![x](http://x/y.png)",
]


@pytest.mark.parametrize("markup", MARKUP)
def test_markup_is_stored_as_it_was_sent_and_answered_as_json(call, markup):
    """Row 43: in every text of a unit and of a review."""
    body = {
        "domains": [markup],
        "insight": {"summary": markup, "detail": markup, "action": markup},
        "context": {"languages": [markup], "frameworks": [markup], "pattern": markup},
        "extensions": {"a:b": {markup: markup}},
    }
    made = call("POST", "/knowledge", body, **CARL)
    id = made.json["id"]
    assert call("POST", f"/review/{id}/reject", {"reason": markup}, **RITA).status_code == 200
    rejected = call("GET", f"/review/{id}", **RITA)
    assert rejected.json["reason"] == markup
    assert call("POST", f"/review/{id}/reopen", {"reason": markup}, **RITA).status_code == 200
    assert call("POST", f"/review/{id}/approve", {"tier": "public"}, **RITA).status_code == 200
    flagged = {"reason": "stale", "detail": markup}
    assert call("POST", f"/knowledge/{id}/flags", flagged, **CARL).status_code == 201
    history = call("GET", f"/review/{id}/history", **RITA)
    assert {event["reason"] for event in history.json["events"]} == {markup, None}
    assert history.json["flags"][0]["detail"] == markup
    assert call.found(domains=markup) == [id]
    answers = {
        "made": (made, made.json),
        "one": (one := call("GET", f"/knowledge/{id}"), one.json),
        "query": (
            query := call("GET", "/knowledge", query_string={"domains": markup}),
            query.json["data"][0],
        ),
        "item": (item := call("GET", f"/review/{id}", **RITA), item.json["knowledge_unit"]),
    }
    for name, (answer, unit) in answers.items():
        assert answer.headers["Content-Type"] == "application/json", name
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert {key: unit[key] for key in body} == {**body, "domains": [markup.casefold()]}, name
    stats = call("GET", "/review/stats", **RITA)
    assert stats.json["recent_activity"][0]["summary"] == markup
    assert list(stats.json["domains"]) == [markup.casefold()]


def test_markup_in_names_is_stored_as_it_was_sent(call):
    """Row 43: of people, keys and labels."""
    name = "<img src=x onerror=alert(1)>"
    body = {"username": name, "password": PASSWORD, "role": "reviewer"}
    assert call("POST", "/users", body, user="ada").json["username"] == name
    signed_in = login(call, name, PASSWORD)
    assert signed_in.json["username"] == name
    headers = {"Authorization": f"Bearer {signed_in.json['token']}"}
    made = call(
        "POST",
        "/users/me/api-keys",
        {"name": name, "ttl": "1d", "labels": [name, "<b>"]},
        headers=headers,
    ).json
    assert (made["name"], made["labels"]) == (name, [name, "<b>"])
    unit = call(
        "POST", "/knowledge", proposal(), headers={"Authorization": f"Bearer {made['token']}"}
    ).json
    assert unit["created_by"] == name
    decided = call("POST", f"/review/{unit['id']}/approve", headers=headers).json
    assert decided["reviewed_by"] == name
    again = call("POST", f"/review/{unit['id']}/approve", user="rita")
    assert again.status_code == 409
    assert name in again.json["detail"]
    assert again.headers["Content-Type"] == "application/json"


def test_no_answer_lets_a_browser_run_what_it_holds(call):
    """Row 43: a policy without inline script on every answer, whatever its status."""
    client = call.app.test_client(use_cookies=False)
    seen = set()
    for rule in call.app.url_map.iter_rules():
        for method in sorted(rule.methods - {"OPTIONS"}):
            path = rule.rule.replace("<unit_id>", NOBODYS).replace("<path:name>", "index.css")
            path = path.replace("<username>", "carl").replace("<key_id>", "0" * 32)
            for headers in ({}, {"Authorization": f"Bearer {call.tokens['ada']}"}):
                answer = client.open(path, method=method, headers=headers, buffered=True)
                seen.add(answer.status_code)
                check_policy(answer, documentation=path.startswith("/api/docs"))
    odd = (
        client.get("/<script>alert(1)</script>"),
        client.get("/api/v1/<script>alert(1)</script>"),
        client.delete("/api/v1/knowledge"),
        client.post("/api/v1/knowledge", data="x" * 300_000),
        client.post("/api/v1/auth/login", json={}, headers={"Origin": "https://elsewhere.example"}),
    )
    for answer in odd:
        seen.add(answer.status_code)
        check_policy(answer)
        assert answer.is_json
        assert "script" not in answer.text
    assert seen >= {200, 401, 403, 404, 405, 413, 422}


def check_policy(answer, documentation=False):
    parts = answer.headers["Content-Security-Policy"].split(";")
    policy = {name: sources for name, *sources in map(str.split, parts)}
    assert policy["default-src"] == ["'self'"]
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == ["'none'"]
    for name, sources in policy.items():
        if not (documentation and name in ("style-src", "img-src")):
            assert set(sources) <= {"'self'", "'none'", "'script'"}, name
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"


# Row 49: numbers that are none


NO_NUMBERS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "1E+400",
    "1" + "0" * 309,
    "-1" + "0" * 400,
    "9" * 5000,
    "[" * 100_000,
    "[" * 3000 + "]" * 3000,
    '{"a":' * 30_000,
    "01",
    "+1",
    ".5",
    "1.",
    "0x10",
    "1_000",
    "nan",
    "None",
    "True",
    "undefined",
]


def test_numbers_that_json_has_not_or_no_reader_holds_are_refused(call):
    """Row 49: anywhere in a body, also where nobody reads it."""
    bodies = [
        ("/knowledge", CARL, json.dumps(with_value({**WORDS, "extensions": {}}, place, "HERE")))
        for place in (
            ("extensions", "a:b"),
            ("unknown",),
            ("insight", "unknown"),
            ("confidence",),
            ("insight", "summary"),
            ("domains",),
        )
    ]
    bodies.append(("/knowledge", CARL, json.dumps({**WORDS, "extensions": {"a:b": ["HERE"]}})))
    bodies += [
        (path, who, '{"unknown": "HERE"}')
        for path, who in (("/auth/login", {}), ("/review/bulk", RITA), ("/users/me/api-keys", RITA))
    ]
    taken = []
    for number in NO_NUMBERS:
        for path, who, body in bodies:
            answer = send(call, "POST", path, body.replace('"HERE"', number), **who)
            if answer.status_code != 422 or len(answer.data) > 400:
                taken.append((number[:12], len(number), path, body[-60:]))
    assert taken == []
    assert waiting(call) == 0


def test_numbers_that_json_has_come_out_as_they_went_in(call):
    """Row 49: and what is answered is JSON to the letter."""
    numbers = [0, -0.0, 1.5, -1e-300, 1e308, 2**53 + 1, 10**300, 5e-324, True, None]
    made = call.approve(extensions={"a:b": numbers}, tier="public")
    for answer in (
        call("GET", f"/knowledge/{made['id']}"),
        call("GET", "/knowledge?domains=state&explain=1"),
        call("GET", f"/review/{made['id']}", user="rita"),
    ):
        parsed = json.loads(answer.text, parse_constant=pytest.fail)
        unit = parsed.get("knowledge_unit") or parsed.get("data", [parsed])[0]
        assert repr(unit["extensions"]["a:b"]) == repr(numbers)


def test_a_number_of_a_query_is_finite_and_written_in_digits(call):
    """Row 49."""
    for name in ("confidence_min", "confidence_max"):
        for value in (
            "nan",
            "NaN",
            "inf",
            "-inf",
            "infinity",
            "1e999",
            "-1e999",
            "",
            "0x1",
            "1_0",
            "٣",
        ):
            answer = call("GET", "/review/units", query_string={name: value}, user="rita")
            assert places(answer) == [("query", name)], value
        for value in ("0", "0.5", "-1", "1e300", ".5", "1.", "5e-1"):
            answer = call("GET", "/review/units", query_string={name: value}, user="rita")
            assert answer.json == [], value
    for path, who in (("/review/queue", RITA), ("/users/me/proposals", RITA), ("/users", ADA)):
        for name in ("limit", "offset"):
            for value in (
                "nan",
                "inf",
                "1e999",
                "1e2",
                "-1",
                str(2**63),
                "9" * 5000,
                "",
                "1.5",
                "٣",
            ):
                answer = call("GET", path, query_string={name: value}, **who)
                assert places(answer) == [("query", name)], (path, name, value)
    assert call("GET", f"/review/queue?offset={2**63 - 1}", **RITA).json["items"] == []


def test_a_revision_is_a_whole_number(call):
    """Row 49: the one number that bodies hold."""
    unit = call.propose()["id"]
    for value in (0, -1, 1.5, 1e300, 2**63, 10**300, True, False, "x", "", [1], {}):
        for method, path, body in (
            ("POST", f"/review/{unit}/approve", {}),
            ("PATCH", f"/review/{unit}", {"domains": ["x"]}),
        ):
            answer = call(method, path, {**body, "revision": value}, user="rita")
            assert places(answer) == [("body", "revision")], value
    late = call("POST", f"/review/{unit}/approve", {"revision": 2**63 - 1}, user="rita")
    assert late.status_code == 409
    assert call("POST", f"/review/{unit}/approve", {"revision": 1}, user="rita").status_code == 200


# Row 54: too many


def test_too_many_tags_or_ids_are_refused_and_not_tried(call):
    """Row 54: however they come."""
    many = [f"t{number}" for number in range(5000)]
    for name in ("domains", "languages", "frameworks"):
        answer = call("GET", "/knowledge", query_string={"domains": "x", name: many})
        assert places(answer) == [("query", name)]
        assert len(answer.data) < 300
    for place in (("domains",), ("context", "languages"), ("context", "frameworks")):
        answer = call("POST", "/knowledge", with_value(WORDS, place, many), **CARL)
        assert places(answer) == [("body", *place)]
        assert len(answer.data) < 300
    labels = {"name": "x", "ttl": "1d", "labels": many}
    assert places(call("POST", "/users/me/api-keys", labels, **RITA)) == [("body", "labels")]
    ids = [f"ku_{number:032x}" for number in range(40_000)]
    for count, status in ((201, 422), (6000, 422), (40_000, 413)):
        body = {"decision": "reject", "ids": ids[:count]}
        answer = call("POST", "/review/bulk", body, **RITA)
        assert answer.status_code == status, count
        assert len(answer.data) < 300


def test_as_many_ids_as_are_taken_are_answered_each(call):
    """Row 54."""
    ids = [f"ku_{number:032x}" for number in range(200)]
    body = {"decision": "approve", "ids": ids}
    answer = call("POST", "/review/bulk", body, **RITA)
    assert [entry["unit_id"] for entry in answer.json["data"]] == ids
    assert {entry["error"] for entry in answer.json["data"]} == {404}


def test_parameters_that_nobody_reads_do_not_count(call):
    """Row 54."""
    call.approve(domains=["x"])
    extra = {f"p{number}": "x" for number in range(2000)}
    assert len(call.found(domains="x", **extra)) == 1


# Row 56: exact tags


TAGS = ["go", "mongo", "gopher", "g%", "g_", "%", "_", "*", "g*", "?", "[a-z]o", "go go", "\\", "'"]


def test_tags_match_to_the_letter(call):
    """Row 56: in agents' queries, in the reviewers' filter and in the counts."""
    ids = {tag: call.approve(f"about {tag}", [tag])["id"] for tag in TAGS}
    for tag, id in ids.items():
        assert call.found(domains=tag, limit=50) == [id], tag
        filtered = call("GET", "/review/units", query_string={"domain": tag}, user="rita").json
        assert [item["knowledge_unit"]["id"] for item in filtered] == [id], tag
    counts = call("GET", "/knowledge/stats", key="carl").json["domain_counts"]
    assert counts == dict.fromkeys(TAGS, 1)
    for near in ("g", "mong", "o", "%go%", "go%", "GO_"):
        assert call.found(domains=near) == [], near


def test_languages_frameworks_and_patterns_match_to_the_letter(call):
    """Row 56: `go` is not lifted by `mongo`."""
    for name, one, other in (
        ("languages", ["go"], ["mongo"]),
        ("frameworks", ["go"], ["g_"]),
        ("pattern", "go", "%"),
    ):
        tag = f"tag of {name}"
        wanted = call.approve(f"one {name}", [tag], context={name: one})["id"]
        call.approve(f"other {name}", [tag], context={name: other})
        answer = call(
            "GET", "/knowledge", key="cleo", query_string={"domains": tag, name: "go", "explain": 1}
        ).json
        assert answer["data"][0]["id"] == wanted
        assert [part["score"] for part in answer["explain"]] == pytest.approx([0.35, 0.275])


# Row 57: gone is gone


def withdrawn(call):
    """{how: id} of public units that agents must not see, with the tag and the words they had."""
    ids = {
        how: call.approve(f"vanished by {how}", ["vanished"], tier="public")["id"]
        for how in ("retire", "reopen", "supersede", "refuse")
    }
    heir = call.approve("the heir", ["heir"], tier="public")["id"]
    assert set(call.found(domains="vanished", limit=50)) == set(ids.values())
    for path, body in (
        (f"{ids['retire']}/retire", {"reason": "vanished"}),
        (f"{ids['reopen']}/reopen", {"reason": "vanished"}),
        (f"{ids['supersede']}/supersede", {"replacement": heir}),
        (f"{ids['refuse']}/reopen", {}),
        (f"{ids['refuse']}/reject", {"reason": "vanished"}),
    ):
        assert call("POST", f"/review/{path}", body, user="rita").status_code == 200
    ids["propose"] = call.propose("vanished by waiting", ["vanished"])["id"]
    return ids


def test_what_was_withdrawn_is_absent_everywhere(call):
    """Row 57: rejected, retired, superseded, reopened and never decided units, for any caller."""
    kept = call.approve("not vanished at all but kept for good", ["kept"], tier="public")["id"]
    ids = withdrawn(call)
    for caller in ("carl", "cleo", None):
        assert call.found(key=caller, domains="vanished", limit=50) == []
        for limit in (1, 50):
            assert call.found(key=caller, q="vanished", limit=limit) == [kept]
            assert call.found(key=caller, domains="vanished", q="vanished", limit=limit) == [kept]
        stats = call("GET", "/knowledge/stats", key=caller).json
        assert stats["total_count"] == 2
        assert stats["tier_counts"] == {"public": 2}
        assert stats["domain_counts"] == {"heir": 1, "kept": 1}
        assert sum(stats["confidence_distribution"].values()) == 2
        for how, id in ids.items():
            assert call("GET", f"/knowledge/{id}", key=caller).status_code == 404, how
    for how, id in ids.items():
        assert call("POST", f"/knowledge/{id}/confirmations", key="cleo").status_code == 404, how
        flagged = call("POST", f"/knowledge/{id}/flags", {"reason": "stale"}, key="cleo")
        assert flagged.status_code == 404, how
    board = call("GET", "/review/stats", user="rita").json
    assert board["counts"] == {"pending": 2, "approved": 2, "rejected": 1}
    assert board["domains"] == {"heir": 1, "kept": 1}
    assert sum(board["confidence_distribution"].values()) == 2
    for query in ("domains=vanished", "q=vanished", "domains=kept&q=vanished"):
        text = call("GET", f"/knowledge?{query}&limit=50&explain=1", key="carl").text
        assert not [how for how, id in ids.items() if id in text]


def test_what_comes_back_is_found_again(call):
    """Row 57, the other way round: what was withdrawn is not lost."""
    ids = withdrawn(call)
    assert call("POST", f"/review/{ids['retire']}/reopen", user="rita").status_code == 200
    assert call("POST", f"/review/{ids['refuse']}/reopen", user="rita").status_code == 200
    back = [ids[how] for how in ("retire", "refuse", "reopen", "propose")]
    for id in back:
        assert call("POST", f"/review/{id}/approve", user="rita").status_code == 200
    assert set(call.found(domains="vanished", limit=50)) == set(back)
    assert set(call.found(q="vanished", limit=50)) == set(back)
    assert call("GET", "/knowledge/stats", key="carl").json["domain_counts"]["vanished"] == 4


# Row 60: undoing in bulk


def bulk(call, decision, ids, **more):
    answer = call("POST", "/review/bulk", {"decision": decision, "ids": ids, **more}, user="rita")
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def test_a_hundred_rejections_can_be_undone(call):
    """Row 60: all are back as they were, with one event a unit for each of the two steps."""
    ids = [call.propose(f"bulk {number}", ["bulk"])["id"] for number in range(100)]
    before = call("GET", "/review/queue?limit=100", user="rita").json
    rejected = bulk(call, "reject", ids, reason="by mistake")
    assert [(entry["unit_id"], entry["status"]) for entry in rejected] == [
        (id, "rejected") for id in ids
    ]
    assert waiting(call) == 0
    reopened = bulk(call, "reopen", ids, reason="undone")
    assert [(entry["unit_id"], entry["status"]) for entry in reopened] == [
        (id, "pending") for id in ids
    ]
    assert call("GET", "/review/queue?limit=100", user="rita").json == before
    for id in ids:
        events = call("GET", f"/review/{id}/history", user="rita").json["events"]
        assert [(event["type"], event["by"], event["reason"]) for event in events] == [
            ("proposed", "carl", None),
            ("rejected", "rita", "by mistake"),
            ("reopened", "rita", "undone"),
        ]


def test_approvals_in_bulk_can_be_undone(call):
    """Row 60: nothing is served afterwards."""
    ids = [call.propose(f"bulk {number}", ["bulk"])["id"] for number in range(10)]
    bulk(call, "approve", ids, tier="public")
    assert sorted(call.found(domains="bulk", limit=50, key=None)) == sorted(ids)
    bulk(call, "reopen", ids)
    assert call.found(domains="bulk") == []
    assert call("GET", "/knowledge/stats").json["total_count"] == 0
    assert waiting(call) == len(ids)


def test_an_id_given_twice_or_decided_before_makes_no_second_event(call):
    """Row 60: each id is answered as it would have been alone, and the others go through."""
    first, second = (call.propose(f"bulk {number}")["id"] for number in range(2))
    assert [entry["status"] for entry in bulk(call, "reject", [first, first])] == ["rejected"]
    answers = bulk(call, "reject", [first, NOBODYS, second])
    assert [(entry.get("error"), entry.get("status")) for entry in answers] == [
        (409, None),
        (404, None),
        (None, "rejected"),
    ]
    events = call("GET", f"/review/{first}/history", user="rita").json["events"]
    assert [event["type"] for event in events] == ["proposed", "rejected"]
