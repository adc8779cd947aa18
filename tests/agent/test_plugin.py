"""The files of Claude Code's plugin are what the prompts, the version and the command say."""

import json
import shlex
import subprocess

import click
import pytest

import cq
from cq import cli, hook, prompts
from scripts import plugin
from tests.cast import ROOT

FOLDER = ROOT / "plugins" / "cq"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_files_are_those_that_make_plugin_writes():
    there = {
        str(path.relative_to(ROOT)): path.read_bytes().decode()
        for folder in (".claude-plugin", "plugins")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }
    assert there == plugin.files(), "run: make plugin"


def test_the_marketplace_leads_to_the_plugin():
    market = read(ROOT / ".claude-plugin" / "marketplace.json")
    (entry,) = market["plugins"]
    assert market["owner"]["name"]
    assert entry["source"].startswith("./")
    manifest = read(ROOT / entry["source"] / ".claude-plugin" / "plugin.json")
    assert (market["name"], entry["name"], manifest["name"]) == ("cq", "cq", "cq")
    assert manifest["version"] == cq.VERSION
    assert manifest["mcpServers"]["cq"] == {"command": "cq", "args": ["mcp"]}


def test_skill_and_commands_are_the_prompts():
    assert (FOLDER / "skills" / "cq" / "SKILL.md").read_text(encoding="utf-8") == prompts.skill()
    assert (FOLDER / "commands" / "reflect.md").read_text(encoding="utf-8") == prompts.reflect()
    assert (FOLDER / "commands" / "status.md").read_text(encoding="utf-8") == prompts.status()


def commands():
    """{event: its only command}."""
    hooks = read(FOLDER / "hooks" / "hooks.json")["hooks"]
    return {event: group["hooks"][0]["command"] for event, (group,) in hooks.items()}


def test_each_event_runs_a_hook_that_there_is():
    found = {}
    for event, command in commands().items():
        words = shlex.split(command.removesuffix(" || true"))
        assert words[:2] == ["cq", "_hook"]
        with click.Context(cli.cq) as above:
            parsed = cli.cq.get_command(above, "_hook").make_context("_hook", words[2:])
        assert parsed.params["host"] == "claude"
        assert parsed.params["state_dir"] == "${CLAUDE_PLUGIN_DATA}/hook-state"
        found[event] = parsed.params["mode"]
    assert set(found) == {"SessionStart", "PostToolUse", "PostToolUseFailure", "Stop"}
    assert set(found.values()) == set(hook.MODES)


@pytest.mark.parametrize("code", [None, 1, 2])
def test_a_missing_or_older_cq_disturbs_no_session(tmp_path, code):
    if code:
        (tmp_path / "cq").write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / "cq").chmod(0o755)
    for command in commands().values():
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={"PATH": str(tmp_path)},
            input=b"{}",
            capture_output=True,
        )
        assert (done.returncode, done.stdout) == (0, b"")
