"""The texts that an agent works by: the skill, and the commands to reflect and to look."""

from pathlib import Path


def skill():
    """How to query, propose, confirm and flag; with the front matter of a skill."""
    return _text("SKILL.md")


def reflect():
    """How to look back on a session for what is worth sharing."""
    return _text("reflect.md")


def status():
    """How to show what is known."""
    return _text("status.md")


def _text(name):
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
