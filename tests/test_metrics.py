"""/metrics: what is counted, under which names, and who may read it; the lines of the log beside it."""

import io
import json
import logging
import re
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

import logs
from models import Unit, db
from tests.cast import PASSWORD, alter, eventually, proposal
from tests.encoders import TOLD, Held, at_units, hangs
from tests.test_auth import login, quick
from tests.test_routes import Counted
from tests.test_serve import Server, send

TOKEN = "metrics-of-the-tests-0123456789"
HERE = {"environ_overrides": {"REMOTE_ADDR": "127.0.0.1"}}


def scrape(app):
    """{(name, labels as a frozenset of pairs): value} of what /metrics tells."""
    answer = app.test_client().get("/metrics", **HERE)
    assert answer.status_code == 200, answer.text
    return samples(answer.text)


def samples(text):
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(told, name, **labels):
    return told.get((name, frozenset(labels.items())))


# What is counted


def test_what_agents_and_reviewers_do_is_counted_once_it_is_written(call):
    before = scrape(call.app)
    unit, other, third = (call.propose(f"unit {number}")["id"] for number in range(3))
    call("POST", "/knowledge", proposal("unit 0"), key="carl")
    call("POST", "/knowledge", {"domains": []}, key="carl")
    call("POST", f"/review/{unit}/approve", user="rita")
    call("POST", f"/review/{unit}/approve", user="ada")
    call("POST", "/review/bulk", {"decision": "reject", "ids": [other, third, unit]}, user="rita")
    for _ in range(2):
        call("POST", f"/knowledge/{unit}/confirmations", key="cleo")
    call("POST", f"/knowledge/{unit}/flags", {"reason": "stale"}, key="cleo")
    told = scrape(call.app)

    def risen(name, **labels):
        return value(told, name, **labels) - value(before, name, **labels)

    assert risen("cq_proposals_total") == 3
    assert risen("cq_decisions_total", decision="approved") == 1
    assert risen("cq_decisions_total", decision="rejected") == 2
    assert risen("cq_votes_total", kind="confirm") == 1
    assert risen("cq_votes_total", kind="stale") == 1
    assert risen("cq_votes_total", kind="duplicate") == 0


def test_what_was_rolled_back_is_not_counted(call, actor):
    with call.app.app_context():
        Unit.propose(
            actor("carl"), **{name: proposal()[name] for name in ("domains", "insight", "context")}
        )
        db.session.rollback()
        db.session.commit()
    assert value(scrape(call.app), "cq_proposals_total") == 0


def test_queries_are_counted_by_what_answered_them(call):
    for query in ({"domains": "a"}, {"q": "what is it"}, {"limit": 0}):
        call("GET", "/knowledge", key="carl", query_string=query)
    told = scrape(call.app)
    assert value(told, "cq_queries_total", mode="domain") == 2
    assert value(told, "cq_queries_total", mode="semantic") == 0


def test_fallbacks_are_counted_by_cause_and_queries_by_meaning_as_such(make_call):
    encoder = Held(loading=hangs)
    call = make_call(encoder=encoder.load)
    call.approve()
    call("GET", "/knowledge?q=lock", key="carl")
    told = scrape(call.app)
    causes = {labels: each for (name, labels), each in told.items() if name == "cq_fallbacks_total"}
    assert causes == {frozenset({("cause", "loading")}): 1}
    assert value(told, "cq_semantic") == 0
    encoder.recover()
    call.understands(1)
    call("GET", "/knowledge?q=lock", key="carl")
    told = scrape(call.app)
    assert value(told, "cq_queries_total", mode="semantic") == 1
    assert value(told, "cq_semantic") == 1
    assert value(told, "cq_units_without_vector") == 0


def test_failed_logins_are_counted_by_reason(call, app):
    quick(app, "rita", PASSWORD)
    for _ in range(10):
        login(call, "rita", "wrong")
    login(call, "rita", PASSWORD)
    login(call, "cleo", "wrong", address="192.0.2.9")
    told = scrape(app)
    assert value(told, "cq_login_failures_total", reason="wrong") == 11
    assert value(told, "cq_login_failures_total", reason="throttled") == 1
    assert value(told, "cq_login_failures_total", reason="busy") == 0


def test_refusals_are_counted_by_class_and_status(call):
    call("GET", "/users/me")
    call("GET", "/users", user="rita")
    call("GET", "/nope")
    call("POST", "/knowledge", {}, key="carl")
    told = scrape(call.app)
    for status in ("401", "403", "404", "422"):
        assert value(told, "cq_refusals_total", **{"class": "4xx", "status": status}) == 1
    total = sum(
        each
        for (name, labels), each in told.items()
        if name == "cq_requests_total" and ("class", "4xx") in labels
    )
    assert total == 4


def test_an_unexpected_failure_is_counted_as_a_refusal_of_the_server(call):
    alter(call.app, "ALTER TABLE events RENAME TO lost")
    call("GET", "/review/stats", user="rita")
    told = scrape(call.app)
    assert value(told, "cq_refusals_total", **{"class": "5xx", "status": "500"}) == 1


# What stands waiting


def test_the_queue_is_told_with_its_length_and_the_age_of_its_oldest(call):
    told = scrape(call.app)
    assert value(told, "cq_queue_units") == 0
    assert value(told, "cq_queue_age_seconds") == 0
    old = call.propose("one")["id"]
    call.propose("two")
    call.approve("three")
    alter(
        call.app,
        "UPDATE units SET created_at = '2020-01-01T00:00:00.000000Z' WHERE id = :id",
        id=old,
    )
    told = scrape(call.app)
    assert value(told, "cq_queue_units") == 2
    assert value(told, "cq_queue_age_seconds") > 5 * 365 * 86400


def test_units_without_a_vector_are_told_while_the_model_is_at_hand(make_call):
    encoder = Held(fault=at_units(hangs))
    call = make_call(encoder=encoder.load)
    assert value(scrape(call.app), "cq_units_without_vector") is None
    told = {"summary": "Lock", "detail": TOLD, "action": "Wait."}
    call.approve("one", insight=told)
    call.propose("two", insight={**told, "summary": "Pending"})
    call("GET", "/knowledge?q=lock", key="carl")
    assert eventually(lambda: value(scrape(call.app), "cq_units_without_vector") == 2)
    encoder.recover()
    # A step that failed is done again half a minute later.
    assert eventually(lambda: value(scrape(call.app), "cq_units_without_vector") == 0, seconds=90)


def test_the_process_tells_its_memory_and_its_age(app):
    told = scrape(app)
    assert value(told, "process_resident_memory_bytes") > 10_000_000
    assert value(told, "process_start_time_seconds") > 1_700_000_000
    assert value(told, "cq_uptime_seconds") >= 0


def test_requests_in_flight_are_those_being_answered(app):
    begun, go = threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert go.wait(20)
        return "done"

    slow.asks = ("anybody", None)
    app.add_url_rule("/slow", view_func=slow)
    assert value(scrape(app), "cq_requests_in_flight") == 1
    thread = threading.Thread(target=lambda: app.test_client().get("/slow"))
    thread.start()
    assert begun.wait(20)
    assert value(scrape(app), "cq_requests_in_flight") == 2
    go.set()
    thread.join()
    assert value(scrape(app), "cq_requests_in_flight") == 1


def test_a_database_that_is_away_is_told_and_the_counts_beside_it(call):
    call("GET", "/nope")
    alter(call.app, "ALTER TABLE units RENAME TO lost")
    told = scrape(call.app)
    assert value(told, "cq_database_up") == 0
    assert value(told, "cq_queue_units") is None
    assert value(told, "cq_refusals_total", **{"class": "4xx", "status": "404"}) == 1


def test_a_scrape_takes_a_few_statements_whatever_is_stored(call):
    counts = []
    for size in (2, 10):
        for number in range(size):
            call.approve(f"{size} {number}")
            call.propose(f"{size} pending {number}")
        call("GET", "/knowledge?domains=none", key="carl")
        with Counted() as counted:
            scrape(call.app)
        counts.append(len(counted.statements))
    assert counts[0] == counts[1]
    assert counts[1] <= 6, counted.statements


# Names


def test_no_label_is_what_a_client_chose(call):
    """Thousands of paths, methods and names make no series of their own."""
    first = call("GET", "/nope-0"), call("BREW", "/x0"), call("GET", "/knowledge/ku_0", key="carl")
    assert [answer.status_code for answer in first] == [404, 404, 404]
    call("BREW", "/knowledge")
    known = set(scrape(call.app))
    for number in range(1, 50):
        call("GET", f"/nope-{number}")
        call(f"BREW{number}", "/knowledge")
        call("GET", f"/knowledge/ku_{number}", key="carl")
        call("GET", f"/knowledge/{number:032x}", key="carl", query_string={"x": number})
        call("POST", "/auth/login", {"username": f"n{number}"})
    fresh = set(scrape(call.app)) - known
    routes = {dict(labels).get("route") for _, labels in fresh}
    assert routes <= {None, "/metrics", "/api/v1/auth/login"}
    assert len({dict(labels).get("method") for _, labels in fresh}) <= 3


def test_latency_is_told_by_route_and_every_route_has_one_series_a_method(call):
    for number in range(3):
        call("GET", f"/knowledge/ku_{number:032x}", key="carl")
    told = scrape(call.app)
    where = {"method": "GET", "route": "/api/v1/knowledge/<unit_id>"}
    assert value(told, "cq_request_seconds_count", **where) == 3
    assert value(told, "cq_request_seconds_bucket", **where, le="+Inf") == 3
    assert value(told, "cq_request_seconds_sum", **where) > 0


def test_two_apps_of_one_process_count_apart(make_call):
    one, two = make_call(), make_call()
    one("GET", "/nope")
    where = {"class": "4xx", "status": "404"}
    assert value(scrape(one.app), "cq_refusals_total", **where) == 1
    assert value(scrape(two.app), "cq_refusals_total", **where) is None


# Who may read it


def test_callers_on_the_machine_read_it_and_nobody_else(app):
    for address in ("127.0.0.1", "127.8.8.8", "::1"):
        assert ask(app, address).status_code == 200, address
    for address in ("192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", "", "unix"):
        answer = ask(app, address)
        assert answer.status_code == 403, address
        assert "CQ_METRICS_TOKEN" in answer.json["detail"]


def ask(app, address, **headers):
    return app.test_client().get(
        "/metrics", headers=headers, environ_overrides={"REMOTE_ADDR": address}
    )


def test_who_came_through_a_proxy_on_the_machine_is_not_on_the_machine(make_app):
    """Whether the proxy was told of or not, and whatever address it names."""
    for count in ("0", "1"):
        app = make_app(CQ_TRUSTED_PROXIES=count)
        for name in ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-IP"):
            answer = ask(app, "127.0.0.1", **{name: "127.0.0.1"})
            assert answer.status_code == 403, (count, name)


def test_the_token_opens_it_from_anywhere_and_no_other_text_does(make_app):
    app = make_app(CQ_METRICS_TOKEN=TOKEN)
    for address in ("127.0.0.1", "192.0.2.1"):
        assert ask(app, address, Authorization=f"Bearer {TOKEN}").status_code == 200
        for wrong in (
            "",
            "Bearer ",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            TOKEN,
            "Bearer \xe9",
        ):
            assert ask(app, address, Authorization=wrong).status_code == 403, wrong
    assert ask(app, "127.0.0.1").status_code == 200


def test_without_a_token_no_header_opens_it(make_app, template):
    app = make_app()
    for header in ("Bearer ", "Bearer None", f"Bearer {template[1]['ada']}"):
        assert ask(app, "192.0.2.1", Authorization=header).status_code == 403, header


@pytest.mark.slow
def test_a_real_server_tells_its_metrics_as_prometheus_reads_them(serve):
    url = serve().url
    send(url, "GET", "/health")
    answer = send(url, "GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    where = {"method": "GET", "route": "/health", "class": "2xx"}
    assert value(samples(answer.body), "cq_requests_total", **where) == 1


# Lines of the log


@pytest.fixture
def logged():
    """What is logged meanwhile: `logged("text")` gives it in a form of CQ_LOG."""
    streams = {form: io.StringIO() for form in logs.FORMS}
    handlers = []
    logger, level = logging.getLogger("cq"), logging.getLogger("cq").level
    for form, stream in streams.items():
        handlers.append(logging.StreamHandler(stream))
        handlers[-1].setFormatter(logs.FORMS[form]())
        logger.addHandler(handlers[-1])
    logger.setLevel(logging.DEBUG)
    yield lambda form: streams[form].getvalue()
    for handler in handlers:
        logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_line_tells_the_request_by_its_template(call, logged):
    call("GET", "/knowledge/ku_0", key="carl", headers={"X-Request-Id": "mine_1-A"})
    (line,) = [json.loads(each) for each in logged("json").splitlines()]
    assert {"time", "level", "logger", "message", "request_id", "duration_ms"} <= line.keys()
    assert line["request_id"] == "mine_1-A"
    assert (line["method"], line["status"]) == ("GET", 404)
    assert line["route"] == "/api/v1/knowledge/<unit_id>"


def test_text_tells_the_same_in_one_line_that_nothing_can_break(call, logged):
    key = call.keys["carl"]
    call("GET", f"/a%0Ab%1B[2J%E2%80%A8{key}", headers={"X-Request-Id": "mine"})
    (line,) = logged("text").splitlines()
    assert re.search(r"INFO cq\.access GET /api/v1/a\\x0ab\\x1b\[2J\\x2028\[hidden\] 401 ", line)
    assert " request_id=mine " in line
    assert key.rpartition(".")[2] not in line


def test_a_secret_is_hidden_however_often_it_is_encoded(call, logged):
    key, token = call.keys["carl"], call.tokens["rita"]
    for secret in (key, token, key.upper()):
        path = secret
        for _ in range(4):
            path = (
                "".join(f"%{ord(char):02X}" for char in path)
                if len(path) < 500
                else path.replace("%", "%25")
            )
            assert call("GET", f"/{path}").status_code == 401
            assert call("GET", f"/knowledge?domains=x&q={path}").status_code == 401
    for form in logs.FORMS:
        written = logged(form)
        assert "[hidden]" in written
        for secret in (key, token):
            last = secret.rpartition(".")[2]
            assert last.lower() not in written.lower()
            assert "".join(f"%{ord(char):02X}" for char in last[:8]) not in written


def test_a_request_id_is_taken_from_callers_that_are_trusted_and_well_formed(make_app):
    def told(app, address, asked):
        answer = app.test_client().get(
            "/health", headers={"X-Request-Id": asked}, environ_overrides={"REMOTE_ADDR": address}
        )
        return answer.headers["X-Request-Id"]

    app = make_app()
    for asked in ("a", "A-b_9", "x" * 64):
        assert told(app, "127.0.0.1", asked) == asked
        assert re.fullmatch("[0-9a-f]{32}", told(app, "192.0.2.1", asked))
    for asked in ("", "x" * 65, "a.b", "a b", "é", "a,b", "<a>"):
        assert re.fullmatch("[0-9a-f]{32}", told(app, "127.0.0.1", asked)), asked
    behind = make_app(CQ_TRUSTED_PROXIES="1")
    assert told(behind, "10.0.0.1", "from-the-proxy") == "from-the-proxy"


def test_an_unexpected_failure_has_an_id_in_its_answer_and_in_its_line(call, logged):
    alter(call.app, "ALTER TABLE events RENAME TO lost")
    answer = call("GET", "/review/stats", user="rita")
    assert (answer.status_code, answer.json) == (500, {"detail": "Internal Server Error"})
    lines = [json.loads(each) for each in logged("json").splitlines()]
    (error,) = [line for line in lines if line["level"] == "ERROR"]
    assert error["request_id"] == answer.headers["X-Request-Id"]
    assert "Traceback" in error["trace"]
    assert "Traceback" in logged("text")


@pytest.mark.slow
def test_a_server_logs_text_where_it_is_told_to(tmp_path, environ):
    server = Server(tmp_path, {**environ, "CQ_LOG": "text"}).listening()
    assert send(server.url, "GET", "/health").status == 200
    server.end()
    written = server.errors.read_text()
    assert "INFO cq.access GET /health 200" in written
    assert "{" not in written
