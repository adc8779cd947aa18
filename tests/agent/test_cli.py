"""The command `cq` as people and programs run it: in a process of its own."""

import json
import os
import pty
import subprocess
import sys

import pytest

from cq.store import open_store
from tests.agent.misbehaving import Misbehaving, http, said
from tests.agent.upstream import KEY, Upstream
from tests.cast import ROOT

START = "from cq.cli import main; main()"
SAY = [
    "--summary",
    "Locks outlive a killed apply — 鍵 🔑",
    "--detail",
    "The row stays.",
    "--action",
    "Unlock it.",
    "--domain",
    "terraform",
]


@pytest.fixture
def cq(tmp_path):
    """`cq("query", ..., CQ_ADDR=...)`: the finished process, run in a home of its own."""

    def run(*arguments, input="", **variables):
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CQ_", "XDG_"))
        }
        return subprocess.run(
            [sys.executable, "-c", START, *arguments],
            env={**kept, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **variables},
            input=input,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )

    return run


@pytest.fixture
def upstream():
    served = Upstream()
    yield served
    served.stop()


def propose(cq, *more, **variables):
    done = cq("propose", *SAY, *more, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_the_version_is_a_line(cq):
    done = cq("--version")
    assert done.stdout.startswith("cq v")
    assert done.stdout.count("\n") == 1


def test_what_is_proposed_is_found_in_the_layout_of_upstream(cq):
    id = propose(cq)
    done = cq("query", "--domain", "terraform")
    assert done.stdout == f"[{id}] (50%) {SAY[1]}\n  The row stays.\n  Action: Unlock it.\n\n"
    assert done.stderr == ""
    assert "No matching knowledge units" in cq("query", "--domain", "nothing").stdout


def test_a_question_needs_no_domain(cq):
    id = propose(cq)
    assert id in cq("query", "an apply was killed").stdout


def test_programs_get_json(cq):
    id = propose(cq)
    (unit,) = json.loads(cq("query", "--domain", "terraform", "--format", "json").stdout)
    assert unit["id"] == id
    whole = json.loads(cq("query", "--domain", "terraform", "--json").stdout)
    assert (whole["source"], whole["warnings"], whole["mode"]) == ("local", [], None)
    assert (
        json.loads(cq("propose", *SAY, "--format", "json").stdout)["insight"]["summary"] == SAY[1]
    )
    assert json.loads(cq("query", "--domain", "none", "--format", "json").stdout) == []


def test_votes_and_status(cq):
    id = propose(cq)
    assert cq("confirm", id).stdout == f"Confirmed {id} (confidence: 60%)\n"
    assert (
        cq("flag", id, "--reason", "STALE").stdout == f"Flagged {id} as stale (confidence: 45%)\n"
    )
    status = cq("status").stdout
    assert status.startswith(
        "Knowledge units: 1\n\nBy tier:\n  local                1\n\nRecent:\n"
    )
    assert "  0.3-0.5    1\n" in status
    assert status.endswith("\nDomains: 1 total\n  terraform (1)\n")
    assert json.loads(cq("status", "--format", "json").stdout)["tier_counts"] == {"local": 1}


def test_a_dead_node_costs_a_warning_on_stderr(cq):
    dead = {"CQ_ADDR": "http://127.0.0.1:9"}
    done = cq("propose", *SAY, **dead)
    assert (done.returncode, done.stdout[:9]) == (0, "Proposed:")
    assert done.stderr.startswith("warning: ")
    assert "nothing listens at 127.0.0.1:9" in done.stderr
    done = cq("query", "--domain", "terraform", **dead)
    assert (done.returncode, done.stderr.count("warning: ")) == (0, 1)
    assert SAY[1] in done.stdout


def test_a_drain_tells_what_it_did(cq, upstream):
    node = {"CQ_ADDR": upstream.addr, "CQ_API_KEY": KEY}
    propose(cq)
    assert cq("drain", "--dry-run", **node).stdout == "Would push 1 unit(s)\n"
    assert json.loads(cq("drain", "--dry-run", "--format", "json", **node).stdout) == {
        "dry_run": True,
        "pending": 1,
    }
    assert cq("drain", **node).stdout == "Pushed 1 unit(s)\n"
    assert len(upstream.units) == 1
    assert "Last drain" in cq("status", **node).stdout
    done = cq("drain")
    assert done.returncode == 1
    assert "CQ_ADDR" in done.stderr
    assert "--addr" in done.stderr


def test_options_of_the_connection_stand_before_or_after_the_command(cq, upstream):
    for arguments in (["--addr", upstream.addr, "status"], ["status", "--addr", upstream.addr]):
        assert cq(*arguments).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["query"], "--domain"),
        (["query", "--domain", "x", "stray", "more"], "unexpected"),
        (["nothing"], "No such command"),
        (["prompt", "nothing"], "No such command"),
        (["flag", "ku_x", "--reason", "bad"], "'duplicate', 'incorrect', 'stale'"),
        (["flag", "ku_x", "--reason", "duplicate"], "--duplicate-of"),
        (["query", "--domain", "x", "--format", "xml"], "--format"),
        (["query", "--domain", "x", "--timeout", "0"], "--timeout"),
        (["query", "--domain", "x", "--timeout", "soon"], "--timeout"),
        (["propose", "--summary", "x"], "--detail"),
    ],
)
def test_a_misuse_is_told_and_ends_with_2(cq, arguments, told):
    done = cq(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_wrong_variable_is_told(cq):
    done = cq("query", "--domain", "x", CQ_TIMEOUT="30s")
    assert done.returncode == 2
    assert "whole seconds" in done.stderr


def test_a_refusal_ends_with_1_and_says_each_reason(cq):
    done = cq(
        "propose", "--summary", "x" * 501, "--detail", "d", "--action", "a", "--domain", "t" * 65
    )
    assert done.returncode == 1
    assert "summary must be at most 500 characters, got 501" in done.stderr
    assert "at most 64 characters, got 65" in done.stderr
    done = cq("confirm", "ku_" + "0" * 32)
    assert done.returncode == 1
    assert "not on this machine, and no node" in done.stderr
    done = cq("propose", *SAY[:3], "Set AKIA" + "QYLPMN5HHHFPZAM2", *SAY[4:])
    assert done.returncode == 1
    assert "AWS" in done.stderr
    assert "QYLPMN5HHHFPZAM2" not in done.stderr


def test_held_candidates_are_reviewed(cq):
    done = cq("propose", *SAY, "--hold")
    id = done.stdout.split()[-1]
    assert id in cq("held").stdout
    assert "Nothing is held" not in cq("held", "list").stdout
    edited = cq("held", "review", input="e\nA better summary\n\n\np\n")
    assert "Proposed: " in edited.stdout
    assert "A better summary" in cq("query", "--domain", "terraform").stdout
    other = cq("propose", *SAY, "--hold").stdout.split()[-1]
    assert cq("held", "drop", other).stdout == f"Dropped {other}\n"
    assert cq("held").stdout == "Nothing is held.\n"
    assert cq("held", "drop", other).returncode == 1


def test_text_that_steers_a_terminal_is_shown_as_escapes(cq, tmp_path):
    id = propose(cq)
    with open_store(str(tmp_path / ".local/share/cq/local.db")) as store:
        evil = "red\x1b[31m \u202eeman"
        store.change(
            id,
            lambda unit: {**unit, "insight": {**unit["insight"], "summary": evil, "detail": evil}},
        )
    shown = cq("query", "--domain", "terraform").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\u001b" in shown


def test_a_terminal_of_another_encoding_costs_no_answer(cq):
    propose(cq)
    done = cq("query", "--domain", "terraform", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "\\u9375" in done.stdout


def test_colour_is_for_terminals_only(cq, tmp_path):
    propose(cq)
    ours, theirs = pty.openpty()
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "TERM": "xterm",
    }
    command = [sys.executable, "-c", START, "query", "--domain", "terraform"]
    subprocess.run(command, env=environ, stdout=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "\x1b[1m" in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(cq, shell):
    done = cq("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_CQ_COMPLETE" in done.stdout


@pytest.mark.parametrize("name", ["skill", "reflect", "status"])
def test_prompts_are_printed_as_they_are(cq, name):
    text = (ROOT / "cq" / "prompts" / f"{'SKILL' if name == 'skill' else name}.md").read_text()
    assert cq("prompt", name).stdout == text
    assert json.loads(cq("prompt", name, "--format", "json").stdout) == {"prompt": text}
    assert "cq prompt skill" in cq("prompt", "skill", "--help").stdout


def test_help_names_every_command(cq):
    done = cq("--help")
    for name in (
        "query",
        "propose",
        "confirm",
        "flag",
        "status",
        "drain",
        "held",
        "prompt",
        "doctor",
        "completion",
    ):
        assert f"\n  {name} " in done.stdout


# Doctor


def test_a_sound_machine_passes(cq, upstream):
    done = cq("doctor", CQ_ADDR=upstream.addr, CQ_API_KEY=KEY)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("ok ") == 3
    assert "FAULT" not in done.stdout


def broken_store(home, _):
    (home / "x.db").write_bytes(b"no database, though long enough to be taken for one" * 100)
    return {"CQ_LOCAL_DB_PATH": str(home / "x.db")}


def folder_as_store(home, _):
    (home / "x.db").mkdir()
    return {"CQ_LOCAL_DB_PATH": str(home / "x.db")}


def file_as_folder(home, _):
    (home / "x").write_text("")
    return {"CQ_LOCAL_DB_PATH": str(home / "x" / "y.db")}


def bad_row(home, _):
    path = home / "x.db"
    with open_store(str(path)) as store, store._writing() as connection:
        connection.execute("INSERT INTO knowledge_units VALUES ('ku_bad', 'no json')")
    return {"CQ_LOCAL_DB_PATH": str(path)}


SET_UPS = {
    "a file that is no database": (broken_store, "Move the file away"),
    "a folder in the store's place": (folder_as_store, "CQ_LOCAL_DB_PATH"),
    "a file where a folder should be": (file_as_folder, "CQ_LOCAL_DB_PATH"),
    "a row that cannot be read": (bad_row, "ku_bad"),
    "a URL of another database": (lambda *_: {"CQ_LOCAL_DATABASE_URL": "mysql://u:secret@h/d"}, "mysql"),
    "a time-out that is none": (lambda *_: {"CQ_TIMEOUT": "30s"}, "CQ_TIMEOUT"),
    "an address without a scheme": (lambda *_: {"CQ_ADDR": "localhost:3000"}, "http://localhost:3000"),
    "a node that is not there": (lambda *_: {"CQ_ADDR": "http://127.0.0.1:9"}, "Is the node running"),
    "no key": (lambda _, node: {"CQ_ADDR": node.addr}, "API keys"),
    "a key that is not known": (lambda _, node: {"CQ_ADDR": node.addr, "CQ_API_KEY": "cqa.v1.x.y"}, "make a new one"),
}  # fmt: skip


@pytest.mark.parametrize("name", SET_UPS)
def test_doctor_names_the_fault_and_the_remedy(cq, upstream, tmp_path, name):
    make, told = SET_UPS[name]
    done = cq("doctor", **make(tmp_path, upstream))
    assert done.returncode == 1, done.stdout
    assert told in done.stdout
    assert "FAULT" in done.stdout
    assert "secret" not in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("probe", "told"),
    [
        (http(200, b"<html>", "text/html"), "web page"),
        (said(500, "broken"), "look at its log"),
        (
            http(200, b'{"version": 2, "api_base_url": "http://127.0.0.1/", "api_version": "v1"}'),
            "upgrade",
        ),
    ],
)
def test_doctor_knows_what_is_no_node(cq, probe, told):
    node = Misbehaving(http(500), probe=probe)
    try:
        done = cq("doctor", CQ_ADDR=node.addr, CQ_API_KEY=KEY)
    finally:
        node.stop()
    assert done.returncode == 1
    assert told in done.stdout


def test_doctor_tells_which_hosts_hold_cq_and_whether_it_is_as_written(cq, tmp_path):
    here = {"CQ_INSTALL_BINARY": "/opt/cq/bin/cq"}
    assert "no coding agent holds cq" in cq("doctor", **here).stdout
    cq("install", "--target", "cursor,claude", **here)
    done = cq("doctor", **here)
    assert "hosts: claude, cursor" in done.stdout
    # Another cq than the one that the hosts start.
    done = cq("doctor", CQ_INSTALL_BINARY="/usr/local/bin/cq")
    assert "cq install --target cursor" in done.stdout
    assert str(tmp_path / ".cursor" / "mcp.json") in done.stdout
    (tmp_path / ".cursor" / "mcp.json").write_text("{")
    assert "mcp.json" in cq("doctor", **here).stdout
    cq("install", "--target", "gemini", "--remote", "http://cq.example", **here)
    assert "hosts: claude, gemini" in cq("doctor", CQ_ADDR="http://cq.example", **here).stdout
