"""What holds for every route: who may call it, one error body, nothing echoed, bounded statements."""

import json
import threading

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.cast import proposal

UNIT = "ku_" + "0" * 32
MARK = "ECHO-MARK-7f3a"
OUTSIDE = {"/health", "/ready", "/.well-known/cq-node.json", "/"}


def routes(app):
    """(method, path with its parts filled in, view) of every route of the API."""
    filled = {"unit_id": UNIT, "key_id": "0" * 32, "username": "nobody"}
    for rule in app.url_map.iter_rules():
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            if rule.rule.startswith("/api/v1"):
                path = rule.rule.removeprefix("/api/v1")
                for part in rule.arguments:
                    if f"<{part}>" in path:
                        path = path.replace(f"<{part}>", filled[part])
                yield method, path, app.view_functions[rule.endpoint]


def test_every_route_says_what_it_asks_of_its_caller(app):
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        if rule.rule.startswith("/api/openapi"):
            continue
        assert view.asks[0] in {"anybody", "reader", "key", "session"}, rule.rule
        if rule.rule.startswith("/api/v1"):
            assert rule.rule.startswith("/api/v1/"), rule.rule


def test_the_routes_that_ask_nothing_are_these(app):
    free = {path for _, path, view in routes(app) if view.asks[0] == "anybody"}
    assert free == {"/health", "/auth/login", "/auth/logout"}
    open_reads = {path for _, path, view in routes(app) if view.asks[0] == "reader"}
    assert open_reads == {"/knowledge", f"/knowledge/{UNIT}", "/knowledge/stats"}


def test_each_route_lets_in_whom_it_should_and_nobody_else(call):
    """Stranger, contributor, reviewer, admin and an agent's key at every route."""
    ranks = {"carl": "contributor", "rita": "reviewer", "ada": "admin"}
    order = ["contributor", "reviewer", "admin"]
    for method, path, view in routes(call.app):
        who, role = view.asks
        body = {} if method in ("POST", "PATCH") else None

        def status(as_user=None, as_key=None, method=method, path=path, body=body):
            return call(method, path, body, user=as_user, key=as_key).status_code

        if who == "key":
            assert status() == 401, path
            assert status(as_user="ada") == 401, path
            assert status(as_key="carl") in (404, 422), path
        elif who == "session":
            assert status() == 401, path
            assert status(as_key="ada") == 401, path
            for name, rank in ranks.items():
                allowed = order.index(rank) >= order.index(role)
                assert (status(as_user=name) not in (401, 403)) == allowed, (path, name)
        else:
            assert status() not in (401, 403), path


def test_every_error_has_one_shape_and_echoes_nothing(call):
    """Malformed, mistyped and unknown input on every route with the rights to get that far."""
    bodies = [
        None,
        {MARK: MARK},
        [MARK],
        dict.fromkeys(("domains", "insight", "ids", "limit", "reason", "role", "ttl"), MARK),
        {"username": 1, "password": MARK, "name": MARK * 9, "ttl": MARK, "decision": MARK},
    ]
    for method, path, view in routes(call.app):
        who = {"key": {"key": "carl"}, "session": {"user": "ada"}}.get(view.asks[0], {})
        for body in bodies if method != "GET" else [None]:
            answer = call(method, path, body, query_string={"limit": MARK, "cursor": MARK}, **who)
            check_error(answer, path)
        raw = call(
            method, path, data=b'{"x": "' + MARK.encode(), content_type="application/json", **who
        )
        check_error(raw, path)


def check_error(answer, path):
    assert MARK not in answer.text, path
    assert answer.content_type == "application/json", path
    assert answer.status_code < 500, (path, answer.text)
    if answer.status_code < 400:
        return
    assert list(answer.json) == ["detail"], path
    detail = answer.json["detail"]
    if isinstance(detail, list):
        assert answer.status_code == 422
        assert all(set(problem) == {"type", "loc", "msg"} for problem in detail), path
        assert all(problem["loc"][0] in ("body", "query", "header") for problem in detail), path
    else:
        assert isinstance(detail, str)
        assert detail


@pytest.mark.parametrize("path", ["/nope", "/knowledge/", "/review/queue/", "//knowledge"])
def test_an_unknown_path_is_json(call, path):
    answer = call("GET", path)
    assert answer.status_code == 404
    assert answer.json == {"detail": "Not Found"}


def test_a_wrong_method_is_json_and_names_the_right_ones(call):
    answer = call("DELETE", "/knowledge")
    assert answer.status_code == 405
    assert answer.json == {"detail": "Method Not Allowed"}
    assert "POST" in answer.headers["Allow"]


def test_every_answer_carries_the_headers_that_protect_a_browser(app):
    for path in ("/api/v1/health", "/nope", "/api/docs", "/api/v1/users/me"):
        headers = app.test_client().get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert len(headers["X-Request-ID"]) == 32


class Counted:
    """How many statements the database got."""

    def __enter__(self):
        self.statements, self.thread = [], threading.current_thread()
        event.listen(Engine, "before_cursor_execute", self.note)
        return self

    def __exit__(self, *_):
        event.remove(Engine, "before_cursor_execute", self.note)

    def note(self, connection, cursor, statement, *_):
        # What another thread writes in the background is no part of the request.
        if not statement.startswith("BEGIN") and threading.current_thread() is self.thread:
            self.statements.append(statement)


def fill(call, count, tag):
    """So many approved and as many pending units, each with a flag."""
    for number in range(count):
        unit = call.approve(f"{tag} {number}", [tag, "counted"])
        call("POST", f"/knowledge/{unit['id']}/flags", {"reason": "stale"}, key="cleo")
        call.propose(f"{tag} pending {number}", [tag, "counted"])


@pytest.mark.parametrize(
    ("who", "path", "most"),
    [
        ({"key": "carl"}, "/knowledge?domains=counted&limit=50", 3),
        ({"key": "carl"}, "/knowledge?q=counted&limit=50", 4),
        ({"key": "carl"}, "/knowledge/stats", 2),
        ({"user": "rita"}, "/review/queue?limit=100", 3),
        ({"user": "rita"}, "/review/attention?limit=100", 3),
        ({"user": "rita"}, "/review/units?domain=counted", 2),
        ({"user": "carl"}, "/users/me/proposals?limit=100", 3),
        ({"user": "rita"}, "/review/stats", 8),
        ({"user": "ada"}, "/users", 2),
        ({"user": "carl"}, "/users/me/api-keys", 2),
    ],
)
def test_the_number_of_statements_does_not_grow_with_the_units(call, who, path, most):
    counts = []
    for size in (2, 12):
        fill(call, size, f"size{size}")
        call("GET", "/knowledge?domains=none", key="carl")
        with Counted() as counted:
            answer = call("GET", path, **who)
        assert answer.status_code == 200
        counts.append(len(counted.statements))
    assert counts[0] == counts[1]
    assert counts[1] <= most, counted.statements


def test_a_query_that_was_asked_before_needs_no_statement_for_units(call):
    fill(call, 3, "warm")
    call("GET", "/knowledge?domains=warm", key="carl")
    with Counted() as counted:
        call("GET", "/knowledge?domains=warm", key="carl")
    assert not [text for text in counted.statements if "FROM units" in text]


def test_the_document_describes_every_route(call):
    document = json.loads(call.app.test_client().get("/api/openapi.json").text)
    described = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, operations in document["paths"].items()
        for method in operations
        if method in ("get", "post", "patch")
    }
    spelled = set()
    for rule in call.app.url_map.iter_rules():
        if rule.rule.startswith("/api/v1"):
            path = rule.rule.removeprefix("/api/v1").replace("<", "{").replace(">", "}")
            spelled |= {(method, path) for method in rule.methods - {"HEAD", "OPTIONS"}}
    assert described == spelled
    for operations in document["paths"].values():
        for operation in operations.values():
            if isinstance(operation, dict):
                assert "default" not in operation["responses"]
                assert operation["summary"]


def test_the_page_of_the_document_loads_nothing_from_elsewhere(app):
    page = app.test_client().get("/api/docs")
    assert page.status_code == 200
    assert "http" not in page.text
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
        assert f"docs/{name}" in page.text
        with app.test_client().get(f"/api/docs/{name}") as asset:
            assert asset.status_code == 200
    assert app.test_client().get("/api/docs/../app.py").status_code == 404


def test_a_proposal_body_that_fits_is_taken(call):
    assert call("POST", "/knowledge", proposal(), key="carl").status_code == 201
