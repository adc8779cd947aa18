"""`cq _hook` as hosts run it: a process for each event, JSON on stdin, JSON on stdout."""

import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cq import hook
from tests.agent.safety_cases import TRUE
from tests.cast import ROOT

START = "from cq.cli import main; main()"
FAILURE, SUCCESS, STOP, BEGIN = "post-tool-use-failure", "post-tool-use", "stop", "session-start"
# Names in the payload of each host, and where it takes an answer.
HOSTS = {
    "cursor": ("conversation_id", "error_message", "followup_message"),
    "claude": ("session_id", "error", "systemMessage"),
}
MIB = 1 << 20


class Agent:
    """A host that runs hooks in one state folder."""

    def __init__(self, home, host):
        self.folder, self.host = home / "state", host
        self.id, self.error, self.answer = HOSTS[host]
        self.environ = {"PYTHONPATH": str(ROOT), "HOME": str(home), "PATH": os.environ["PATH"]}

    def start(self, mode, folder=None, start=START, environ=(), **more):
        """The running process of a hook."""
        flags = ["_hook", "--host", self.host, "--mode", mode, "--state-dir", folder or self.folder]
        return subprocess.Popen(
            [sys.executable, "-c", start, *flags],
            env={**self.environ, **dict(environ)},
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | more,
        )

    def run(self, mode, payload, **more):
        """(what it printed as JSON, its stderr); a hook never fails."""
        given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        with self.start(mode, **more) as process:
            out, err = process.communicate(given, timeout=60)
        assert process.returncode == 0, err
        return json.loads(out), err.decode()

    def hear(self, mode, payload, **more):
        """The same of a hook that has nothing to complain of."""
        answer, err = self.run(mode, payload, **more)
        assert err == ""
        return answer

    def failure(self, error="boom", id="c1", tool="Bash", input=None, **more):
        asked = {"command": "npm test"} if input is None else input
        return {self.id: id, "tool_name": tool, "tool_input": asked, self.error: error, **more}

    def fail(self, *given, **named):
        assert self.hear(FAILURE, self.failure(*given, **named)) == {}

    def stop(self, id="c1", **more):
        """What the host is told, or nothing."""
        answer = self.hear(STOP, {self.id: id, **more})
        assert set(answer) <= {self.answer}
        return answer.get(self.answer, "")

    def records(self):
        files = sorted(self.folder.iterdir()) if self.folder.exists() else []
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@pytest.fixture(params=HOSTS)
def agent(tmp_path, request):
    return Agent(tmp_path, request.param)


@pytest.fixture
def claude(tmp_path):
    return Agent(tmp_path, "claude")


@pytest.fixture
def cursor(tmp_path):
    return Agent(tmp_path, "cursor")


def test_a_failure_is_told_once_when_the_agent_stops(agent):
    agent.fail("exit code 1")
    told = agent.stop()
    assert "- Bash: exit code 1\n  input: npm test\n" in told
    assert agent.stop() == ""
    assert agent.records() == []


def test_an_agent_without_failures_stops_without_a_word(agent):
    assert agent.stop() == ""
    assert agent.hear(SUCCESS, {agent.id: "c1", "tool_name": "Bash"}) == {}
    assert agent.hear(BEGIN, {agent.id: "c1"}) == {}
    assert not agent.folder.exists()


def test_a_mended_failure_is_not_told(agent):
    agent.fail("exit code 1")
    agent.fail("no such file", tool="Read", input={"file_path": "/x"})
    assert agent.hear(SUCCESS, {agent.id: "c1", "tool_name": "Bash", "tool_input": {}}) == {}
    told = agent.stop()
    assert "- Read: no such file\n  input: /x\n" in told
    assert "Bash" not in told


def test_the_success_of_another_conversation_mends_nothing(agent):
    agent.fail()
    agent.hear(SUCCESS, {agent.id: "c2", "tool_name": "Bash"})
    assert agent.stop("c2") == ""
    assert "boom" in agent.stop()


def test_the_last_five_failures_are_kept_in_their_order(agent):
    for n in range(7):
        agent.fail(f"fault {n}")
    assert len(agent.records()) == 5
    assert re.findall(r"fault \d", agent.stop()) == [f"fault {n}" for n in range(2, 7)]


def test_what_a_person_broke_off_is_no_failure(agent):
    agent.fail(is_interrupt=True)
    agent.fail(error="", tool="")
    assert agent.records() == []


def test_cursor_is_not_made_to_go_on_twice_nor_after_a_person_stopped_it(cursor):
    cursor.fail()
    assert cursor.stop(status="aborted", loop_count=0) == ""
    assert cursor.stop(status="error", loop_count=0) == ""
    assert cursor.stop(status="completed", loop_count=1) == ""
    assert "boom" in cursor.stop(status="completed", loop_count=0)


def test_claude_is_told_and_never_held_back(claude):
    claude.fail()
    event = {"session_id": "c1", "hook_event_name": "Stop", "stop_hook_active": False}
    answer = claude.hear(STOP, event)
    assert list(answer) == ["systemMessage"]
    assert "/cq:reflect" in answer["systemMessage"]


@pytest.mark.parametrize(
    ("tool", "input", "text"),
    [
        ("Shell", {"command": "ls"}, "ls"),
        ("Bash", {"command": "ls", "timeout": 5}, "ls"),
        ("Edit", {"file_path": "/a", "old_string": "x"}, "/a"),
        ("Read", {"file_path": "/a"}, "/a"),
        ("Write", {"path": "/a", "content": "x"}, "/a: x"),
        ("Write", {"file_path": "/a", "content": "x"}, "/a: x"),
        ("Grep", {"pattern": "é"}, 'Grep({"pattern": "é"})'),
        ("Bash", {"command": ["ls"]}, ""),
        ("Bash", ["ls"], ""),
    ],
)
def test_the_input_is_told_by_what_matters_of_it(cursor, tool, input, text):
    cursor.fail(tool=tool, input=input)
    assert cursor.records() == [{"tool_name": tool, "input": text, "error": "boom"}]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b" ",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"\0",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 10_000,
        b'{"session_id": "c1", "conversation_id": "c1", "tool_name": "Bash", "error": "\xff"}',
        b'{"session_id": "c1", "conversation_id": "c1", "tool_name": {}, "error": [], "tool_input": 5}',
        b'{"session_id": 5, "conversation_id": ["x"], "tool_name": "Bash", "error": "e"}',
        b'{"session_id": "", "conversation_id": "", "tool_name": "Bash", "error": "e"}',
        b'{"session_id": null, "tool_name": "Bash", "error": "e", "error_message": "e"}',
    ],
    ids=range(17),
)
def test_a_malformed_payload_is_ignored(agent, payload):
    for mode in (BEGIN, FAILURE, SUCCESS, STOP):
        assert agent.hear(mode, payload) == {}
    assert agent.records() == []


def test_a_failure_survives_malformed_payloads(agent):
    agent.fail()
    for mode in (BEGIN, FAILURE, SUCCESS, STOP):
        agent.hear(mode, b'{"session_id"')
        agent.hear(mode, {"tool_name": "Bash"})
    assert "boom" in agent.stop()


def test_a_payload_of_more_than_a_mebibyte_is_ignored_and_read_to_its_end(claude):
    claude.fail("before")
    long = claude.failure("huge", tool="Write", input={"content": ""})
    fill = MIB - len(json.dumps(long))
    long["tool_input"]["content"] = "x" * (fill + 1)
    assert len(json.dumps(long)) == MIB + 1
    claude.hear(FAILURE, long)
    assert [each["error"] for each in claude.records()] == ["before"]
    long["tool_input"]["content"] = "x" * fill
    claude.hear(FAILURE, long)
    assert [each["error"] for each in claude.records()] == ["before", "huge"]
    assert "before" in claude.stop()


def test_the_memory_for_a_huge_payload_is_bounded(claude):
    limit = 256 * MIB
    start = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); {START}"
    with claude.start(FAILURE, start=start) as process:
        process.stdin.write(b'{"session_id": "c1", "error": "')
        for _ in range(300):
            process.stdin.write(b"x" * MIB)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out), err) == (0, {}, b"")


def words(text):
    """A secret's own signs, with what stands around it."""
    return [text, *(word for word in text.split() if len(word) > 12)]


def holds(agent, text):
    """Whether a part of a text is in the state folder or in what the host is told."""
    kept = [value for record in agent.records() for value in record.values()]
    names = os.listdir(agent.folder)
    said = [*kept, *names, agent.stop()]
    return any(word in value for word in words(text) for value in said)


@pytest.mark.parametrize("text", TRUE["secret"])
def test_no_secret_is_written_or_told(claude, text):
    claude.fail(f"it said {text} and ended", tool="Write", input={"path": "/x", "content": text})
    deep = {"deep": [{"body": json.dumps({"more": text})}, text]}
    claude.fail(text, tool=f"mcp {text}", input=deep)
    assert len(claude.records()) == 2
    assert not holds(claude, text)


@pytest.mark.parametrize("place", [0, 150, 199, 8190, 16380])
def test_no_beginning_of_a_secret_is_kept_where_a_text_is_cut(claude, place):
    token = "ghp_" + hashlib.sha256(b"x").hexdigest()[:36]
    for filler in ("a ", "a \x1b[31m\x1b[0m", "\u200b\u200b\u200b", "é "):
        claude.fail((filler * 16384)[: place // len(filler) * len(filler)] + token + " b" * 9000)
    assert all("ghp_" not in each["error"] for each in claude.records())


def test_a_long_token_is_found_whole(claude):
    part = hashlib.sha512(b"x").hexdigest()
    claude.fail(f"{'.' * 190} eyJ{part * 15}.eyJ{part * 31}.{part}")
    assert "eyJ" not in claude.records()[0]["error"]


def test_a_secret_is_found_behind_escapes_and_hidden_signs(claude):
    value = "Zk3vQ9mTr7" + "LpX2wN8sBdHy5c"
    claude.fail(input={"command": f'curl -d "{{\\"password\\": \\"{value}\\"}}" https://x.test'})
    claude.fail(f"ghp_{value[:12]}\u200b{value[12:]}\x1b[0m{value[:12]}")
    assert value[:12] not in json.dumps(claude.records())


def test_the_rest_says_why_a_text_is_left_out(claude):
    claude.fail(f"login failed for ghp_{hashlib.sha256(b'z').hexdigest()[:36]}")
    assert "- Bash: (left out: it holds a GitHub token)\n  input: npm test\n" in claude.stop()


@pytest.mark.parametrize("text", TRUE["directive"])
def test_an_error_does_not_become_an_order_of_the_user(cursor, text):
    cursor.fail(text, input={"command": text})
    assert text not in cursor.stop()


@pytest.mark.parametrize("text", TRUE["hidden"])
def test_hidden_signs_are_dropped_and_the_words_stay(cursor, text):
    cursor.fail(f"before {text} after")
    told = cursor.stop()
    assert "before" in told
    assert "after" in told
    assert text not in told
    assert all(char == "\n" or char.isprintable() for char in told)


def test_long_texts_are_cut_between_characters(agent):
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    exact, long = "é" * 199 + "🔑", "é" * 199 + "🔑🔑"
    for text in (exact, long):
        given = json.dumps(agent.failure(text, input={"command": text}), ensure_ascii=False)
        agent.hear(FAILURE, given.encode(), environ=plain)
    whole, cut = agent.records()
    assert (whole["error"], whole["input"]) == (exact, exact)
    assert (cut["error"], cut["input"]) == (f"{exact}…", f"{exact}…")
    told = agent.hear(STOP, {agent.id: "c1"}, environ=plain)[agent.answer]
    assert f"{exact}…" in told


def test_half_characters_break_nothing(agent):
    agent.fail("a \ud800 b", id="\ud800", tool="T\udfff", input={"\udc00": "\udc01"})
    assert agent.stop("\ud801") == ""
    assert "a  b" in json.dumps(agent.records())
    assert "- T: a b" in agent.stop("\ud800")


def test_no_two_conversations_share_a_file(agent):
    ids = [
        "a", "a/b", "a_b", "a b", "a.b", "A_b", "a\\b", "../a", "..", ".", "~", "///", "***", "con", "a\0b",
        "é", "e\u0301", "\ud800", "\udfff", "x" * 64, "x" * 65, "x" * 100_000, "x" * 100_001,
        "~" + hashlib.sha256(b"a/b").hexdigest(), hashlib.sha256(b"a/b").hexdigest(),
    ]  # fmt: skip
    for n, id in enumerate(ids):
        agent.fail(f"fault {n}.", id=id)
    # There are file systems that take capitals for small letters.
    assert len({name.lower().partition(".")[0] for name in os.listdir(agent.folder)}) == len(ids)
    assert {path.parent for path in agent.folder.parent.rglob("*failure.json")} == {agent.folder}
    for n, id in enumerate(ids):
        assert re.findall(r"fault \d+\.", agent.stop(id)) == [f"fault {n}."]


def test_hooks_at_once_lose_no_failure_and_tell_none_twice(agent):
    running = [agent.start(FAILURE) for _ in range(5)]
    for n, process in enumerate(running):
        process.stdin.write(json.dumps(agent.failure(f"fault {n}")).encode())
    for process in running:
        process.stdin.close()
    for process in running:
        with process:
            assert process.wait(timeout=60) == 0
    assert {each["error"] for each in agent.records()} == {f"fault {n}" for n in range(5)}
    running = [agent.start(STOP) for _ in range(4)]
    for process in running:
        process.stdin.write(json.dumps({agent.id: "c1"}).encode())
    for process in running:
        process.stdin.close()
    told = ""
    for process in running:
        with process:
            told += process.stdout.read().decode()
            assert process.stderr.read() == b""
    assert sorted(re.findall(r"fault \d", told)) == [f"fault {n}" for n in range(5)]


def test_of_two_stops_one_tells_a_failure(claude):
    stop = json.dumps({"session_id": "c1"}).encode()
    failure = json.dumps(claude.failure()).encode()
    both = threading.Barrier(2)

    def end(_):
        both.wait(timeout=60)
        return hook.handle("claude", STOP, claude.folder, io.BytesIO(stop))

    with ThreadPoolExecutor(2) as threads:
        for _ in range(300):
            hook.handle("claude", FAILURE, claude.folder, io.BytesIO(failure))
            assert sorted(map(len, threads.map(end, range(2)))) == [0, 1]


@pytest.mark.parametrize(
    "spoilt", [b"", b"{", b"[]", b"5", b"\xff", b"[" * 100_000, b'{"tool_name": 1}', b'{"error": "e"}']
)  # fmt: skip
def test_a_spoilt_record_is_dropped_and_the_others_are_told(agent, spoilt):
    agent.fail("first")
    (file,) = agent.folder.iterdir()
    agent.fail("second", tool="Read")
    file.write_bytes(spoilt)
    told = agent.stop()
    assert "second" in told
    assert "first" not in told
    assert agent.records() == []


def test_what_is_kept_is_for_its_owner_alone(agent):
    agent.hear(FAILURE, agent.failure(), umask=0)
    (file,) = agent.folder.iterdir()
    assert stat.S_IMODE(agent.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_session_begins_by_sweeping_what_is_a_day_old(agent):
    agent.fail("old")
    (old,) = agent.folder.iterdir()
    agent.fail("new")
    (new,) = set(agent.folder.iterdir()) - {old}
    other, below = agent.folder / "notes.json", agent.folder / "x-failure.json"
    draft = agent.folder / f".{old.name}"
    other.touch()
    draft.touch()
    below.mkdir()
    for path in (old, other, draft, below):
        os.utime(path, (time.time() - 86_500,) * 2)
    os.utime(new, (time.time() - 86_300,) * 2)
    agent.hear(BEGIN, {agent.id: "c2"})
    assert set(agent.folder.iterdir()) == {new, other, below}


@pytest.mark.parametrize("place", ["/proc/self", "{file}/state", "{file}", "{file}-{long}/state"])
def test_a_state_folder_that_cannot_be_written_is_a_line_on_stderr(agent, tmp_path, place):
    file = tmp_path / "file"
    file.touch()
    folder = place.format(file=file, long="x" * 300)
    answer, err = agent.run(FAILURE, agent.failure(), folder=folder)
    assert answer == {}
    assert re.fullmatch(r"cq: hook internal error: .+\n", err)
    assert "boom" not in err


def test_a_host_that_no_longer_listens_makes_no_failure(claude):
    claude.fail()
    for stream in ("stdout", "stderr"):
        reading, writing = os.pipe()
        os.close(reading)
        folder = "/proc/self" if stream == "stderr" else None
        mode = FAILURE if stream == "stderr" else STOP
        with claude.start(mode, folder=folder, **{stream: writing}) as process:
            os.close(writing)
            process.communicate(json.dumps(claude.failure()).encode(), timeout=60)
        assert process.returncode == 0


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--host", "emacs", "--mode", "stop", "--state-dir", "x"],
        ["--host", "claude", "--mode", "start", "--state-dir", "x"],
        ["--host", "claude", "--mode", "stop"],
        ["--host", "claude", "--mode", "stop", "--state-dir", " "],
        ["--host", "claude", "--mode", "stop", "--state-dir", "x", "more"],
    ],
)
def test_wrong_flags_are_misuse(claude, flags):
    command = [sys.executable, "-c", START, "_hook", *flags]
    done = subprocess.run(command, env=claude.environ, input=b"{}", capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: " in done.stderr


def test_host_and_mode_are_taken_however_they_are_written(tmp_path):
    agent = Agent(tmp_path, "cursor")
    agent.host = " Cursor "
    assert agent.hear(" Stop\n", {}) == {}


def test_people_do_not_see_the_command(claude):
    command = [sys.executable, "-c", START, "--help"]
    shown = subprocess.run(command, env=claude.environ, capture_output=True, check=True).stdout
    assert b"doctor" in shown
    assert b"hook" not in shown


def test_a_hook_loads_little(claude):
    code = (
        "import sys; from cq.cli import cq; cq(sys.argv[1:], standalone_mode=False); "
        "print(*sys.modules, file=sys.stderr)"
    )
    _, loaded = claude.run(FAILURE, claude.failure(), start=code)
    assert "cq.hook" in loaded.split()
    assert not set(loaded.split()) & {
        "marshmallow",
        "cq.client",
        "cq.store",
        "cq.wire",
        "sqlite3",
        "http.client",
    }
