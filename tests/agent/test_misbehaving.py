"""Whatever a node does, a proposal is on the node or here, the caller is told, and in time."""

import json
import time

import pytest

from cq import Client
from cq.failures import CqError, NoNode, Refused
from tests.agent.misbehaving import Drip, Hang, Misbehaving, Reset, http, said
from tests.agent.test_client import SAID
from tests.agent.upstream import KEY, Upstream

TIMEOUT = 1.0
UNIT = f"ku_{'c' * 32}"
# What a node answers to everything but the question where its API is.
KEPT = {
    "hangs before an answer": Hang(b""),
    "hangs within the headers": Hang(b"HTTP/1.1 201 Created\r\nContent-"),
    "hangs within the body": Hang(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"),
    "drips": Drip(http(201, b" " * 1000)),
    "resets at once": Reset(b""),
    "resets within the answer": Reset(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"),
    "breaks off": b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{",
    "says nothing": b"",
    "speaks no HTTP": b"220 mail.test ESMTP\r\n",
    "moved": http(301, Location="http://127.0.0.1:9/"),
    "no access": said(401, "Invalid API key"),
    "forbidden": said(403, "No."),
    "a route that is not there": http(404, b"<html>not here</html>", "text/html"),
    "timed out": said(408, "Too slow"),
    "too early": said(425, "Too early"),
    "too many": http(429, b'{"detail": "Slow down"}', Retry_After="3"),
    "broken": said(500, "Internal Server Error"),
    "bad gateway": http(502, b"<html>bad gateway</html>", "text/html"),
    "busy": http(503, b'{"detail": "Busy"}', Retry_After="1"),
    "a web page": http(200, b"<!doctype html><title>Welcome</title>", "text/html"),
    "an empty body": http(201),
    "an empty object": http(201, b"{}"),
    "a list": http(201, b"[]"),
    "null": http(201, b"null"),
    "half a body": http(201, b'{"id": "ku_'),
    "a unit without an id": http(201, json.dumps({"domains": ["x"], "insight": {}}).encode()),
    "bottomless": http(201, b"[" * 100_000),
    "a huge body": http(201, b'{"x": "' + b"y" * (9 * 1024 * 1024) + b'"}'),
}
REFUSED = {
    "bad request": said(400, "Bad"),
    "not found": said(404, "Knowledge unit not found"),
    "a conflict": said(409, "Another's id"),
    "too large": said(413, "Too large"),
    "no content of that kind": http(
        422, json.dumps({"detail": [{"loc": ["body", "domains"], "msg": "No"}]}).encode()
    ),
}
PROBES = {
    "no JSON": http(200, b"hello"),
    "a list": http(200, b"[]"),
    "another version": http(200, b'{"version": 2, "api_base_url": "http://127.0.0.1/", "api_version": "v1"}'),
    "true for 1": http(200, b'{"version": true, "api_base_url": "http://127.0.0.1/", "api_version": "v1"}'),
    "a text for 1": http(200, b'{"version": "1", "api_base_url": "http://127.0.0.1/", "api_version": "v1"}'),
    "another API": http(200, b'{"version": 1, "api_base_url": "http://127.0.0.1/", "api_version": "v2"}'),
    "no address": http(200, b'{"version": 1, "api_base_url": "ftp://x", "api_version": "v1"}'),
    "another host": http(200, b'{"version": 1, "api_base_url": "http://192.0.2.1/api", "api_version": "v1"}'),
    "another origin": http(302, Location="http://192.0.2.1/"),
    "a loop": http(302, Location="/.well-known/cq-node.json"),
    "a web page": http(200, b"<html>", "Text/HTML; charset=utf-8"),
    "a long page": http(200, b"{" + b" " * 100_000 + b"}"),
    "forbidden": http(403),
    "broken": http(500),
    "hangs": Hang(b""),
    "drips": Drip(http(200, b" " * 1000)),
}  # fmt: skip


@pytest.fixture
def order(tmp_path, monkeypatch):
    """`order(answer)`: a client whose node misbehaves so, and the node."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = []

    def start(answer, timeout=30, **more):
        node = Misbehaving(answer, **more)
        client = Client(node.addr, KEY, str(tmp_path / "local.db"), timeout, environ={})
        made.extend([client.close, node.stop])
        return client, node

    yield start
    for end in made:
        end()


def in_time(call):
    """What it gives or raises; with grace for a busy machine, far from what a hang would take."""
    began = time.monotonic()
    try:
        return call()
    finally:
        assert time.monotonic() - began < TIMEOUT + 5


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KEPT, *(f"discovery: {name}" for name in PROBES)])
def test_a_node_without_an_answer_loses_nothing(order, tmp_path, name):
    if name in KEPT:
        client, node = order(KEPT[name], TIMEOUT)
    else:
        client, node = order(http(500), TIMEOUT, probe=PROBES[name.removeprefix("discovery: ")])
    proposed = in_time(lambda: client.propose(**SAID))
    assert proposed.kept
    assert "cq drain" in proposed.warnings[0]
    assert [unit["id"] for unit in client.waiting()] == [proposed.unit["id"]]
    found = in_time(lambda: client.query(SAID["domains"]))
    assert [unit["id"] for unit in found.units] == [proposed.unit["id"]]
    assert len(found.warnings) == 1
    assert KEY not in found.warnings[0]
    status = in_time(client.status)
    # An object without numbers tells none, and is no fault.
    told = 0 if name in ("an empty object", "a unit without an id") else 1
    assert len(status["warnings"]) == told, status["warnings"]
    assert status["total_count"] == 1
    for vote in (lambda: client.confirm(UNIT), lambda: client.flag(UNIT, "stale")):
        with pytest.raises(NoNode):
            in_time(vote)
    drained = in_time(client.drain)
    assert (drained.pushed, drained.waiting, len(drained.warnings)) == (0, 1, 1)
    # When a node is there again, the unit arrives once.
    served = Upstream()
    try:
        better = Client(served.addr, KEY, str(tmp_path / "local.db"), environ={})
        assert better.drain().pushed == 1
        assert better.drain().pushed == 0
        assert len(served.units) == 1
        assert better.waiting() == []
        better.close()
    finally:
        served.stop()
    # The key is for the API alone.
    assert not any(
        "Authorization" in head for head in node.seen if "cq-node.json" in head.split("\r\n")[0]
    )


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_told_and_keeps_nothing(order, name):
    client, _ = order(REFUSED[name])
    with pytest.raises(Refused):
        client.propose(**SAID)
    assert client.waiting() == []
    assert len(client.query(SAID["domains"]).warnings) == 1
    for vote in (lambda: client.confirm(UNIT), lambda: client.flag(UNIT, "stale")):
        with pytest.raises(CqError):
            vote()


def test_what_a_node_says_is_told_in_a_line_without_controls(order):
    client, _ = order(said(422, "Nope\x1b[31m\n" + "x" * 1000))
    with pytest.raises(Refused) as refused:
        client.propose(**SAID)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_the_absence_of_a_document_is_kept_and_forgotten_after_a_failure(order):
    client, node = order(http(200, b'{"data": []}'))
    client.query(["x"])
    client.query(["x"])
    assert sum("cq-node.json" in head for head in node.seen) == 1
    node.usual = Reset(b"")
    client.query(["x"])
    node.usual = http(200, b'{"data": []}')
    client.query(["x"])
    assert sum("cq-node.json" in head for head in node.seen) == 2


def test_refresh_asks_anew(order):
    client, node = order(http(200, b'{"data": []}'))
    client.query(["x"])
    client.refresh()
    client.query(["x"])
    assert sum("cq-node.json" in head for head in node.seen) == 2


def test_a_unit_that_a_node_garbles_spoils_no_local_one(order):
    client, _ = order(http(200, json.dumps({"data": [{"id": "x"}]}).encode()))
    found = client.query(["x"])
    assert "cannot be read" in found.warnings[0]
