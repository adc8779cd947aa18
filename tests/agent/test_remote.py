"""HTTP to a node: what is sent, what each answer means, and where the key goes."""

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cq import record, transport
from cq.failures import (
    AppliedUnreadable,
    BadAddress,
    DiscoveryFailed,
    Invalid,
    NoAnswer,
    Refused,
)
from cq.remote import Remote
from tests.agent.misbehaving import (
    CERTIFICATE,
    DISCOVERY,
    Drip,
    Hang,
    Misbehaving,
    Reset,
    http,
    said,
)
from tests.cast import eventually

KEY = "cqa.v1.0123456789abcdef0123456789abcdef.secret"
ID = f"ku_{'c' * 32}"
OTHER = f"ku_{'d' * 32}"
UNIT = {**record.make("s", "d", "a", ["terraform"]), "id": ID}


def answer(body, status=200, **headers):
    return http(status, json.dumps(body).encode(), **headers)


@pytest.fixture
def order(tmp_path):
    """`order(usual)`: a node that answers so, and a `Remote` to it."""
    made = []

    def start(usual, timeout=20.0, **more):
        node = Misbehaving(usual, **more)
        made.append(node)
        return Remote(node.addr, KEY, timeout, tmp_path / "cache"), node

    yield start
    for node in made:
        node.stop()


OPERATIONS = {
    "query": lambda remote: remote.query({"domains": ["x"]}),
    "propose": lambda remote: remote.propose(UNIT),
    "confirm": lambda remote: remote.confirm(ID),
    "flag": lambda remote: remote.flag(ID, "stale"),
    "stats": lambda remote: remote.stats(),
}
POSTS = ("propose", "confirm", "flag")
every_operation = pytest.mark.parametrize("name", OPERATIONS)
every_post = pytest.mark.parametrize("name", POSTS)


def request_of(node):
    """(first line, {lower-case header: value}, body) of the last request."""
    first, *lines = node.seen[-1].strip().split("\r\n")
    return first, dict(re.split(r": ", line.lower(), maxsplit=1) for line in lines), node.bodies[-1]


# What is sent


def test_a_query_repeats_its_tags_and_asks_for_scores_with_a_question(order):
    remote, node = order(answer({"data": []}))
    asked = {
        "domains": ["a b", "ü&c"],
        "languages": ["go"],
        "frameworks": [],
        "pattern": "p",
        "limit": 7,
    }
    remote.query(asked)
    first, headers, _ = request_of(node)
    assert first == (
        "GET /api/v1/knowledge?domains=a+b&domains=%C3%BC%26c&languages=go&pattern=p&limit=7 HTTP/1.1"
    )
    assert headers["authorization"] == f"bearer {KEY}"
    assert headers["user-agent"].startswith("cq/")
    assert "content-type" not in headers
    remote.query({"q": "why?"})
    assert request_of(node)[0] == "GET /api/v1/knowledge?q=why%3F&explain=1 HTTP/1.1"


def test_a_proposal_is_sent_under_its_id(order):
    remote, node = order(answer(UNIT, 201))
    remote.propose({**UNIT, "extensions": {"acme:severity": "high"}, "created_by": "carl"})
    first, headers, body = request_of(node)
    assert first == "POST /api/v1/knowledge HTTP/1.1"
    assert headers["idempotency-key"] == ID
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == {
        "domains": ["terraform"],
        "insight": {"summary": "s", "detail": "d", "action": "a"},
        "context": {"languages": [], "frameworks": [], "pattern": ""},
        "created_by": "carl",
        "extensions": {"acme:severity": "high"},
    }


def test_votes_are_sent_without_empty_members(order):
    remote, node = order(answer(UNIT, 201))
    remote.confirm(ID)
    first, headers, body = request_of(node)
    assert (first, body) == (f"POST /api/v1/knowledge/{ID}/confirmations HTTP/1.1", b"")
    assert headers["content-length"] == "0"
    remote.flag(ID, "stale")
    assert json.loads(request_of(node)[2]) == {"reason": "stale"}
    remote.flag(ID, "duplicate", "Said before", OTHER)
    first, _, body = request_of(node)
    assert first == f"POST /api/v1/knowledge/{ID}/flags HTTP/1.1"
    assert json.loads(body) == {
        "reason": "duplicate",
        "detail": "Said before",
        "duplicate_of": OTHER,
    }


@pytest.mark.parametrize(
    "id", ["../../evil?x=1#", f"{ID}\n", ID.upper(), "", "ku_", f"{ID}/../x", None, 5]
)
def test_what_is_no_id_is_never_sent(order, id):
    remote, node = order(answer(UNIT, 201))
    for vote in (lambda: remote.confirm(id), lambda: remote.flag(id, "stale")):
        with pytest.raises(Invalid, match="no id"):
            vote()
    assert node.seen == []


# What an answer means


def test_a_query_gives_units_mode_and_scores(order):
    other = {**UNIT, "id": OTHER, "later": {"more": 1}}
    body = {"data": [UNIT, other], "explain": [{"score": 0.75}, {"score": 1}]}
    remote, _ = order(answer(body, CQ_Search="semantic"))
    found = remote.query({"q": "x"})
    assert [unit["id"] for unit in found["units"]] == [ID, OTHER]
    assert found["units"][1]["later"] == {"more": 1}
    assert (found["mode"], found["scores"]) == ("semantic", {ID: 0.75, OTHER: 1})


@pytest.mark.parametrize(
    "explain",
    ["5", "null", "true", '"score"', "{}", "[5]", '[{"score": NaN}]', '[{"score": true}]', '[{"score": "1"}]',
     '[{"score": Infinity}]', '[{"score": 1' + "0" * 400 + "}]"],
)  # fmt: skip
def test_an_odd_explanation_is_none(order, explain):
    body = f'{{"data": [{json.dumps(UNIT)}], "explain": {explain}}}'
    remote, _ = order(http(200, body.encode()))
    found = remote.query({"q": "x"})
    assert (len(found["units"]), found["scores"], found["mode"]) == (1, {}, None)


ODD = {
    "flags": [5, True, "abc", [5], {"reason": "stale"}],
    "evidence": [5, {"confidence": "1"}, {"last_confirmed": "0001-01-01T00:00:00+05:00"}],
    "domains": [5, "x", [], [5], {"x": 1}],
    "context": [5, {"pattern": 5}, {"languages": "go"}],
    "insight": [5, None, {}],
    "tier": [5, ["x"]],
    "created_by": [5],
    "id": [None, 5, "", "ku_", f"{ID}\n"],
}
ODD_UNITS = [{**UNIT, name: value} for name, values in ODD.items() for value in values]


@pytest.mark.parametrize("unit", [*ODD_UNITS, None, 5, "x", []])
def test_a_unit_that_is_none_is_left_out_with_a_warning(order, unit):
    good = {**UNIT, "id": OTHER}
    explained = [{"score": 0.9}, {"score": 0.4}]
    remote, _ = order(answer({"data": [unit, good], "explain": explained}))
    found = remote.query({"q": "x"})
    assert [each["id"] for each in found["units"]] == [OTHER]
    assert found["scores"] == {OTHER: 0.4}
    assert len(found["warnings"]) == 1
    assert "cannot be read" in found["warnings"][0]


def test_threads_that_ask_at_once_ask_for_the_place_once(order):
    remote, node = order(answer({"data": []}))
    with ThreadPoolExecutor(8) as pool:
        for asked in [pool.submit(remote.query, {"domains": ["x"]}) for _ in range(8)]:
            asked.result()
    assert sum("cq-node.json" in head for head in node.seen) == 1
    assert len(node.seen) == 9


def test_a_thread_that_waits_for_the_place_keeps_its_own_deadline(order):
    remote, node = order(answer({}))
    node.probe = Hang(b"")
    with ThreadPoolExecutor(1) as pool:
        patient = pool.submit(remote.node, time.monotonic() + 3)
        eventually(lambda: node.seen)
        began = time.monotonic()
        with pytest.raises(DiscoveryFailed, match="in time"):
            remote.node(began + 0.2)
        assert time.monotonic() - began < 2
        assert isinstance(patient.exception(), DiscoveryFailed)


@pytest.mark.parametrize("unit", ODD_UNITS)
def test_a_proposal_is_there_if_the_answer_names_an_id(order, unit):
    remote, _ = order(answer(unit, 201))
    if unit["id"] == ID:
        assert remote.propose({**UNIT, "id": OTHER}) == {**UNIT, "tier": "private"}
    else:
        with pytest.raises(AppliedUnreadable):
            remote.propose(UNIT)
    with pytest.raises(AppliedUnreadable):
        remote.confirm(ID)


def test_an_envelope_is_opened(order):
    remote, _ = order(answer({"knowledge_unit": {**UNIT, "id": OTHER}}, 201))
    assert remote.propose(UNIT)["id"] == OTHER


READ = [b"", b"null", b"[]", b"5", b"{", b"\xff", b"<html>", b"[" * 50_000]


@pytest.mark.parametrize("body", READ)
@every_operation
def test_a_body_that_is_none_is_no_answer(order, name, body):
    remote, _ = order(http(200, body))
    with pytest.raises(NoAnswer) as failed:
        OPERATIONS[name](remote)
    applied = isinstance(failed.value, AppliedUnreadable)
    assert applied == (name in POSTS)
    assert failed.value.status == (200 if applied else None)


LOST = {
    "reset": Reset(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"),
    "truncated": b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{",
    "truncated chunks": b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    # Without its end it would be read as whole.
    "truncated after an object": b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{}",
    "huge": http(201, b" " * (8 * 1024 * 1024 + 1)),
}


@pytest.mark.parametrize("lost", LOST)
@every_operation
def test_a_body_that_is_lost_tells_that_a_post_was_done(order, name, lost):
    remote, _ = order(LOST[lost])
    with pytest.raises(NoAnswer) as failed:
        OPERATIONS[name](remote)
    assert isinstance(failed.value, AppliedUnreadable) == (name in POSTS)
    assert failed.value.status == 201


@pytest.mark.parametrize(
    "gone", [b"", Reset(b""), b"HTTP/1.1 2", b"220 mail\r\n\r\n", b"HTTP/1.1 200 OK\r\nx"]
)
@every_operation
def test_an_answer_without_a_status_says_nothing(order, name, gone):
    remote, _ = order(gone)
    with pytest.raises(NoAnswer) as failed:
        OPERATIONS[name](remote)
    assert not isinstance(failed.value, AppliedUnreadable) or b"200" in bytes(gone)


@pytest.mark.parametrize("status", [400, 409, 410, 413, 415, 422])
@every_operation
def test_a_refusal_carries_status_and_detail(order, name, status):
    remote, _ = order(said(status, "No"))
    with pytest.raises(Refused, match="No") as refused:
        OPERATIONS[name](remote)
    assert (refused.value.status, refused.value.detail) == (status, "No")


@pytest.mark.parametrize(
    "status",
    [301, 302, 304, 307, 401, 402, 403, 407, 408, 418, 425, 429, 451, 500, 502, 503, 504, 599],
)
@every_operation
def test_all_else_is_no_answer_and_no_redirect_is_followed(order, name, status):
    _, elsewhere = order(answer(UNIT, 201))
    remote, node = order(http(status, Location=f"{elsewhere.addr}/api/v1/knowledge"))
    with pytest.raises(NoAnswer) as failed:
        OPERATIONS[name](remote)
    assert failed.value.status == status
    assert elsewhere.seen == []
    assert len(node.seen) == 2


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>Not Found</html>", b'{"detail": "Not Found"}', b"{}", b'{"detail": null}', b"[]"],
)
@every_operation
def test_a_path_that_is_not_there_means_that_the_api_has_moved(order, name, body):
    remote, node = order(http(404, body))
    with pytest.raises(NoAnswer) as failed:
        OPERATIONS[name](remote)
    assert failed.value.status == 404
    # Where the API lives is asked anew, by this process and by others.
    node.usual = answer(UNIT if name in POSTS else {"data": []})
    OPERATIONS[name](remote)
    assert sum(DISCOVERY in head for head in node.seen) == 2
    assert not [file for file in (remote._folder).iterdir() if file.name.startswith("tmp-")]


@every_post
def test_a_unit_that_is_not_there_is_refused(order, name):
    remote, _ = order(said(404, "Knowledge unit not found"))
    with pytest.raises(Refused, match="Knowledge unit not found"):
        OPERATIONS[name](remote)


@pytest.mark.parametrize("status", [404, 422, 503])
def test_a_refusal_whose_reason_is_lost_is_one_by_its_status(order, status):
    head = f"HTTP/1.1 {status} X\r\nContent-Length: 100\r\n\r\n{{".encode()
    remote, _ = order(Reset(head))
    with pytest.raises(Refused if status == 422 else NoAnswer) as failed:
        remote.propose(UNIT)
    assert failed.value.status == status


def test_a_long_reason_is_cut_at_64_kib_and_settles_it(order):
    remote, _ = order(said(422, "x" * (9 * 1024 * 1024)))
    with pytest.raises(Refused) as refused:
        remote.propose(UNIT)
    assert refused.value.detail == ""


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"detail": "Plain"}, "Plain"),
        ({"error": "Plain"}, "Plain"),
        ({"detail": "", "error": "Plain"}, "Plain"),
        ({"detail": "a\x1b[31m\r\nb\u202e\x00c"}, "a [31m b c"),
        ({"detail": "x" * 1000}, "x" * 300),
        (
            {"detail": [{"loc": ["body", "insight", 0], "msg": "No"}, {"msg": "Nor"}]},
            "insight.0: No; Nor",
        ),
        (
            {
                "detail": [
                    {"loc": 5, "msg": "No"},
                    {"loc": None},
                    5,
                    "text",
                    {"loc": [{}], "msg": {}},
                ]
            },
            None,
        ),
        ({"detail": {"a": 1}}, '{"a": 1}'),
        ({"detail": 5}, "5"),
        ({"detail": None}, ""),
        ({"detail": True}, "true"),
        ([], ""),
        (None, ""),
    ],
)
def test_the_detail_is_a_line(order, body, detail):
    remote, _ = order(answer(body, 422))
    with pytest.raises(Refused) as refused:
        remote.propose(UNIT)
    assert detail is None or refused.value.detail == detail
    assert str(refused.value).isprintable()


def test_a_web_page_is_no_detail(order):
    remote, _ = order(http(502, b"<html><h1>Bad gateway</h1></html>", "text/html"))
    with pytest.raises(NoAnswer) as failed:
        remote.stats()
    assert "<" not in str(failed.value)
    assert failed.value.detail == ""


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("3", 3),
        ("0", 0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("-1", None),
        ("1.5", None),
        ("9" * 5000, None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_when_to_ask_again_is_told(order, status, after, seconds):
    remote, _ = order(http(status, b'{"detail": "Busy"}', Retry_After=after))
    with pytest.raises(NoAnswer) as failed:
        remote.stats()
    assert failed.value.retry_after == seconds
    assert ("3 s" in str(failed.value)) == (seconds == 3)


def test_a_refused_key_is_told_with_what_to_do(order):
    remote, _ = order(said(401, "Invalid API key"))
    with pytest.raises(
        NoAnswer, match=r"does not accept the API key: check CQ_API_KEY.*cq auth key create"
    ):
        remote.propose(UNIT)


# Time


@pytest.mark.parametrize(
    "late",
    [Hang(b""), Hang(b"HTTP/1.1 200 OK\r\n"), Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
     Drip(http(200, b" " * 500)), Hang(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)],
)  # fmt: skip
@pytest.mark.parametrize("name", ["propose", "query"])
def test_the_deadline_is_for_the_whole_exchange(order, name, late):
    remote, _ = order(late, 0.5)
    began = time.monotonic()
    with pytest.raises(NoAnswer, match="in time"):
        OPERATIONS[name](remote)
    assert time.monotonic() - began < 4


def test_discovery_and_the_answer_share_one_deadline(order):
    def slowly(it):
        time.sleep(0.4)
        return http(404)

    remote, node = order(Hang(b""), 0.8, probe=slowly)
    began = time.monotonic()
    with pytest.raises(NoAnswer):
        remote.propose(UNIT)
    assert time.monotonic() - began < 4
    assert len(node.seen) == 2


def test_a_node_that_takes_nothing_in_costs_no_more_than_the_time(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as line:
        addr = f"http://127.0.0.1:{line.getsockname()[1]}"
        taken = []
        accepting = threading.Thread(target=lambda: taken.append(line.accept()[0]))
        accepting.start()
        began = time.monotonic()
        with pytest.raises(transport.Unreachable, match="in time"):
            transport.send("POST", addr, {}, b"x" * (32 << 20), time.monotonic() + 0.5)
        assert time.monotonic() - began < 4
        accepting.join()
        taken[0].close()


def test_a_time_that_is_over_asks_nothing(order):
    remote, node = order(answer({"data": []}), 0.0)
    with pytest.raises(NoAnswer, match="in time"):
        remote.query({"domains": ["x"]})
    assert node.seen == []


# Discovery


@pytest.mark.parametrize("addr", ["localhost:3000", "", "ftp://x", "http://x?y"])
def test_what_is_no_address_is_no_answer(addr):
    with pytest.raises(BadAddress):
        Remote(addr, KEY).propose(UNIT)


@every_operation
def test_a_failed_discovery_is_no_answer_and_asks_nothing_more(order, name):
    remote, node = order(answer(UNIT), probe=http(200, b"{}"))
    with pytest.raises(DiscoveryFailed):
        OPERATIONS[name](remote)
    assert all(DISCOVERY in head for head in node.seen)


def test_a_stale_document_is_replaced_after_a_failure(order):
    _, moved = order(answer({"data": []}))
    document = json.dumps(
        {"version": 1, "api_base_url": f"{moved.addr}/api", "api_version": "v1"}
    ).encode()
    remote, node = order(http(500), probe=http(200, document))
    remote.query({"domains": ["x"]})
    moved.stop()
    with pytest.raises(NoAnswer):
        remote.query({"domains": ["x"]})
    node.probe, node.usual = http(404), answer({"data": []})
    assert remote.query({"domains": ["x"]})["units"] == []


def test_a_stale_document_that_cannot_be_deleted_is_passed_over(order, tmp_path):
    remote, node = order(http(404))
    (tmp_path / "cache").write_text("no folder")
    with pytest.raises(NoAnswer):
        remote.propose(UNIT)
    node.usual = answer(UNIT, 201)
    assert remote.propose(UNIT)["id"] == ID
    assert sum(DISCOVERY in head for head in node.seen) == 2


# The key


def test_the_key_goes_to_the_api_alone(order, tmp_path):
    _, api = order(answer({"data": []}))
    document = json.dumps(
        {"version": 1, "api_base_url": f"{api.addr}/api", "api_version": "v1"}
    ).encode()
    remote, node = order(http(500), probe=http(200, document))
    remote.query({"domains": ["x"]})
    assert not any("secret" in head for head in node.seen)
    assert all("secret" in head and "secret" not in head.split("\r\n")[0] for head in api.seen)
    assert not any("secret" in file.read_text() for file in (tmp_path / "cache").iterdir())


def test_no_other_origin_sees_the_key(order):
    _, thief = order(answer({"data": []}))
    for probe in (
        http(302, Location=f"{thief.addr}{DISCOVERY}"),
        # Another origin that says by http that it is the node's: not loopback.
        http(
            200,
            json.dumps(
                {"version": 1, "api_base_url": "http://192.0.2.1", "api_version": "v1"}
            ).encode(),
        ),
    ):
        remote, node = order(answer({"data": []}), probe=probe)
        with pytest.raises(DiscoveryFailed):
            remote.query({"domains": ["x"]})
        assert not any("secret" in head for head in node.seen)
    remote, node = order(http(307, Location=f"{thief.addr}/api/v1/knowledge"))
    with pytest.raises(NoAnswer):
        remote.propose(UNIT)
    assert thief.seen == []


def test_a_node_of_https_never_leads_the_key_to_http(order, tmp_path, monkeypatch):
    file = tmp_path / "certificate.pem"
    file.write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    _, plain = order(answer({"data": []}))
    document = json.dumps(
        {"version": 1, "api_base_url": f"{plain.addr}/api", "api_version": "v1"}
    ).encode()
    remote, node = order(answer({"data": []}), probe=http(200, document), tls=file)
    with pytest.raises(DiscoveryFailed, match="without https"):
        remote.query({"domains": ["x"]})
    assert plain.seen == []
    node.probe = http(404)
    assert remote.query({"domains": ["x"]})["units"] == []
    assert "secret" in node.seen[-1]


@pytest.mark.parametrize("key", ["a\nb", "a\r\nX: y", "schlüssel", "a\x00", "a\tb"])
def test_a_key_that_is_none_is_told_without_it(order, key):
    _, node = order(answer(UNIT, 201))
    with pytest.raises(NoAnswer, match="CQ_API_KEY") as failed:
        Remote(node.addr, key).propose(UNIT)
    assert key not in str(failed.value)
    assert not any("Authorization" in head for head in node.seen)


def test_no_failure_tells_the_key(order):
    for usual in (
        Reset(b""),
        said(401, "No"),
        said(422, "No"),
        http(301),
        http(200, b"{"),
        b"no HTTP\r\n\r\n",
    ):
        remote, _ = order(usual)
        for operation in OPERATIONS.values():
            with pytest.raises((NoAnswer, Refused)) as failed:
                operation(remote)
            told = failed.value
            while told is not None:
                assert "secret" not in str(told)
                told = told.__cause__ or told.__context__


# Our own node


def test_all_operations_work_on_our_node(serve, call, tmp_path):
    server = serve()
    remote = Remote(server.url, call.keys["cleo"], 20.0, tmp_path / "cache")
    mine = {
        **record.make("Locks outlive a killed apply", "d", "a", ["terraform"], languages=["hcl"]),
        "extensions": {"acme:severity": "high"},
    }
    sent = remote.propose(mine)
    assert (sent["id"], sent["tier"], sent["created_by"]) == (mine["id"], "private", "cleo")
    assert sent["extensions"] == mine["extensions"]
    assert remote.propose(mine)["id"] == mine["id"]
    with pytest.raises(Refused) as refused:
        Remote(server.url, call.keys["carl"], 20.0, tmp_path / "cache").propose(mine)
    assert refused.value.status == 409
    with pytest.raises(Refused) as refused:
        remote.propose({**mine, "id": OTHER, "domains": []})
    assert refused.value.status == 422
    assert "domain" in refused.value.detail
    # Not approved, it is no unit for votes.
    with pytest.raises(Refused) as refused:
        remote.confirm(mine["id"])
    assert refused.value.status == 404
    done = call("POST", f"/review/{mine['id']}/approve", {"tier": "private"}, user="rita")
    assert done.status_code == 200
    found = eventually(
        lambda: remote.query({"domains": ["terraform"], "q": "locks", "limit": 5})["units"]
    )
    assert [unit["id"] for unit in found] == [mine["id"]]
    found = remote.query({"domains": ["terraform"], "q": "locks"})
    assert found["mode"]
    assert remote.confirm(mine["id"])["evidence"]["confirmations"] == 2
    remote.propose({**mine, "id": OTHER, "insight": {**mine["insight"], "summary": "Locks stay"}})
    # What was said goes to reviewers alone.
    flagged = remote.flag(mine["id"], "duplicate", "Said before", OTHER)
    assert [(flag["reason"], flag["duplicate_of"]) for flag in flagged["flags"]] == [
        ("duplicate", OTHER)
    ]
    assert remote.stats()["total_count"] >= 1
    assert remote.knows_key()
    stranger = Remote(server.url, KEY, 20.0, tmp_path / "cache")
    assert not stranger.knows_key()
    with pytest.raises(NoAnswer, match="API key"):
        stranger.propose(mine)
