"""What cq tells an agent, in the form that each host reads; and hashes of what upstream told."""

import json
import re

from cq import prompts

SENTENCE = (
    "Before any coding task, open the skill named `cq` and work by its section **Core Protocol**."
)
# SHA-256 of upstream's texts: files and blocks that are one of these are upgraded as if ours.
COPILOT_KNOWN = ("62b487b768ffb4e7464852ae44409198c01b0ead6a258414d58a41335627689a",)
CURSOR_KNOWN = ("e2dab87531bcf8c0042de13a82a7bc80bd44c8577e7ee5069d1b05d3b726e036",)
BLOCK_KNOWN = ("b4f55b236f77366972c14b9c02fd7b2c1909323b604c1e8bee04b8a930001668",)
# What a program answers in: commands with `--format json`, and those in plain words.
_STRUCTURED, _PLAIN = ("query", "propose", "status"), ("confirm", "flag")


def skill():
    return {"cq/SKILL.md": prompts.skill()}


def commands(folder=""):
    """Claude Code's, as they are written."""
    return {f"{folder}reflect.md": prompts.reflect(), f"{folder}status.md": prompts.status()}


def opencode_commands():
    return {name: _front(text, "agent: build") for name, text in commands().items()}


def pi_prompts():
    return {f"cq-{name}": _front(text).replace("/cq:", "/cq-") for name, text in commands().items()}


def gemini_commands():
    """TOML with what the front matter describes and the text below it."""
    found = {}
    for name, text in commands().items():
        said = re.search(r"^description: (.*)$", text, re.M)
        head, _, body = text.removeprefix("---\n").partition("\n---\n")
        prompt = f"'''\n{body.lstrip()}'''" if "'''" not in body else _string(body)
        found[f"cq/{name.removesuffix('.md')}.toml"] = (
            f"description = {_string(said[1] if said and said[0] in head else 'cq')}\n"
            f"prompt = {prompt}\n"
        )
    return found


def _string(text):
    return json.dumps(text, ensure_ascii=False)


def _front(text, *added):
    """Without the name in its front matter, and with lines added at the front matter's end."""
    lines = text.splitlines(keepends=True)
    marks = [nth for nth, line in enumerate(lines) if line.rstrip("\r\n") == "---"]
    if len(marks) < 2 or marks[0]:
        return text
    head = [line for line in lines[: marks[1]] if not line.startswith("name:")]
    return "".join([*head, *(f"{line}\n" for line in added), *lines[marks[1] :]])


def copilot_line():
    return f"{SENTENCE}\n"


def copilot_project():
    return f'---\napplyTo: "**"\n---\n\n{SENTENCE}\n'


def cursor_rule():
    return (
        "---\ndescription: Shared knowledge of coding agents\nalwaysApply: true\n---\n\n"
        f"{SENTENCE}\n"
    )


def block():
    return f"## CQ\n\n{SENTENCE}"


def pi_block(program, usages):
    """For a host without MCP: the same, and how to do each thing by the command.

    `usages` is {command: (its arguments, its options as text)}.
    """
    parts = [
        f"{block()}\n",
        "There is no cq MCP server here. The skill and the commands speak of MCP tools; do each "
        f"of them with the program `{program}`. {_listed(_STRUCTURED)} take `--format json`; "
        f"{_listed(_PLAIN)} answer in plain text.\n",
    ]
    for name, (arguments, options) in usages.items():
        parts.append(f"### {' '.join(filter(None, (program, name, arguments)))}\n")
        if options:
            parts.append(f"```text\n{options.rstrip()}\n```\n")
    return "\n".join(parts)


def _listed(names):
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}"
