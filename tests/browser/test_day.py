"""A whole day: two agents on two machines, a node, and a reviewer in the browser."""

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from mcp import Client, StdioServerParameters, types
from playwright.sync_api import expect

from cq.store import open_store
from tests.browser.deck import choice, finished, on_top
from tests.cast import ROOT, alter, eventually

START = "from cq.cli import main; main()"
UNIT = {
    "summary": "A killed apply leaves the state lock in the table",
    "detail": "DynamoDB keeps the row of a process that died, so each later run waits for it.",
    "action": "Run terraform force-unlock with the id of the lock.",
    "domains": ["terraform", "state"],
}
QUESTION = "why is the terraform state still locked when my run was killed?"


class Machine:
    """An agent's machine: a home of its own, and a host that speaks with `cq mcp` there."""

    def __init__(self, home, url, key, person=None):
        self.home, self.person, self.asked = home, person, []
        home.mkdir()
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CQ_")},
            "HOME": str(home), "PYTHONPATH": str(ROOT), "CQ_ADDR": url, "CQ_API_KEY": key,
            "CQ_TIMEOUT": "10",
        }  # fmt: skip

    def call(self, name, **given):
        """What a tool answers. In a thread of its own: the browser's has a loop already."""
        with ThreadPoolExecutor(1) as aside:
            return aside.submit(asyncio.run, self._call(name, given)).result()

    async def _call(self, name, given):
        async def ask(context, params):
            self.asked.append(params.message)
            return self.person

        command = StdioServerParameters(
            command=sys.executable, args=["-c", START, "mcp"], env=self.environ
        )
        more = {"elicitation_callback": ask} if self.person else {}
        async with Client(command, **more) as client:
            result = await client.call_tool(name, given)
            assert not result.is_error, result.content
            return result.structured_content

    def ids(self, **asked):
        return [unit["id"] for unit in self.call("query", **asked)["units"]]

    def kept(self):
        with open_store(self.home / ".local/share/cq/local.db") as store:
            return [unit["id"] for unit in store.all()]


@pytest.mark.slow
def test_a_day_of_two_agents_a_node_and_a_reviewer(make_node, make_app, visit, tmp_path):
    node = make_node(CQ_EMBEDDER="minilm")
    semantic = f"{node.url}/ready"
    assert eventually(lambda: json.load(urlopen(semantic))["search"] == "semantic", seconds=60)
    person = types.ElicitResult(action="accept", content={})
    first = Machine(tmp_path / "first", node.url, node.keys["carl"], person)
    second = Machine(tmp_path / "second", node.url, node.keys["cleo"], person)

    # Nothing is known. The first learns it, and its person agrees to share it.
    assert first.ids(domains=["terraform"], q=QUESTION) == []
    said = first.call("propose", **UNIT)
    assert said["outcome"] == "sent"
    assert UNIT["action"] in first.asked[0]
    id = said["unit"]["id"]
    assert second.ids(q=QUESTION) == []

    # A reviewer approves it in the page.
    rita = visit(node, "rita")
    on_top(rita.page, UNIT["summary"])
    rita.page.keyboard.press("ArrowRight")
    choice(rita.page, "Confirm: approve").click()
    finished(rita.page)

    # The second finds it by other words, and confirms it.
    assert eventually(lambda: second.ids(q=QUESTION) == [id], seconds=10)
    voted = second.call("confirm", unit_id=id)
    assert voted["unit"]["evidence"]["confirmations"] == 2

    # Nobody confirms it for long, and then it is found wrong.
    alter(
        make_app(),
        "UPDATE units SET last_confirmed = '2020-01-01T00:00:00.000000Z' WHERE id = :id",
        id=id,
    )
    second.call("flag", unit_id=id, reason="stale", detail="Not since the lock is a file.")
    rita.go("attention")
    row = rita.page.locator(".rows > li")
    expect(row.locator(".title a")).to_have_text(UNIT["summary"])
    expect(row.locator(".title .badge")).to_have_text(["disputed", "stale"])
    expect(row.locator(".flags li")).to_contain_text("Not since the lock is a file.")

    # The node dies. What is learned meanwhile is kept, and sent once when the node is back.
    rita.page.goto("about:blank")
    node.process.process.kill()
    node.process.process.wait(20)
    said = first.call("propose", **{**UNIT, "summary": "Locks are files since 1.10"})
    assert said["outcome"] == "kept"
    later = said["unit"]["id"]
    assert first.kept() == [later]
    make_node(CQ_PORT=str(urlsplit(node.url).port))
    assert eventually(lambda: first.call("status")["drain"], seconds=30)
    assert first.kept() == []
    assert first.call("status")["drain"]["pushed"] in (0, 1)
    token = node.token("rita")
    pending = node.call("GET", "/review/queue", token=token)[1]["items"]
    assert [item["knowledge_unit"]["id"] for item in pending] == [later]
