"""The tools at /mcp of a node, by the official client over HTTP."""

import asyncio
import http.client
import json

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.cast import eventually

UNIT = {
    "summary": "Locks outlive a killed apply",
    "detail": "The row stays.",
    "action": "Unlock it.",
    "domains": ["terraform"],
}


@pytest.fixture
def node(serve):
    return serve()


def talk(node, steps, key=None, mode="legacy"):
    """What `steps(client)` gives, with a client of the SDK that is connected to the node."""

    async def run():
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(headers=headers) as line:
            transport = streamable_http_client(f"{node.url}/mcp", http_client=line)
            async with Client(transport, mode=mode) as client:
                return await steps(client)

    return asyncio.run(run())


both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])


@both_eras
def test_the_five_tools_are_listed_to_anybody(node, mode):
    async def steps(client):
        return [tool.name for tool in (await client.list_tools()).tools], client.server_info

    names, info = talk(node, steps, mode=mode)
    assert names == ["query", "propose", "confirm", "flag", "status"]
    assert info.name == "cq"


@both_eras
def test_a_unit_goes_from_one_host_over_the_review_to_another(node, call, mode):
    async def propose(client):
        return (await client.call_tool("propose", UNIT)).structured_content

    said = talk(node, propose, call.keys["carl"], mode)
    assert said["outcome"] == "sent"
    id = said["unit"]["id"]
    assert call("POST", f"/review/{id}/approve", {}, user="rita").status_code == 200

    async def use(client):
        async def call(name, **given):
            return (await client.call_tool(name, given)).structured_content

        async def found():
            return (await call("query", domains="terraform", q="state is locked"))["units"]

        while [unit["id"] for unit in await found()] != [id]:
            await asyncio.sleep(0.05)
        confirmed = await call("confirm", unit_id=id)
        flagged = await call("flag", unit_id=id, reason="stale")
        return confirmed, flagged, await call("status")

    confirmed, flagged, stats = talk(node, use, call.keys["cleo"], mode)
    assert confirmed["unit"]["evidence"]["confirmations"] == 2
    assert [flag["reason"] for flag in flagged["unit"]["flags"]] == ["stale"]
    assert stats["total_count"] == 1


def test_without_a_key_public_units_are_read_and_nothing_is_written(node, call):
    ids = [call.propose(domains=["terraform"], key="carl")["id"] for _ in range(2)]
    for id, tier in zip(ids, ("public", "private"), strict=True):
        call("POST", f"/review/{id}/approve", {"tier": tier}, user="rita")

    async def steps(client):
        found = await client.call_tool("query", {"domains": ["terraform"]})
        tried = [
            await client.call_tool("propose", UNIT),
            await client.call_tool("confirm", {"unit_id": ids[0]}),
            await client.call_tool("flag", {"unit_id": ids[0], "reason": "stale"}),
        ]
        return found, tried

    def answered():
        found, tried = talk(node, steps)
        assert all(each.is_error for each in tried)
        assert all("API key" in each.content[0].text for each in tried)
        return [unit["id"] for unit in found.structured_content["units"]]

    assert eventually(answered) == ids[:1]


def test_what_the_model_can_mend_is_told(node, call):
    async def steps(client):
        return [
            await client.call_tool(name, given)
            for name, given in (
                ("query", {}),
                ("query", {"domains": ["x"] * 17}),
                ("propose", {**UNIT, "summary": " "}),
                ("confirm", {"unit_id": "x"}),
                ("confirm", {"unit_id": f"ku_{'0' * 32}"}),
                ("flag", {"unit_id": f"ku_{'0' * 32}", "reason": "boring"}),
            )
        ]

    for each in talk(node, steps, call.keys["carl"]):
        assert each.is_error
        assert each.content[0].text
        assert "Traceback" not in each.content[0].text


def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(node):
    async def steps(client):
        with pytest.raises(MCPError):
            await client.call_tool("reflect", {})
        with pytest.raises(MCPError):
            await client.get_prompt("x")
        with pytest.raises(MCPError):
            await client.read_resource("cq://x")
        return (await client.read_resource("cq://skill")).contents[0].text

    assert "Core Protocol" in talk(node, steps)


# On the wire


def post(node, body, **headers):
    line = http.client.HTTPConnection(node.url.removeprefix("http://"), timeout=20)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **headers,
    }
    line.request("POST", "/mcp", body, headers)
    answer = line.getresponse()
    told = answer.read()
    line.close()
    return answer.status, json.loads(told) if told else None


def initialize(version):
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})


@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01", "9999-01-01"]
)
def test_a_version_that_is_not_spoken_is_answered_with_one_that_is(node, version):
    status, told = post(node, initialize(version))
    assert status == 200
    spoken = told["result"]["protocolVersion"]
    assert spoken == (version if version[:2] == "20" else "2025-11-25")


def test_another_site_and_a_bad_key_are_refused(node, call):
    body = initialize("2025-06-18")
    assert post(node, body, Origin="https://evil.example")[0] == 403
    for key in ("cqa.v1.x.y", "x", f"{call.keys['carl']}x"):
        status, told = post(node, body, Authorization=f"Bearer {key}")
        assert (status, told) == (401, {"detail": "Missing or invalid API key"})
    assert post(node, body, Authorization=f"Bearer {call.keys['carl']}")[0] == 200


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", '{"jsonrpc": "2.0"}', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_what_is_no_message_is_no_fault_of_the_server(node, body):
    assert 400 <= post(node, body)[0] < 500


def test_a_notification_gets_no_answer_and_a_long_body_is_refused(node):
    assert post(node, '{"jsonrpc": "2.0", "method": "notifications/initialized"}') == (202, None)
    assert post(node, b" " * (256 * 1024 + 1))[0] == 413


def test_there_is_no_stream_to_wait_at(node):
    line = http.client.HTTPConnection(node.url.removeprefix("http://"), timeout=20)
    line.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
    assert line.getresponse().status == 405
    line.close()
