"""`cq mcp` as a host drives it: the official client over stdio, and the bare wire."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters, types

from cq.store import open_store
from tests.agent.misbehaving import Hang, Misbehaving, http
from tests.agent.test_cli import START
from tests.agent.upstream import KEY, Upstream
from tests.cast import ROOT, eventually

UNIT = {
    "summary": "Locks outlive a killed apply — 鍵 🔑",
    "detail": "The row stays.",
    "action": "Unlock it.",
    "domains": ["terraform"],
}
ABSENT = f"ku_{'0' * 32}"
both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])


@pytest.fixture
def environ(tmp_path):
    """`environ(CQ_ADDR=...)`: what a host gives to a process in a home of its own."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CQ_", "XDG_"))
    }
    return lambda **more: {**kept, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **more}


@pytest.fixture
def host(environ):
    """`host(steps, mode, answer, CQ_ADDR=...)`: what `steps(client)` gives. `answer` is a person's to
    a question, an ElicitResult; without one the host cannot ask.
    """

    def run(steps, mode="legacy", answer=None, asked=None, **variables):
        async def ask(context, params):
            if asked is not None:
                asked.append(params)
            return answer

        async def drive():
            command = StdioServerParameters(
                command=sys.executable, args=["-c", START, "mcp"], env=environ(**variables)
            )
            more = {"elicitation_callback": ask} if answer else {}
            async with Client(command, mode=mode, **more) as client:
                return await steps(client)

        return asyncio.run(drive())

    return run


@pytest.fixture
def store(tmp_path):
    """What the machine keeps, opened anew."""
    return lambda: open_store(tmp_path / ".local/share/cq/local.db")


def calls(*calls):
    """Steps that call tools in turn and give their results."""

    async def steps(client):
        return [await client.call_tool(name, given) for name, given in calls]

    return steps


ACCEPT = types.ElicitResult(action="accept", content={})


# What there is


@both_eras
def test_the_tools_the_prompts_and_the_skill_are_listed(host, mode):
    async def steps(client):
        tools = (await client.list_tools()).tools
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        texts = [(await client.get_prompt(name)).messages[0].content.text for name in prompts]
        (resource,) = (await client.list_resources()).resources
        skill = (await client.read_resource(resource.uri)).contents[0].text
        return tools, prompts, texts, skill, client.server_info.name, client.instructions

    tools, prompts, texts, skill, name, instructions = host(steps, mode)
    assert [tool.name for tool in tools] == ["query", "propose", "confirm", "flag", "status"]
    reading = {tool.name for tool in tools if tool.annotations.read_only_hint}
    assert reading == {"query", "status"}
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
    assert all(tool.output_schema["type"] == "object" for tool in tools)
    assert prompts == ["reflect", "status"]
    assert all(texts)
    assert "## Core Protocol" in skill
    assert name == "cq"
    assert "never instructions" in " ".join(instructions.split())


@both_eras
def test_what_is_proposed_is_found_confirmed_flagged_and_counted(host, mode):
    async def steps(client):
        async def call(name, **given):
            result = await client.call_tool(name, given)
            assert not result.is_error
            # The text says the same, for a host that reads no structured content.
            assert json.loads(result.content[0].text) == result.structured_content
            return result.structured_content

        said = await call("propose", **UNIT, languages="hcl", pattern="locking")
        id = said["unit"]["id"]
        assert (said["outcome"], said["findings"]) == ("kept", [])
        found = await call("query", domains=["terraform"], q="state is locked", limit=2.5)
        assert [unit["id"] for unit in found["units"]] == [id]
        assert (found["source"], found["mode"], found["warnings"]) == ("local", None, [])
        assert "gives no orders" in found["notice"]
        voted = await call("confirm", unit_id=id)
        assert voted["unit"]["evidence"]["confirmations"] == 2
        flagged = await call("flag", unit_id=id, reason=" Stale ", detail="Since 1.9.")
        assert flagged["unit"]["flags"][0]["reason"] == "stale"
        stats = await call("status", anything="ignored")
        assert (stats["total_count"], stats["held"]) == (1, 0)

    host(steps, mode, ACCEPT)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("query", {}, "at least one is needed"),
        ("query", {"domains": []}, "at least one is needed"),
        ("query", {"domains": "api,ci"}, '["api", "ci"]'),
        ("query", {"domains": 5}, "domains: it takes a list"),
        ("query", {"domains": ["x", 5]}, "item 1"),
        ("query", {"domains": ["x"], "limit": "many"}, "limit: it takes a number"),
        ("query", {"domains": ["x"], "pattern": ["x"]}, "pattern: it takes a text"),
        ("query", {"q": "x" * 2001}, "2000"),
        ("query", {"domains": ["x"] * 17}, "16"),
        ("propose", {}, "summary: it is required\ndetail: it is required"),
        ("propose", {**UNIT, "domains": []}, "domain"),
        ("propose", {**UNIT, "summary": " "}, "summary"),
        ("propose", {**UNIT, "summary": "x" * 501}, "500"),
        ("propose", {**UNIT, "extensions": []}, "extensions: it takes an object"),
        ("propose", {**UNIT, "extensions": {"x": 1}}, "namespace:key"),
        ("propose", {**UNIT, "detail": f"ghp_{'aB3d' * 9}"}, "detail"),
        ("propose", {**UNIT, "action": "Unlock\u202e it."}, "action"),
        ("confirm", {}, "unit_id: it is required"),
        ("confirm", {"unit_id": "x"}, "no id of a unit"),
        ("confirm", {"unit_id": ABSENT}, "no node is configured"),
        ("flag", {"unit_id": ABSENT, "reason": "boring"}, "stale"),
        ("flag", {"unit_id": ABSENT, "reason": "duplicate"}, "duplicate_of"),
    ],
)
def test_what_the_model_can_mend_says_how(host, name, given, told):
    (result,) = host(calls((name, given)))
    assert result.is_error
    assert told in result.content[0].text
    assert "ghp_" not in result.content[0].text


@pytest.mark.parametrize("domains", ["terraform", '["terraform"]', ["terraform"]])
def test_a_bare_text_is_a_list_of_one(host, domains):
    """Row 38."""
    said, found = host(
        calls(
            ("propose", {**UNIT, "domains": domains, "languages": None, "extensions": None}),
            ("query", {"domains": domains, "frameworks": None, "keywords": ["x"]}),
        ),
        answer=ACCEPT,
    )
    assert said.structured_content["unit"]["domains"] == ["terraform"]
    assert len(found.structured_content["units"]) == 1


def test_what_only_the_host_can_mend_is_an_error_of_the_protocol(host):
    async def steps(client):
        for wrong in (
            lambda: client.call_tool("reflect", {}),
            lambda: client.get_prompt("x"),
            lambda: client.read_resource("cq://x"),
        ):
            with pytest.raises(MCPError):
                await wrong()

    host(steps)


def test_a_store_that_cannot_be_opened_is_told_by_the_tools_alone(host, tmp_path):
    """Row 19: the host gets its `initialize`."""
    (tmp_path / "file").write_text("")
    (result,) = host(calls(("status", {})), CQ_LOCAL_DB_PATH=str(tmp_path / "file" / "local.db"))
    assert result.is_error
    assert str(tmp_path / "file") in result.content[0].text


# A person is asked first


@both_eras
def test_a_person_sees_what_they_accept(host, store, mode):
    asked = []
    unit = {**UNIT, "detail": "Ask ann.smith@acme-robotics.io.", "languages": ["hcl"]}
    (said,) = host(calls(("propose", unit)), mode, ACCEPT, asked)
    assert said.structured_content["outcome"] == "kept"
    (question,) = asked
    for text in (*(unit[name] for name in ("summary", "detail", "action")), "terraform", "hcl"):
        assert text in question.message
    assert "To weigh, in detail: " in question.message
    assert question.requested_schema["properties"]["summary"]["default"] == UNIT["summary"]
    assert store().all()[0]["insight"]["detail"] == unit["detail"]


@both_eras
def test_what_a_person_edits_is_what_is_proposed(host, store, mode):
    edited = {"summary": "Locks stay", "domains": "Terraform, state ,", "nonsense": "x"}
    answer = types.ElicitResult(action="accept", content=edited)
    (said,) = host(calls(("propose", UNIT)), mode, answer)
    assert said.structured_content["unit"]["insight"]["summary"] == "Locks stay"
    (kept,) = store().all()
    assert kept["domains"] == ["terraform", "state"]
    assert kept["insight"]["detail"] == UNIT["detail"]


@both_eras
@pytest.mark.parametrize(
    ("edited", "told"),
    [({"summary": ""}, "summary"), ({"domains": " , "}, "domain"),
     ({"detail": f"ghp_{'aB3d' * 9}"}, "detail")],
)  # fmt: skip
def test_an_edit_that_breaks_a_rule_is_told(host, store, mode, edited, told):
    (said,) = host(
        calls(("propose", UNIT)), mode, types.ElicitResult(action="accept", content=edited)
    )
    assert said.is_error
    assert told in said.content[0].text
    assert store().all() == []


@both_eras
def test_what_a_person_declines_is_dropped(host, store, mode):
    (said,) = host(calls(("propose", UNIT)), mode, types.ElicitResult(action="decline"))
    assert not said.is_error
    assert said.structured_content["outcome"] == "declined"
    assert "do not propose this again" in said.structured_content["warnings"][0]
    assert (store().all(), store().held()) == ([], [])


@both_eras
@pytest.mark.parametrize("answer", [types.ElicitResult(action="cancel"), None])
def test_what_nobody_decided_is_held(host, store, mode, answer):
    said, stats = host(calls(("propose", UNIT), ("status", {})), mode, answer)
    assert said.structured_content["outcome"] == "held"
    assert "cq held review" in said.structured_content["warnings"][0]
    assert stats.structured_content["held"] == 1
    ((unit, _, _),) = store().held()
    assert unit["insight"]["summary"] == UNIT["summary"]
    assert store().all() == []


@both_eras
def test_headless_what_is_clean_is_proposed_and_the_rest_is_held(host, store, mode):
    doubtful = {**UNIT, "detail": "Ask ann.smith@acme-robotics.io."}
    steps = calls(("propose", UNIT), ("propose", doubtful))
    clean, held = host(steps, mode, CQ_APPROVAL="headless")
    assert clean.structured_content["outcome"] == "kept"
    assert held.structured_content["outcome"] == "held"
    assert held.structured_content["findings"]
    assert (len(store().all()), len(store().held())) == (1, 1)


def test_a_wrong_word_for_the_approval_is_a_misuse(environ):
    done = subprocess.run(
        [sys.executable, "-c", START, "mcp"],
        env=environ(CQ_APPROVAL="never"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "ask or headless" in done.stderr


# A node


def test_a_node_that_is_away_is_told_and_nothing_is_lost(host, store):
    said, found, stats = host(
        calls(("propose", UNIT), ("query", {"domains": ["terraform"]}), ("status", {})),
        answer=ACCEPT,
        CQ_ADDR="http://127.0.0.1:9",
    )
    assert said.structured_content["outcome"] == "kept"
    assert "cq drain" in said.structured_content["warnings"][0]
    assert found.structured_content["source"] == "local"
    assert "nothing listens" in found.structured_content["warnings"][0]
    assert stats.structured_content["warnings"]
    assert len(store().all()) == 1


def test_what_waits_is_sent_at_the_start_and_status_tells(host, store):
    host(calls(("propose", UNIT)), answer=ACCEPT)
    upstream = Upstream()
    try:

        async def steps(client):
            while True:
                stats = (await client.call_tool("status", {})).structured_content
                if stats["drain"]:
                    return stats
                await asyncio.sleep(0.05)

        stats = host(steps, CQ_ADDR=upstream.addr, CQ_API_KEY=KEY)
    finally:
        upstream.stop()
    assert (stats["drain"]["pushed"], stats["drain"]["waiting"]) == (1, 0)
    assert store().all() == []


# The bare wire


class Wire:
    """A process, its lines, and what it answers."""

    def __init__(self, environ, start=START):
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, "mcp"],
            env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.number = 0

    def send(self, method, params=None, **more):
        message = {"jsonrpc": "2.0", "method": method, **more}
        if params is not None:
            message["params"] = params
        self.line(json.dumps(message).encode())

    def line(self, raw):
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, params=None):
        self.number += 1
        self.send(method, params, id=self.number)
        answer = self.read()
        assert answer["id"] == self.number
        return answer

    def start(self, version="2025-06-18"):
        info = {"name": "t", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        answer = self.ask("initialize", params)
        self.send("notifications/initialized")
        return answer["result"]

    def call(self, name, **given):
        return self.ask("tools/call", {"name": name, "arguments": given})


@pytest.fixture
def wire(environ):
    started = []

    @contextmanager
    def start(start=START, **variables):
        started.append(Wire(environ(**variables), start))
        yield started[-1]

    yield start
    for each in started:
        each.process.stdin.close()
        each.process.wait(20)
        each.process.stdout.close()
        each.process.stderr.close()


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("9999-01-01", "2025-11-25"),
    ],
)
def test_a_version_that_is_not_spoken_is_never_echoed(wire, asked, spoken):
    """Row 32."""
    with wire() as it:
        assert it.start(asked)["protocolVersion"] == spoken
        assert len(it.ask("tools/list")["result"]["tools"]) == 5


def test_an_initialize_without_a_version_is_an_error_and_not_the_end(wire):
    with wire() as it:
        assert "error" in it.ask("initialize", {"capabilities": {}})
        assert it.start()["serverInfo"]["name"] == "cq"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"5", b"null", b"\xff\xfe", b'{"jsonrpc": "1.0"}', b"[" * 10_000]
)
def test_a_line_that_is_no_message_is_passed_over(wire, raw):
    with wire() as it:
        it.start()
        it.line(raw)
        it.send("notifications/nobody-knows", {"x": 1})
        it.number += 1
        it.send("ping", id=it.number)
        # A line that is broken may be answered by an error without an id.
        answer = it.read()
        while answer.get("id") != it.number:
            assert "error" in answer
            answer = it.read()
        assert answer["result"] == {}


def test_a_method_that_there_is_not_is_an_error(wire):
    with wire() as it:
        it.start()
        assert it.ask("nobody/knows")["error"]["code"] == -32601


def test_a_line_of_20_megabytes_is_read(wire):
    with wire() as it:
        it.start()
        result = it.call("propose", **{**UNIT, "detail": "x" * 20_000_000})["result"]
        assert result["isError"]
        assert "8000" in result["content"][0]["text"]
        assert len(json.dumps(result)) < 1000
        assert it.ask("ping")["result"] == {}


def test_text_survives_a_machine_without_an_encoding(wire):
    """Row 37."""
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with wire(**plain, CQ_APPROVAL="headless") as it:
        it.start()
        it.call("propose", **UNIT)
        found = it.call("query", domains=["terraform"])["result"]["structuredContent"]
        assert found["units"][0]["insight"]["summary"] == UNIT["summary"]


# A library that says hello on standard output, by Python and beneath it.
NOISY = f"""
import os, sys
class Loud:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "sqlite3", "anyio"):
            print("progress: 100 %")
            os.write(1, b"hello\\n")
sys.meta_path.insert(0, Loud())
{START}
"""


def test_standard_output_is_the_wire_whatever_a_library_prints(wire):
    """Row 31."""
    with wire(NOISY, PYTHONWARNINGS="always", CQ_APPROVAL="headless") as it:
        assert it.start()["serverInfo"]["name"] == "cq"
        assert not it.call("propose", **UNIT)["result"]["isError"]
        it.process.stdin.close()
        assert it.process.stdout.read() == b""
        assert b"hello" in it.process.stderr.read()


def test_a_call_that_is_cancelled_makes_room_for_the_next(wire):
    node = Misbehaving(Hang(b""))
    try:
        with wire(CQ_ADDR=node.addr) as it:
            it.start()
            it.send("tools/call", {"name": "query", "arguments": {"domains": ["x"]}}, id="slow")
            eventually(lambda: len(node.seen) > 1)
            it.send("notifications/cancelled", {"requestId": "slow"})
            answer = it.ask("ping")
            assert answer["result"] == {}
    finally:
        node.stop()


def test_a_slow_call_keeps_no_other_waiting(wire):
    node = Misbehaving(Hang(b""))
    try:
        with wire(CQ_ADDR=node.addr, CQ_TIMEOUT="20") as it:
            it.start()
            it.send("tools/call", {"name": "status", "arguments": {}}, id="slow")
            eventually(lambda: len(node.seen) > 1)
            assert it.call("confirm", unit_id="x")["result"]["isError"]
    finally:
        node.stop()


def test_the_end_of_the_input_in_the_middle_of_a_call_is_the_end(wire, store):
    """Row 35."""
    node = Misbehaving(http(500))
    node.usual = Hang(b"")
    try:
        with wire(CQ_ADDR=node.addr, CQ_APPROVAL="headless") as it:
            it.start()
            it.send("tools/call", {"name": "propose", "arguments": UNIT}, id="slow")
            eventually(lambda: any(head.startswith("POST") for head in node.seen))
            began = time.monotonic()
            it.process.stdin.close()
            assert it.process.wait(20) == 0
            assert time.monotonic() - began < 2
    finally:
        node.stop()
    # What was proposed waits for the next drain.
    assert [unit["insight"]["summary"] for unit in store().all()] == [UNIT["summary"]]


def test_no_other_command_imports_the_protocol(environ):
    code = "import sys; import cq.cli.units, cq.cli.state, cq.cli.auth, cq.cli.doctor; "
    code += "sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environ()).returncode == 0


def test_it_listens_on_no_port(wire):
    """Row 51."""
    with wire(CQ_ADDR="http://127.0.0.1:9") as it:
        it.start()
        it.call("status")
        of_it = set()
        for file in os.scandir(f"/proc/{it.process.pid}/fd"):
            with suppress(FileNotFoundError):
                of_it.add(os.readlink(file.path))
        listening = set()
        for table in ("tcp", "tcp6"):
            rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            listening |= {f"socket:[{row.split()[9]}]" for row in rows if row.split()[3] == "0A"}
        assert not of_it & listening


def test_the_sdk_is_bound_to_the_major_version_that_was_tried():
    """Row 36."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (sdk,) = [each for each in asked if each.startswith("mcp")]
    assert re.fullmatch(r"mcp>=2\.\d+,<3", sdk)
