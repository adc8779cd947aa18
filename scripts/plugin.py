"""`make plugin`: the files by which Claude Code installs cq, made of the prompts and the version.

They are committed, for `claude plugin marketplace add` reads the repository itself.
"""

import json
from pathlib import Path

from cq import VERSION, prompts

ROOT = Path(__file__).resolve().parent.parent
ABOUT = "A shared knowledge commons for coding agents: query, propose, confirm, flag"
# Claude Code's events, and what `cq _hook` calls them.
EVENTS = {
    "SessionStart": "session-start",
    "PostToolUse": "post-tool-use",
    "PostToolUseFailure": "post-tool-use-failure",
    "Stop": "stop",
}


def main():
    for name, text in files().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        print(name)


def files():
    """{path within the repository: text}."""
    plugin = {"name": "cq", "source": "./plugins/cq", "description": ABOUT}
    manifest = {
        "name": "cq",
        "version": VERSION,
        "description": ABOUT,
        "license": "Apache-2.0",
        "mcpServers": {"cq": {"command": "cq", "args": ["mcp"]}},
    }
    hooks = {event: [{"hooks": [_hook(mode)]}] for event, mode in EVENTS.items()}
    return {
        ".claude-plugin/marketplace.json": _json(
            {
                "name": "cq",
                "owner": {"name": "cq"},
                "description": ABOUT,
                "plugins": [plugin],
            }
        ),
        "plugins/cq/.claude-plugin/plugin.json": _json(manifest),
        "plugins/cq/skills/cq/SKILL.md": prompts.skill(),
        "plugins/cq/commands/reflect.md": prompts.reflect(),
        "plugins/cq/commands/status.md": prompts.status(),
        "plugins/cq/hooks/hooks.json": _json(
            {"description": "Reminds of tools that failed and were not mended", "hooks": hooks}
        ),
    }


def _hook(mode):
    place = '"${CLAUDE_PLUGIN_DATA}/hook-state"'
    # Without `cq`, or with an older one, the shell ends with a code that Claude Code would tell at
    # each call of a tool, or take for an order not to stop.
    command = f"cq _hook --host claude --mode {mode} --state-dir {place} || true"
    return {"type": "command", "command": command, "timeout": 10}


def _json(value):
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
