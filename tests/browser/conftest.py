"""A real Chromium on a real server over the cast's database."""

import json
import re
import shutil
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.cast import PASSWORD, proposal

FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync""".split()
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def chromium():
    """One browser for a worker; each page gets a fresh profile of its own."""
    path = shutil.which("chromium")
    assert path, "the tests of the page need Chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Node:
    """A running server, and how agents and programs reach it beside the browser."""

    def __init__(self, process, keys):
        self.process, self.url, self.keys = process, process.url, keys

    def call(self, method, path, body=None, key=None, token=None, **query):
        """(status, JSON) of a call below /api/v1."""
        url = f"{self.url}/api/v1{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        headers = {"Content-Type": "application/json"}
        if key or token:
            headers["Authorization"] = f"Bearer {token or self.keys[key]}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(url, data, headers, method=method), timeout=30) as answer:
                return answer.status, json.load(answer)
        except HTTPError as refused:
            return refused.code, json.load(refused)

    def propose(self, summary="Backend lock outlives a killed apply", key="carl", **more):
        status, unit = self.call("POST", "/knowledge", proposal(summary, **more), key=key)
        assert status == 201, unit
        return unit

    def token(self, name):
        """A bearer token, as a program of this person has it."""
        body = {"username": name, "password": PASSWORD}
        return self.call("POST", "/auth/login", body)[1]["token"]

    def decide(self, unit, verb="approve", by="rita", **more):
        path = f"/review/{unit['id']}/{verb}"
        status, answer = self.call("POST", path, more, token=self.token(by))
        assert status == 200, answer
        return answer

    def finds(self, key="carl", **query):
        """The ids that an agent's query finds."""
        status, answer = self.call("GET", "/knowledge", key=key, **query)
        assert status == 200, answer
        return [unit["id"] for unit in answer["data"]]


@pytest.fixture
def node(serve, template):
    return Node(serve(), template[1])


@pytest.fixture
def make_node(serve, template):
    """Servers with other variables: `make_node(CQ_SELF_REVIEW="0")`."""
    return lambda **more: Node(serve(**more), template[1])


class Visit:
    """A person's browser: `page` is Playwright's, `go("units")` an address of ours."""

    def __init__(self, context, url):
        self.context, self.url = context, url
        self.page = context.new_page()
        self.page.set_default_timeout(10_000)
        self.faults = []
        self.expected = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.text} {message.location.get('url', '')}")

    def expect_refusal(self, *statuses):
        """Chromium itself writes these statuses to the console; others and errors are faults."""
        self.expected += [f"status of {status}" for status in statuses]

    def expect_no_server(self):
        self.expected += ["net::ERR_CONNECTION_REFUSED", "net::ERR_INTERNET_DISCONNECTED"]

    def unexpected(self):
        return [
            fault for fault in self.faults if not any(known in fault for known in self.expected)
        ]

    def go(self, address=""):
        self.page.goto(f"{self.url}/#/{address}")
        return self.page

    def sign_in(self, name, password=PASSWORD):
        """Fill in the form that is shown."""
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password", exact=True).fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("button", name=re.compile(f"^{name}"))).to_be_visible()
        return self.page


@pytest.fixture
def visit(chromium):
    """`visit(node, "rita")` gives a `Visit` that is signed in; nobody without a name.

    At the end, no console error and no page error that was not expected may have come.
    """
    visits = []

    def start(node, name=None, address="", viewport=DESK, **context):
        made = Visit(chromium.new_context(viewport=viewport, **context), node.url)
        visits.append(made)
        made.go(address)
        if name:
            made.sign_in(name)
        return made

    yield start
    for made in visits:
        made.context.close()
    assert [fault for made in visits for fault in made.unexpected()] == []
