"""Upstream's published Python client, unchanged, against a real server of ours."""

import json
import os
import socket
import subprocess
from urllib.parse import urlsplit

import pytest

from tests.cast import ROOT, proposal
from tests.test_serve import API, send

pytestmark = pytest.mark.slow
INTERPRETER = ROOT / ".venv-sdk" / "bin" / "python"
SCRIPT = ROOT / "tests" / "sdk_script.py"
LESSON = {
    "summary": "Le cache garde l'ancienne clé — 鍵 🔑",
    "detail": "It is read once,\nat start.",
    "action": "Restart after a rotation.",
    "domains": ["secrets", "rotation"],
    "languages": ["Python"],
    "frameworks": ["flask"],
    "pattern": "cache",
}


class Client:
    """The client in a process of its own: `client("query", domains=["x"])` gives its outcome."""

    def __init__(self, interpreter, home, **environ):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        folders = {name: str(home) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
        self.process = subprocess.Popen(
            [interpreter, "-I", SCRIPT, home / "local.db"],
            cwd=home,
            env={**kept, **folders, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, name, **arguments):
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the client ended; its last words stand on stderr"
        return json.loads(line)

    def gives(self, name, **arguments):
        """What a call returns that must not raise."""
        outcome = self(name, **arguments)
        assert "result" in outcome, outcome
        return outcome["result"]

    def end(self):
        self.process.communicate(timeout=20)


@pytest.fixture
def interpreter():
    """A Python that has upstream's package."""
    if not INTERPRETER.exists():
        pytest.fail(f"{INTERPRETER} is missing: `make test` makes it, with cq-sdk in it.")
    return INTERPRETER


@pytest.fixture
def connect(tmp_path, template, interpreter):
    """Start clients that share a home: `connect(url, key="carl")`."""
    home, keys, clients = tmp_path / "home", template[1], []
    home.mkdir()

    def begin(url, key="carl", token=None):
        token = keys[key] if token is None else token
        clients.append(Client(interpreter, home, CQ_ADDR=url, CQ_API_KEY=token))
        return clients[-1]

    yield begin
    for client in clients:
        client.end()


@pytest.fixture
def review(call):
    """Decide as rita, over HTTP."""

    def decide(url, unit, verb="approve", **body):
        path = f"{API}/review/{unit['id']}/{verb}"
        answer = send(url, "POST", path, body, call.tokens["rita"])
        assert answer.status == 200, answer.body

    return decide


def pending(url, call):
    """The units in the queue."""
    answer = send(url, "GET", f"{API}/review/queue?limit=100", token=call.tokens["rita"])
    return [item["knowledge_unit"] for item in answer.json["items"]]


def words(unit):
    return {name: unit[name] for name in ("domains", "insight", "context")}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_the_client_is_the_published_one(interpreter):
    """The environment holds upstream's package, not ours of the same name."""
    found = subprocess.run(
        [interpreter, "-Ic", "import cq, importlib.metadata as m; print(m.version('cq-sdk'))"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    pinned = (ROOT / "requirements-sdk.txt").read_text().split()
    assert f"cq-sdk=={found.stdout.strip()}" in pinned, found.stderr


def test_without_a_document_the_client_finds_the_usual_place(connect, serve):
    url = serve().url
    found = connect(url).gives("discover")
    assert found["api_base_url"] == f"{url}/api/v1"
    assert found["api_version"] == "v1"


def test_the_document_leads_the_client_to_the_public_address(connect, serve, review):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    serve(CQ_PORT=str(port), CQ_PUBLIC_URL=f"{url}/", CQ_NODE_NAME="The team's")
    client = connect(url)
    found = client.gives("discover")
    assert found["api_base_url"] == f"{url}/api/v1"
    assert found["node_name"] == "The team's"
    review(url, client.gives("propose", **LESSON))
    assert len(client.gives("query", domains=["secrets"])["units"]) == 1


def test_a_proposal_is_found_once_it_is_approved(connect, serve, call, review):
    url = serve().url
    client = connect(url)
    spelt = {**LESSON, "domains": ["Secrets", " rotation"]}
    unit = client.gives("propose", **spelt, created_by="somebody else")
    assert unit["tier"] == "private"
    assert unit["created_by"] == "carl"
    assert words(unit) == words(
        {
            "domains": ["secrets", "rotation"],
            "insight": {name: LESSON[name] for name in ("summary", "detail", "action")},
            "context": {name: LESSON[name] for name in ("languages", "frameworks", "pattern")},
        }
    )
    assert [words(waiting) for waiting in pending(url, call)] == [words(unit)]
    before = client.gives("query", domains=["secrets"])
    assert (before["units"], before["warnings"]) == ([], [])
    review(url, unit)
    after = client.gives(
        "query", domains=["SECRETS"], languages=["python"], frameworks=["Flask"], pattern="cache"
    )
    assert after["warnings"] == []
    (found,) = after["units"]
    assert found["id"] == unit["id"]
    assert words(found) == words(unit)
    assert found["created_by"] == ""


def test_the_client_is_given_as_many_as_it_asks_for(connect, serve, call):
    for number in range(7):
        call.approve(f"unit {number}", ["many"])
    client = connect(serve().url)
    assert len(client.gives("query", domains=["many"])["units"]) == 5
    assert len(client.gives("query", domains=["many"], limit=7)["units"]) == 7


def test_a_rejected_proposal_is_never_found(connect, serve, review):
    url = serve().url
    client = connect(url)
    unit = client.gives("propose", **LESSON)
    review(url, unit, "reject", reason="not so")
    assert client.gives("query", domains=["secrets"])["units"] == []


def test_the_client_confirms_and_flags(connect, serve, review):
    url = serve().url
    client = connect(url, key="cleo")
    unit = client.gives("propose", **LESSON)
    review(url, unit)
    votes = {"unit_id": unit["id"], "tier": "private"}
    confirmed = client.gives("confirm", **votes)
    assert confirmed["evidence"]["confirmations"] == 2
    assert confirmed["evidence"]["confidence"] == 0.6
    assert client.gives("flag", **votes, reason="stale")["evidence"]["confidence"] == 0.45
    flagged = client.gives("flag", **votes, reason="incorrect")
    assert flagged["evidence"]["confidence"] == 0.3
    assert [flag["reason"] for flag in flagged["flags"]] == ["stale", "incorrect"]
    (found,) = client.gives("query", domains=["secrets"])["units"]
    assert found["evidence"] == flagged["evidence"]
    assert found["flags"] == flagged["flags"]


def test_the_client_reads_a_unit_that_was_flagged_as_a_duplicate(connect, serve, call):
    """Its models insist on the reference, or they drop the whole answer."""
    older, newer = call.approve("older", ["twice"]), call.approve("newer", ["twice"])
    url = serve().url
    flag = {"reason": "duplicate", "duplicate_of": older["id"], "detail": "the same"}
    path = f"{API}/knowledge/{newer['id']}/flags"
    assert send(url, "POST", path, flag, call.keys["carl"]).status == 201
    answer = connect(url).gives("query", domains=["twice"])
    assert answer["warnings"] == []
    (found,) = [unit for unit in answer["units"] if unit["id"] == newer["id"]]
    assert found["flags"][0]["duplicate_of"] == older["id"]
    assert found["flags"][0]["detail"] is None


def test_a_duplicate_flag_of_this_client_is_refused_for_want_of_a_reference(connect, serve, call):
    unit = call.approve()
    url = serve().url
    client = connect(url)
    refused = client("flag", unit_id=unit["id"], tier="private", reason="duplicate")
    assert refused.get("status", 422) == 422, refused
    assert refused["raised"] in ("RemoteError", "ValueError", "ValidationError")
    sent = {"reason": "duplicate"}
    by_hand = send(url, "POST", f"{API}/knowledge/{unit['id']}/flags", sent, call.keys["carl"])
    assert by_hand.status == 422
    (problem,) = by_hand.json["detail"]
    assert problem["loc"] == ["body", "duplicate_of"]
    history = f"{API}/review/{unit['id']}/history"
    assert send(url, "GET", history, token=call.tokens["rita"]).json["flags"] == []


def test_a_unit_that_is_not_there_is_a_clear_refusal(connect, serve, call):
    waiting = call.propose()
    client = connect(serve().url)
    for id in (f"ku_{'0' * 32}", waiting["id"]):
        refused = client("confirm", unit_id=id, tier="private")
        assert (refused["raised"], refused["status"]) == ("RemoteError", 404)
        assert "Knowledge unit not found" in refused["detail"]


def test_status_counts_what_the_node_has(connect, serve, call):
    call.approve("private one", ["a", "b"])
    call.approve("public one", ["a"], tier="public")
    call.propose("pending one", ["a"])
    status = connect(serve().url).gives("status")
    assert status["warnings"] == []
    assert status["total_count"] == 2
    assert status["tier_counts"] == {"local": 0, "private": 1, "public": 1}
    assert status["domain_counts"] == {"a": 2, "b": 1}
    assert sum(status["confidence_distribution"].values()) == 2
    assert status["confidence_distribution"]["0.5-0.7"] == 2


def test_what_was_learned_while_the_server_was_down_is_drained(connect, serve, call):
    down = serve()
    url = down.url
    client = connect(url)
    client.gives("query", domains=["secrets"])
    down.stop()
    kept = client("propose", **LESSON)
    assert kept["raised"] == "FallbackError"
    assert kept["kept"]["tier"] == "local"
    answer = client.gives("query", domains=["secrets"])
    assert [unit["id"] for unit in answer["units"]] == [kept["kept"]["id"]]
    assert answer["warnings"]
    assert client.gives("status")["tier_counts"]["local"] == 1

    assert serve(CQ_PORT=str(urlsplit(url).port)).url == url
    assert client.gives("drain") == {"pushed": 1, "warnings": []}
    assert client.gives("status")["tier_counts"]["local"] == 0
    assert [words(unit) for unit in pending(url, call)] == [words(kept["kept"])]
    assert client.gives("drain") == {"pushed": 0, "warnings": []}


@pytest.mark.parametrize("wrong", ["no key at all", "cqa.v1." + "0" * 32 + "." + "a" * 52, "cut"])
def test_a_wrong_key_keeps_the_proposal_on_the_machine(connect, serve, call, wrong):
    url = serve().url
    token = call.keys["carl"][:-1] if wrong == "cut" else wrong
    client = connect(url, token=token)
    kept = client("propose", **LESSON)
    assert kept["raised"] == "FallbackError"
    assert kept["kept"]["tier"] == "local"
    assert pending(url, call) == []
    assert client.gives("status")["tier_counts"]["local"] == 1
    client.end()
    mended = connect(url)
    assert mended.gives("drain")["pushed"] == 1
    assert [words(unit) for unit in pending(url, call)] == [words(kept["kept"])]


def test_an_overloaded_server_makes_the_client_keep_the_proposal(connect, serve, call):
    url = serve(CQ_WRITE_RATE="1/hour").url
    client = connect(url)
    client.gives("propose", **LESSON)
    kept = client("propose", **{**LESSON, "summary": "one too many"})
    assert kept["raised"] == "FallbackError"
    assert [unit["insight"]["summary"] for unit in pending(url, call)] == [LESSON["summary"]]


def test_a_client_without_a_key_reads_what_is_public(connect, serve, call):
    public = call.approve("public one", ["a"], tier="public")
    call.approve("private one", ["a"])
    answer = connect(serve().url, token="").gives("query", domains=["a"])
    assert answer["warnings"] == []
    assert [unit["id"] for unit in answer["units"]] == [public["id"]]


def test_a_refusal_of_the_words_reaches_the_caller(connect, serve, call):
    """NUL is a text to the client and not to the server; what cannot be mended is not kept."""
    url = serve().url
    client = connect(url)
    refused = client("propose", **{**LESSON, "detail": "a\x00b"})
    assert (refused["raised"], refused["status"]) == ("RemoteError", 422)
    assert "detail" in refused["detail"]
    assert client.gives("status")["tier_counts"]["local"] == 0
    assert send(url, "POST", f"{API}/knowledge", proposal(), call.keys["carl"]).status == 201
