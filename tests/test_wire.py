"""The wire: what problems look like, what is checked first, how units, times and numbers are told."""

import http.client
import json
import re
from datetime import datetime
from urllib.parse import urlsplit

import pytest

from cq import unit as rules
from tests.cast import PASSWORD, UNIT, proposal

NOBODYS = f"ku_{'0' * 32}"
CARL, RITA, ADA = {"key": "carl"}, {"user": "rita"}, {"user": "ada"}
SECRET = "neverbetold"
BIG = "x" * 300_000


def send(call, method, path, body, kind="application/json", **who):
    return call(method, path, data=body, content_type=kind, **who)


def told(answer, status=422):
    """The problems of an answer as (type, loc, msg), each with these members and no other."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert list(answer.json) == ["detail"]
    assert all(list(problem) == ["type", "loc", "msg"] for problem in answer.json["detail"])
    assert SECRET not in answer.text
    return [(problem["type"], problem["loc"], problem["msg"]) for problem in answer.json["detail"]]


# The catalogue of problems


OBJECT = "Input should be a valid dictionary or object to extract fields from"
FIELDS = [
    ("domains", None, "list_type", ["domains"], "Input should be a valid list"),
    ("domains", SECRET, "list_type", ["domains"], "Input should be a valid list"),
    ("domains", {SECRET: 1}, "list_type", ["domains"], "Input should be a valid list"),
    ("domains", ["a", 7], "string_type", ["domains", 1], "Input should be a valid string"),
    ("domains", ["a", None], "string_type", ["domains", 1], "Input should be a valid string"),
    (
        "domains",
        [],
        "too_short",
        ["domains"],
        "List should have at least 1 item after validation, not 0",
    ),
    (
        "domains",
        [SECRET] * 17,
        "too_long",
        ["domains"],
        "List should have at most 16 items after validation, not 17",
    ),
    (
        "domains",
        ["a", SECRET * 6],
        "value_error",
        ["domains", 1],
        "Value error, domains must be at most 64 characters, got 66",
    ),
    ("insight", None, "model_attributes_type", ["insight"], OBJECT),
    ("insight", SECRET, "model_attributes_type", ["insight"], OBJECT),
    ("insight", [SECRET], "model_attributes_type", ["insight"], OBJECT),
    ("context", None, "model_attributes_type", ["context"], OBJECT),
    ("context", 7, "model_attributes_type", ["context"], OBJECT),
    (
        "context",
        {"languages": SECRET},
        "list_type",
        ["context", "languages"],
        "Input should be a valid list",
    ),
    (
        "context",
        {"frameworks": ["x", 1.5]},
        "string_type",
        ["context", "frameworks", 1],
        "Input should be a valid string",
    ),
    (
        "context",
        {"languages": [SECRET] * 17},
        "too_long",
        ["context", "languages"],
        "List should have at most 16 items after validation, not 17",
    ),
    (
        "context",
        {"pattern": None},
        "string_type",
        ["context", "pattern"],
        "Input should be a valid string",
    ),
    (
        "context",
        {"pattern": SECRET * 20},
        "value_error",
        ["context", "pattern"],
        "Value error, pattern must be at most 200 characters, got 220",
    ),
    ("created_by", None, "string_type", ["created_by"], "Input should be a valid string"),
    ("created_by", 7, "string_type", ["created_by"], "Input should be a valid string"),
]


def test_each_problem_has_its_type_place_and_message(call):
    for name, value, *expected in FIELDS:
        answer = call("POST", "/knowledge", {**proposal(), name: value}, **CARL)
        kind, place, message = expected
        assert told(answer) == [(kind, ["body", *place], message)], (name, value)


@pytest.mark.parametrize(("name", "most"), [("summary", 500), ("detail", 8000), ("action", 2000)])
def test_each_problem_of_a_text_has_its_type_place_and_message(call, name, most):
    words = proposal()["insight"]
    for value, kind, message in (
        (
            "x" * (most + 1),
            "value_error",
            f"Value error, {name} must be at most {most} characters, got {most + 1}",
        ),
        (7, "string_type", "Input should be a valid string"),
        (True, "string_type", "Input should be a valid string"),
        (None, "string_type", "Input should be a valid string"),
        ([SECRET], "string_type", "Input should be a valid string"),
        ({SECRET: SECRET}, "string_type", "Input should be a valid string"),
    ):
        body = proposal(insight={**words, name: value})
        answer = call("POST", "/knowledge", body, **CARL)
        assert told(answer) == [(kind, ["body", "insight", name], message)], value
    body = proposal(insight={key: text for key, text in words.items() if key != name})
    missing = ("missing", ["body", "insight", name], "Field required")
    assert told(call("POST", "/knowledge", body, **CARL)) == [missing]


def test_a_missing_member_is_a_field_required(call):
    for path, who, names in (
        ("/knowledge", CARL, ["domains", "insight"]),
        (f"/knowledge/{NOBODYS}/flags", CARL, ["reason"]),
        ("/auth/login", {}, ["username", "password"]),
        ("/users", ADA, ["username", "password"]),
        ("/users/me/api-keys", RITA, ["name", "ttl"]),
        (f"/review/{NOBODYS}/supersede", RITA, ["replacement"]),
        ("/review/bulk", RITA, ["decision", "ids"]),
    ):
        expected = [("missing", ["body", name], "Field required") for name in names]
        assert sorted(told(call("POST", path, {}, **who))) == sorted(expected), path


def test_a_text_that_is_too_short_or_too_long_says_by_how_much(call):
    for body, place, kind, message in (
        (
            {"name": "", "ttl": "1d"},
            ["name"],
            "string_too_short",
            "String should have at least 1 character",
        ),
        (
            {"name": SECRET * 6, "ttl": "1d"},
            ["name"],
            "string_too_long",
            "String should have at most 64 characters",
        ),
        (
            {"name": "x", "ttl": ""},
            ["ttl"],
            "string_too_short",
            "String should have at least 1 character",
        ),
        (
            {"name": "x", "ttl": f"{SECRET}123456"},
            ["ttl"],
            "string_too_long",
            "String should have at most 16 characters",
        ),
        (
            {"name": "x", "ttl": "1d", "labels": ["a", SECRET * 6]},
            ["labels", 1],
            "string_too_long",
            "String should have at most 64 characters",
        ),
        (
            {"name": "x", "ttl": "1d", "labels": None},
            ["labels"],
            "list_type",
            "Input should be a valid list",
        ),
    ):
        answer = call("POST", "/users/me/api-keys", body, **RITA)
        assert told(answer) == [(kind, ["body", *place], message)], body


def test_a_word_that_is_none_of_the_choices_is_told_which_there_are(call):
    for method, path, who, body, name, choices in (
        (
            "POST",
            f"/knowledge/{NOBODYS}/flags",
            CARL,
            {},
            "reason",
            "'stale', 'incorrect' or 'duplicate'",
        ),
        ("POST", f"/review/{NOBODYS}/approve", RITA, {}, "tier", "'private' or 'public'"),
        (
            "POST",
            "/review/bulk",
            RITA,
            {"ids": [NOBODYS]},
            "decision",
            "'approve', 'reject' or 'reopen'",
        ),
        ("PATCH", "/users/carl", ADA, {}, "role", "'admin', 'reviewer' or 'contributor'"),
    ):
        for value in (SECRET, "", "Stale", "STALE", "private "):
            answer = call(method, path, {**body, name: value}, **who)
            expected = ("enum", ["body", name], f"Input should be {choices}")
            assert told(answer) == [expected], (path, value)
        for value in (7, True, [SECRET]):
            answer = call(method, path, {**body, name: value}, **who)
            expected = ("string_type", ["body", name], "Input should be a valid string")
            assert told(answer) == [expected], (path, value)


def test_a_body_that_is_no_object_is_told_so(call):
    for path, who in (
        ("/knowledge", CARL),
        ("/auth/login", {}),
        (f"/knowledge/{NOBODYS}/flags", CARL),
        (f"/review/{NOBODYS}/approve", RITA),
    ):
        for body in ("null", "[]", "7", f'"{SECRET}"', "true", f'["{SECRET}"]'):
            expected = ("model_attributes_type", ["body"], OBJECT)
            assert told(send(call, "POST", path, body, **who)) == [expected], (path, body)


def test_a_body_that_is_no_json_is_told_where_it_breaks_off(call):
    for body, at in (
        ("{", 1),
        ("{bad", 1),
        ('{"a":1,}', 7),
        ('{"a":1} x', 8),
        (f'{{"{SECRET}"', 14),
        (f"{SECRET}", 0),
        ("  ", 2),
        ("{'a':1}", 1),
        ('{"a":"\n"}', 6),
        ('{"a":"\\x"}', 6),
    ):
        expected = ("json_invalid", ["body", at], "JSON decode error")
        assert told(send(call, "POST", "/knowledge", body, **CARL)) == [expected], body


def test_an_absent_body_is_a_field_required(call):
    expected = [("missing", ["body"], "Field required")]
    for path, who in (
        ("/knowledge", CARL),
        ("/auth/login", {}),
        (f"/knowledge/{NOBODYS}/flags", CARL),
        ("/review/bulk", RITA),
    ):
        assert told(call("POST", path, **who)) == expected
        assert told(send(call, "POST", path, "", **who)) == expected


def test_a_body_that_is_no_utf_8_is_a_bad_request(call):
    for body in (b"\xff", b'{"a":"\xe9"}', json.dumps(proposal()).encode("utf-16")):
        answer = send(call, "POST", "/knowledge", body, **CARL)
        assert answer.status_code == 400
        assert answer.json == {"detail": "There was an error parsing the body"}


def test_a_body_is_json_only_by_its_content_type(call):
    body = json.dumps(proposal())
    for number, kind in enumerate(
        (
            "application/json",
            "application/json; charset=utf-8",
            "Application/JSON",
            "application/problem+json",
            "application/vnd.api+json;v=1",
        )
    ):
        fresh = json.dumps(proposal(f"by type {number}"))
        assert send(call, "POST", "/knowledge", fresh, kind, **CARL).status_code == 201, kind
    for kind in (
        None,
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json+x",
        "text/x+json",
        "json",
    ):
        answer = send(call, "POST", "/knowledge", body, kind, **CARL)
        assert told(answer) == [("model_attributes_type", ["body"], OBJECT)], kind


def test_of_a_repeated_member_the_last_one_counts_and_unknown_ones_do_not(call):
    body = json.dumps({**proposal("the last"), "id": NOBODYS, "unknown": {"deep": [1]}})
    body = f'{{"domains":7,"insight":null,{body[1:]}'
    answer = send(call, "POST", "/knowledge", body, **CARL)
    assert answer.status_code == 201
    assert answer.json["insight"]["summary"] == "the last"
    assert answer.json["id"] != NOBODYS
    assert "unknown" not in answer.json


def test_the_grammar_of_extension_keys_holds_on_the_wire(call):
    """The vectors of the agent specification, section 10.3, and a trailing newline."""
    good = [
        "cq:severity",
        "a:b",
        "x0:flag",
        "abc_def:ghi",
        "impl:key/with/slashes",
        "ns:UPPER-value",
    ]
    made = call.propose(extensions=dict.fromkeys(good, 1))
    assert list(made["extensions"]) == good
    for bad in (
        "no-namespace",
        ":x",
        "UPPER:key",
        "Mixed:key",
        "-a:b",
        "_a:b",
        "impl:",
        "impl: x",
        "impl:has space",
        "impl:has\ttab",
        "impl:has\nnewline",
        "impl:x\n",
        "",
    ):
        answer = call("POST", "/knowledge", proposal(extensions={"a:b": 1, bad: SECRET}), **CARL)
        ((kind, place, _),) = told(answer)
        assert (kind, place) == ("value_error", ["body", "extensions"]), bad
    for no_object in ([], "x", 7, True):
        answer = call("POST", "/knowledge", proposal(extensions=no_object), **CARL)
        assert told(answer) == [("model_attributes_type", ["body", "extensions"], OBJECT)]


def test_every_problem_of_a_body_is_told_at_once(call):
    body = {
        "domains": ["x", 7, SECRET * 6],
        "insight": {"summary": SECRET * 50, "detail": 7},
        "context": {"languages": SECRET, "pattern": None},
        "extensions": {SECRET: 1},
        "created_by": [SECRET],
    }
    found = told(call("POST", "/knowledge", body, **CARL))
    assert {(kind, *place[1:]) for kind, place, _ in found} == {
        ("string_type", "domains", 1),
        ("value_error", "domains", 2),
        ("value_error", "insight", "summary"),
        ("string_type", "insight", "detail"),
        ("missing", "insight", "action"),
        ("list_type", "context", "languages"),
        ("string_type", "context", "pattern"),
        ("value_error", "extensions"),
        ("string_type", "created_by"),
    }
    assert len(found) == 9


def test_a_rule_over_several_members_is_told_with_the_problems_of_each(call):
    """A second round trip must not bring up what the first could have told."""
    body = {"reason": "duplicate", "detail": 7}
    found = told(call("POST", f"/knowledge/{NOBODYS}/flags", body, **CARL))
    assert {tuple(place) for _, place, _ in found} == {
        ("body", "detail"),
        ("body", "duplicate_of"),
    }
    found = told(call("POST", "/knowledge", {"domains": [" "]}, **CARL))
    assert {tuple(place) for _, place, _ in found} == {("body", "domains"), ("body", "insight")}
    found = told(call("GET", "/knowledge?limit=0&languages=a%00"))
    assert {tuple(place) for _, place, _ in found} == {
        ("query", "domains"),
        ("query", "limit"),
        ("query", "languages", 0),
    }


def test_no_problem_tells_what_was_sent(call):
    """Above all no password: members that are missing, misplaced or of another kind."""
    for method, path, who, body in (
        ("POST", "/auth/login", {}, {"password": SECRET}),
        ("POST", "/auth/login", {}, {"username": SECRET, "password": [SECRET]}),
        ("POST", "/auth/login", {}, {"username": {SECRET: SECRET}, "password": SECRET}),
        ("POST", "/auth/login", {}, [SECRET]),
        ("POST", "/users", ADA, {"password": SECRET}),
        ("POST", "/users", ADA, {"username": "x", "password": SECRET, "role": SECRET}),
        ("POST", "/users", ADA, {"username": "x", "password": SECRET * 7}),
        ("PATCH", "/users/me", RITA, {"password": SECRET}),
        ("PATCH", "/users/me", RITA, {"new_password": SECRET}),
        ("PATCH", "/users/carl", ADA, {"disabled": SECRET}),
        ("POST", f"/review/{NOBODYS}/supersede", RITA, {"replacement": SECRET}),
        ("POST", "/review/bulk", RITA, {"decision": "reject", "ids": [SECRET]}),
        ("POST", f"/knowledge/{NOBODYS}/flags", CARL, {"reason": "stale", "duplicate_of": SECRET}),
    ):
        assert told(call(method, path, body, **who))
    for query in (
        f"/knowledge?domains=x&limit={SECRET}",
        f"/knowledge?domains=x&explain={SECRET}",
        f"/knowledge?domains={SECRET * 6}",
    ):
        assert told(call("GET", query))
    for query in (
        f"limit={SECRET}",
        f"cursor={SECRET}",
        f"status={SECRET}",
        f"confidence_min={SECRET}",
    ):
        assert told(call("GET", f"/review/units?{query}", **RITA))
    headers = {"Idempotency-Key": SECRET * 30}
    found = told(call("POST", "/knowledge", proposal(), headers=headers, **CARL))
    assert [place for _, place, _ in found] == [["header", "Idempotency-Key"]]
    for ttl in (f"{SECRET}d", f"0{SECRET}"):
        answer = call("POST", "/users/me/api-keys", {"name": "x", "ttl": ttl}, **RITA)
        assert answer.status_code == 422
        assert isinstance(answer.json["detail"], str)
        assert SECRET not in answer.text


def test_refusals_of_the_service_are_a_sentence(call):
    unit = call.approve()["id"]
    for method, path, who, body, status, detail in (
        ("GET", "/knowledge/x", {}, None, 404, "Knowledge unit not found"),
        (
            "POST",
            f"/knowledge/{NOBODYS}/confirmations",
            CARL,
            None,
            404,
            "Knowledge unit not found",
        ),
        ("POST", "/knowledge", {}, proposal(), 401, "Invalid API key"),
        ("GET", "/review/queue", {}, None, 401, "Missing or invalid authorization header"),
        ("POST", "/users/me/api-keys/x/revoke", RITA, None, 404, "API key not found"),
        ("GET", "/nowhere", {}, None, 404, "Not Found"),
        ("DELETE", "/knowledge", {}, None, 405, "Method Not Allowed"),
        (
            "POST",
            "/auth/login",
            {},
            {"username": "x", "password": "x"},
            401,
            "Invalid username or password",
        ),
    ):
        answer = call(method, path, body, **who)
        assert answer.status_code == status, path
        assert answer.json == {"detail": detail}
    late = call("POST", f"/review/{unit}/reject", **RITA)
    assert late.status_code == 409
    assert re.match("Knowledge unit already approved", late.json["detail"])


# What is checked first


def test_size_comes_before_credentials(call):
    for method, path in (
        ("POST", "/knowledge"),
        ("PATCH", f"/review/{NOBODYS}"),
        ("POST", f"/knowledge/{NOBODYS}/confirmations"),
    ):
        answer = send(call, method, path, BIG)
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == "application/json"
        assert isinstance(answer.json["detail"], str)


def test_credentials_come_before_the_body(call):
    for body in ("{bad", b"\xff", "", "null", "{}", json.dumps(proposal())):
        for method, path in (
            ("POST", "/knowledge"),
            ("POST", f"/knowledge/{NOBODYS}/flags"),
            ("POST", f"/review/{NOBODYS}/approve"),
            ("POST", "/review/bulk"),
            ("POST", "/users"),
            ("POST", "/users/me/api-keys"),
        ):
            assert send(call, method, path, body).status_code == 401, (path, body)
    assert call("GET", "/review/queue?limit=x").status_code == 401


def test_roles_come_before_the_body(call):
    for body in ("{bad", b"\xff", "null"):
        for path in (f"/review/{NOBODYS}/approve", "/review/bulk", "/users"):
            assert send(call, "POST", path, body, user="carl").status_code == 403, path
    assert call("GET", "/review/queue?limit=x", user="carl").status_code == 403


def test_the_body_comes_before_what_it_is_about(call):
    for method, path, who in (
        ("POST", f"/knowledge/{NOBODYS}/flags", CARL),
        ("POST", f"/review/{NOBODYS}/approve", RITA),
        ("POST", f"/review/{NOBODYS}/supersede", RITA),
        ("PATCH", f"/review/{NOBODYS}", RITA),
        ("PATCH", "/users/nobody", ADA),
    ):
        assert send(call, method, path, b"\xff", **who).status_code == 400, path
        assert send(call, method, path, "{bad", **who).status_code == 422, path
        assert send(call, method, path, "[]", **who).status_code == 422, path
    body = {"reason": "stale"}
    assert call("POST", f"/knowledge/{NOBODYS}/flags", body, **CARL).status_code == 404
    assert call("POST", f"/review/{NOBODYS}/approve", {}, **RITA).status_code == 404


# Query parameters


def test_of_a_repeated_scalar_the_last_one_counts(call):
    ids = [call.approve(f"unit {number}", ["x"])["id"] for number in range(4)]
    for query, count in (
        ("limit=1&limit=3", 3),
        ("limit=3&limit=1", 1),
        ("limit=x&limit=2", 2),
        ("limit=0&limit=2", 2),
    ):
        answer = call("GET", f"/knowledge?domains=x&{query}", **CARL)
        assert len(answer.json["data"]) == count, query
    assert call("GET", "/knowledge?domains=x&limit=2&limit=x", **CARL).status_code == 422
    queue = call("GET", "/review/queue?limit=5&limit=7&offset=9&offset=1", **RITA).json
    assert (queue["limit"], queue["offset"]) == (7, 1)
    found = call("GET", "/knowledge?q=nothing&q=unit&domains=unused", **CARL).json["data"]
    assert {unit["id"] for unit in found} == set(ids)


def test_of_a_repeated_list_every_one_counts_and_commas_are_text(call):
    one, other = (call.approve(f"about {tag}", [tag])["id"] for tag in ("a", "b"))
    both = call.approve("about a,b", ["a,b"])["id"]
    assert set(call.found(domains=["a", "b"])) == {one, other}
    assert call.found(domains="a,b") == [both]
    assert call.found(**{"domains[]": "a", "domains": "b"}) == [other]


def test_whole_numbers_are_read_leniently(call):
    for number in range(3):
        call.approve(f"unit {number}", ["x"])
    for text in ("1", "1.0", "1.", "1.000", "+1", "01", " 1 "):
        assert len(call.found(domains="x", limit=text)) == 1, text
    for text in (
        "",
        " ",
        "x",
        "1.5",
        "1,0",
        "1e0",
        "0x1",
        "1_0",
        "one",
        "true",
        "null",
        "١",
        "1 2",
    ):
        answer = call("GET", "/knowledge", query_string={"domains": "x", "limit": text})
        assert told(answer) == [
            (
                "int_parsing",
                ["query", "limit"],
                "Input should be a valid integer, unable to parse string as an integer",
            )
        ], text


def test_a_limit_below_1_is_refused(call):
    for text in ("0", "-1", "0.0", "-0", "-1.0", str(-(2**70))):
        answer = call("GET", "/knowledge", query_string={"domains": "x", "limit": text})
        expected = ("greater_than", ["query", "limit"], "Input should be greater than 0")
        assert told(answer) == [expected], text


def test_a_limit_above_50_counts_as_50(call):
    ids = [call.propose(f"unit {number}", ["x"])["id"] for number in range(52)]
    call("POST", "/review/bulk", {"decision": "approve", "ids": ids}, **RITA)
    for text in ("50", "51", "100", "1000000", str(2**31), str(2**63), "9" * 40, "9" * 500):
        assert len(call.found(domains="x", limit=text)) == 50, text
    assert len(call.found(domains="x", limit="49")) == 49
    assert len(call.found(domains="x")) == 5


def test_a_query_needs_tags_or_a_question(call):
    missing = [("missing", ["query", "domains"], "Field required")]
    assert told(call("GET", "/knowledge")) == missing
    assert told(call("GET", "/knowledge?languages=go&pattern=x&q=")) == missing
    assert told(call("GET", "/knowledge?domain=x")) == missing
    assert call("GET", "/knowledge?domains=").json == {"data": []}
    assert call("GET", "/knowledge?domains=&domains=%20").json == {"data": []}
    assert call("GET", "/knowledge?q=x").json == {"data": []}


def test_pages_have_bounds_and_zero_is_within(call):
    for path, who in (
        ("/review/queue", RITA),
        ("/review/attention", RITA),
        ("/review/units", RITA),
        ("/users/me/proposals", CARL | {"key": None, "user": "carl"}),
    ):
        for query in ("limit=0", "limit=100", "limit=0.0", "offset=0", f"offset={2**63 - 1}"):
            assert call("GET", f"{path}?{query}", **who).status_code == 200, (path, query)
        for query, kind in (
            ("limit=-1", "greater_than_equal"),
            ("limit=101", "less_than_equal"),
            ("offset=-1", "greater_than_equal"),
            (f"offset={2**63}", "less_than_equal"),
            ("limit=", "int_parsing"),
            ("offset=x", "int_parsing"),
        ):
            ((told_kind, place, _),) = told(call("GET", f"{path}?{query}", **who))
            assert (told_kind, place) == (kind, ["query", query.partition("=")[0]]), (path, query)


def test_a_number_of_a_query_that_is_none_is_told_so(call):
    message = "Input should be a valid number, unable to parse string as a number"
    for name in ("confidence_min", "confidence_max"):
        for text in ("x", "", "nan", "inf", "0,5"):
            answer = call("GET", "/review/units", query_string={name: text}, **RITA)
            assert told(answer) == [("float_parsing", ["query", name], message)], text


# Every answer is JSON


UNKNOWN = [
    "/nowhere",
    "/index.html",
    "/assets/x.js",
    "/.well-known/other",
    "/api",
    "/api/",
    "/api/v1",
    "/api/v1/",
    "/api/v1/nowhere",
    "/api/v1/knowledge/",
    "/api/v1//knowledge",
    "/api/v1/knowledge/a/b",
    "/api/v1/knowledge/a%2Fb",
    "/api/v1/knowledge/stats/",
    "/api/v1/review",
    "/api/v1/users/me/",
    "/api/v1/oauth/providers",
    "/api/v2/knowledge",
    "/API/V1/knowledge",
    "/%00",
    "/..%2f..%2fetc/passwd",
]


def test_a_path_that_is_none_is_not_found_in_json(call):
    client = call.app.test_client(use_cookies=False)
    for path in UNKNOWN:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for accept in ("*/*", "text/html", "application/xml"):
                answer = client.open(path, method=method, headers={"Accept": accept})
                assert answer.status_code == 404, (method, path)
                assert answer.headers["Content-Type"] == "application/json"
                assert answer.data == b'{"detail":"Not Found"}'


def test_a_node_that_names_no_address_has_no_discovery_document(call):
    """Clients then take the address that they have; anything but this 404 would stop them."""
    client = call.app.test_client(use_cookies=False)
    for headers in ({}, {"Authorization": f"Bearer {call.keys['carl']}"}, {"Accept": "text/html"}):
        answer = client.get("/.well-known/cq-node.json", headers=headers)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.data == b'{"detail":"Not Found"}'


def test_a_method_that_is_none_is_refused_in_json_and_told_the_right_ones(call):
    client = call.app.test_client(use_cookies=False)
    methods = {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"}
    for path in sorted({rule.rule for rule in call.app.url_map.iter_rules()}):
        for name, value in (("<unit_id>", NOBODYS), ("<username>", "x"), ("<key_id>", "x")):
            path = path.replace(name, value)
        answers = {method: client.open(path, method=method, buffered=True) for method in methods}
        refused = {method for method, answer in answers.items() if answer.status_code == 405}
        assert refused, path
        for method in refused:
            answer = answers[method]
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.data == b'{"detail":"Method Not Allowed"}'
            allowed = set(answer.headers["Allow"].split(", ")) - {"HEAD", "OPTIONS"}
            assert allowed == methods - refused, (method, path)


def test_json_is_compact_utf_8_as_it_was_sent(make_call):
    call = make_call(CQ_SAFETY="warn")
    words = 'Zoë said "汉字" & <b> / \\ \N{GRINNING FACE}\n\t\u2028\u007f'
    unit = call.approve(words, ["école/汉"], extensions={"a:é": "ü", "a:b": {"z": 1, "a": [1, 2]}})
    written = {
        "summary": f'"summary":{json.dumps(words, ensure_ascii=False)}'.encode(),
        "domains": '"domains":["école/汉"]'.encode(),
    }
    for answer in (
        call("GET", f"/knowledge/{unit['id']}", **CARL),
        call("GET", "/knowledge", query_string={"domains": "école/汉"}, **CARL),
        call("GET", f"/review/{unit['id']}", **RITA),
        call("GET", "/review/units", **RITA),
        call("POST", f"/knowledge/{unit['id']}/confirmations", **CARL),
        call("GET", "/review/stats", **RITA),
    ):
        assert answer.headers["Content-Type"] == "application/json"
        assert int(answer.headers["Content-Length"]) == len(answer.data)
        assert written["summary"] in answer.data
        assert answer.data == compact(answer.json)
        if b'"domains":[' in answer.data:
            assert written["domains"] in answer.data
    for answer in (
        call("GET", "/knowledge/stats", **CARL),
        call("GET", "/knowledge"),
        call("GET", "/nowhere"),
        call("GET", "/health"),
        call("GET", "/knowledge?domains=x&explain=1", **CARL),
        call("GET", "/review/queue", **RITA),
    ):
        assert answer.data == compact(answer.json)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_extensions_keep_their_order_and_their_nulls(call):
    extensions = {"z:z": None, "a:a": {"z": None, "a": [None, {}]}, "m:m": []}
    unit = call.approve(extensions=extensions)
    for answer in (
        call("GET", f"/knowledge/{unit['id']}", **CARL).json,
        call("GET", "/knowledge?domains=state", **CARL).json["data"][0],
        call("GET", f"/review/{unit['id']}", **RITA).json["knowledge_unit"],
    ):
        assert json.dumps(answer["extensions"]) == json.dumps(extensions)


# Units


KEYS = {
    (): UNIT,
    ("insight",): ["summary", "detail", "action"],
    ("context",): ["languages", "frameworks", "pattern"],
    ("evidence",): ["confidence", "confirmations", "first_observed", "last_confirmed"],
    ("flags", 0): ["reason", "timestamp", "detail", "duplicate_of"],
}
AGENTS, REVIEWERS = False, True


def showings(call):
    """{(method, rule): (shows created_by, its units)} for every route that answers units."""
    rejected = call.propose("rejected")["id"]
    call("POST", f"/review/{rejected}/reject", {"reason": "no"}, **RITA)
    proposed = call.propose("pending", context={})
    unit = call.approve("approved", ["shown"])
    id = unit["id"]
    flag = {"reason": "stale", "detail": SECRET}

    def json_of(method, path, body=None, **who):
        answer = call(method, path, body, **who)
        assert answer.status_code in (200, 201), (path, answer.text)
        return answer.json

    def units(items):
        return [item["knowledge_unit"] for item in items]

    shown = {
        ("POST", "/knowledge"): (REVIEWERS, [proposed, unit]),
        ("POST", "/knowledge/<unit_id>/confirmations"): (
            AGENTS,
            [json_of("POST", f"/knowledge/{id}/confirmations", key="cleo")],
        ),
        ("POST", "/knowledge/<unit_id>/flags"): (
            AGENTS,
            [json_of("POST", f"/knowledge/{id}/flags", flag, key="cleo")],
        ),
        ("GET", "/knowledge"): (
            AGENTS,
            json_of("GET", "/knowledge?domains=shown", **CARL)["data"],
        ),
        ("GET", "/knowledge/<unit_id>"): (AGENTS, [json_of("GET", f"/knowledge/{id}", **CARL)]),
        ("GET", "/review/queue"): (
            REVIEWERS,
            units(json_of("GET", "/review/queue", **RITA)["items"]),
        ),
        ("GET", "/review/attention"): (
            REVIEWERS,
            units(json_of("GET", "/review/attention", **RITA)["items"]),
        ),
        ("GET", "/review/units"): (REVIEWERS, units(json_of("GET", "/review/units", **RITA))),
        ("GET", "/review/<unit_id>"): (REVIEWERS, units([json_of("GET", f"/review/{id}", **RITA)])),
        ("PATCH", "/review/<unit_id>"): (
            REVIEWERS,
            units([json_of("PATCH", f"/review/{id}", {"insight": {"action": "x"}}, **RITA)]),
        ),
        ("GET", "/users/me/proposals"): (
            REVIEWERS,
            units(json_of("GET", "/users/me/proposals", user="carl")["items"]),
        ),
    }
    assert all(found for _, found in shown.values())
    return shown


def test_a_unit_has_every_member_in_the_canonical_order_wherever_it_is_shown(call):
    for (method, rule), (author, units) in showings(call).items():
        for unit in units:
            for place, keys in KEYS.items():
                part = unit
                for step in place:
                    part = part and part[step]
                if part:
                    expected = [key for key in keys if author or key != "created_by"]
                    assert list(part) == expected, (method, rule, place)
            assert unit["superseded_by"] is None
            assert unit["extensions"] is None
            assert isinstance(unit["flags"], list)
            assert isinstance(unit["context"]["languages"], list)
            assert isinstance(unit["context"]["pattern"], str)
            assert isinstance(unit["version"], int)
            assert isinstance(unit["evidence"]["confirmations"], int)
            assert isinstance(unit["evidence"]["confidence"], float)


def test_the_author_is_shown_to_reviewers_and_never_to_agents(call):
    for (method, rule), (author, units) in showings(call).items():
        for unit in units:
            assert unit.get("created_by") == ("carl" if author else None), (method, rule)
            assert author or "created_by" not in unit


def test_the_words_of_a_flag_are_shown_to_reviewers_alone(call):
    for (method, rule), (_, units) in showings(call).items():
        told_to = rule.startswith("/review")
        for unit in units:
            for flag in unit["flags"]:
                assert flag["detail"] == (SECRET if told_to else None), (method, rule)
                assert flag["duplicate_of"] is None


def test_the_routes_that_show_units_are_all_looked_at(call):
    """A route that is added to show units must be added above."""
    document = call.app.test_client().get("/api/openapi.json").json
    shown = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if isinstance(operation, dict) and "responses" in operation:
                text = json.dumps([operation["responses"].get(code) for code in ("200", "201")])
                if re.search(r"schemas/(KnowledgeUnit|Found|Item|Page)\b", text):
                    rule = path.removeprefix("/api/v1").replace("{", "<").replace("}", ">")
                    shown.add((method.upper(), rule))
    assert shown == set(showings(call))


def test_superseded_units_lead_reviewers_on(call):
    old, new = (call.approve(f"the {name}", ["x"])["id"] for name in ("old", "new"))
    body = {"replacement": new}
    assert call("POST", f"/review/{old}/supersede", body, **RITA).status_code == 200
    item = call("GET", f"/review/{old}", **RITA).json
    assert item["status"] == "superseded"
    assert item["knowledge_unit"]["superseded_by"] == new
    assert call("GET", f"/review/{new}", **RITA).json["knowledge_unit"]["superseded_by"] is None


# Times and numbers


INSIDE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
OUTSIDE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00")
TIMES = {
    "first_observed": INSIDE,
    "last_confirmed": INSIDE,
    "timestamp": None,
    "created_at": OUTSIDE,
    "reviewed_at": OUTSIDE,
    "expires_at": OUTSIDE,
    "last_used_at": OUTSIDE,
    "revoked_at": OUTSIDE,
    "answered_at": OUTSIDE,
    "at": OUTSIDE,
}


def times(value, flag=False):
    """(dialect, text) of all times in an answer; those of flags are inside a unit."""
    if isinstance(value, list):
        for item in value:
            yield from times(item, flag)
    elif isinstance(value, dict):
        for key, below in value.items():
            if key in TIMES:
                yield TIMES[key] or (INSIDE if flag or "duplicate_of" in value else OUTSIDE), below
            else:
                yield from times(below, flag)


def test_times_in_a_unit_end_with_z_and_all_others_with_an_offset(call):
    unit = call.approve("approved", ["x"])["id"]
    call.propose("pending", ["x"])
    call("POST", f"/knowledge/{unit}/flags", {"reason": "stale"}, **CARL)
    call("POST", f"/review/{unit}/keep", **RITA)
    key = call("POST", "/users/me/api-keys", {"name": "x", "ttl": "1d"}, **RITA).json
    call("POST", f"/users/me/api-keys/{key['id']}/revoke", **RITA)
    seen = {INSIDE: 0, OUTSIDE: 0}
    for path, who in (
        ("/knowledge?domains=x", CARL),
        (f"/knowledge/{unit}", CARL),
        ("/review/queue", RITA),
        ("/review/units", RITA),
        (f"/review/{unit}", RITA),
        (f"/review/{unit}/history", RITA),
        ("/review/stats", RITA),
        ("/users/me", RITA),
        ("/users", ADA),
        ("/users/me/api-keys", RITA),
        ("/users/carl/api-keys", ADA),
        ("/users/me/proposals", {"user": "carl"}),
    ):
        found = list(times(call("GET", path, **who).json))
        assert found, path
        for dialect, text in found:
            if text is not None:
                assert dialect.fullmatch(text), (path, text)
                assert datetime.fromisoformat(text).utcoffset().total_seconds() == 0
                seen[dialect] += 1
    assert min(seen.values()) > 8
    made = call("POST", "/users/me/api-keys", {"name": "y", "ttl": "1d"}, **RITA).json
    decided = call("POST", f"/review/{unit}/retire", **RITA).json
    for text in (made["created_at"], made["expires_at"], decided["reviewed_at"]):
        assert OUTSIDE.fullmatch(text)


def test_confidence_is_told_to_the_digit_after_any_votes(make_call):
    call = make_call(CQ_VOTE_WINDOW="0")
    unit = call.approve(domains=["x"])["id"]
    confidence = rules.START
    for step in "cccccccfcffffffffcf":
        if step == "c":
            answer = call("POST", f"/knowledge/{unit}/confirmations", **CARL)
            confidence = rules.shift(confidence, rules.CONFIRM)
        else:
            answer = call("POST", f"/knowledge/{unit}/flags", {"reason": "stale"}, **CARL)
            confidence = rules.shift(confidence, rules.FLAG)
        written = f'"confidence":{confidence},'.encode()
        assert written in answer.data
        assert written in call("GET", "/knowledge?domains=x", **CARL).data
        assert written in call("GET", f"/review/{unit}", **RITA).data


# Names that clients of both lines read


def test_keys_are_told_in_both_spellings(call):
    made = call("POST", "/users/me/api-keys", {"name": " ci ", "ttl": " 30D "}, **RITA).json
    assert made["token"] == made["api_key"]
    assert made["prefix"] == made["key_prefix"] == made["token"].split(".")[3][:8]
    assert (made["name"], made["ttl"], made["labels"]) == ("ci", "30d", [])
    listed = call("GET", "/users/me/api-keys", **RITA)
    assert list(listed.json) == ["data"]
    assert {key["prefix"] == key["key_prefix"] for key in listed.json["data"]} == {True}
    assert made["token"].split(".")[3] not in listed.text


def test_a_login_answers_a_token_that_opens_the_human_plane(call):
    answer = call("POST", "/auth/login", {"username": "rita", "password": PASSWORD})
    assert answer.status_code == 200
    assert answer.json["username"] == "rita"
    headers = {"Authorization": f"Bearer {answer.json['token']}"}
    assert call("GET", "/users/me", headers=headers).json["username"] == "rita"
    assert call("POST", "/knowledge", proposal(), headers=headers).status_code == 401
    assert call("GET", "/review/queue", key="rita").status_code == 401


def test_the_wire_is_the_same_over_the_network(serve, call):
    """Status, headers and bytes as they leave a real server."""
    address = urlsplit(serve().url)

    def ask(method, path, body=None, headers=()):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), text

    kind = "application/json"
    json_body = {"Content-Type": kind}
    key = {"Authorization": f"Bearer {call.keys['carl']}", **json_body}
    assert ask("GET", "/nowhere") == (404, kind, b'{"detail":"Not Found"}')
    assert ask("PUT", "/api/v1/knowledge") == (405, kind, b'{"detail":"Method Not Allowed"}')
    assert ask("GET", "/api/v1/health") == (200, kind, b'{"status":"ok"}')
    assert ask("POST", "/api/v1/knowledge", "{bad", json_body)[0] == 401
    assert ask("POST", "/api/v1/knowledge", BIG, json_body)[:2] == (413, kind)
    status, _, text = ask("POST", "/api/v1/knowledge", "{bad", key)
    assert (status, json.loads(text)["detail"][0]["type"]) == (422, "json_invalid")
    status, _, text = ask("POST", "/api/v1/knowledge", json.dumps(proposal("Zoë")), key)
    assert status == 201
    assert '"summary":"Zoë"'.encode() in text
    assert text == compact(json.loads(text))
