"""The prompts hold what hosts and tests of theirs look for, and tell nothing that is not there."""

import re

import click
import pytest

from cq import cli, prompts


def test_the_skill_has_its_sections():
    text = prompts.skill()
    assert text.startswith("---\nname: cq\n")
    for part in (
        "## Core Protocol", "Before acting", "Apply guidance", "before completing the task",
        "### Querying Knowledge (`query`)", "#### When Not to Query", "#### Formulating Domain Tags",
        "#### Interpreting Results", "Confidence > 0.7", "Confidence 0.5", "Confidence < 0.5",
        "### Proposing Knowledge (`propose`)", "#### Writing Good Proposals", "#### Longevity Check",
        "#### Proposal Fields", "### Confirming", "### Flagging", "### Post-Error Behaviour",
        "### Session Reflection (`reflect`)", "### Examples", "#### Example 1", "#### Example 4",
    ):  # fmt: skip
        assert part in text, part


def test_the_commands_have_their_sections():
    reflect, status = prompts.reflect(), prompts.status()
    assert reflect.startswith("---\nname: cq:reflect\n")
    for step in ("1", "2", "2.5", "3", "4", "5", "6"):
        assert f"## Step {step}:" in reflect
    assert status.startswith("---\nname: cq:status\n")
    for part in ("# /cq:status", "### Tier Counts", "## Empty Store"):
        assert part in status


@pytest.mark.parametrize("name", ["skill", "reflect", "status"])
def test_every_command_that_a_prompt_names_is_there(name):
    root = click.Context(cli.cq)
    for command in re.findall(r"`cq ([a-z]+)", getattr(prompts, name)()):
        assert cli.cq.get_command(root, command), command
