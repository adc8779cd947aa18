"""`cq prompt`: the texts that an agent works by."""

import click

from cq import prompts
from cq.cli.shared import FORMAT, show


@click.group()
def prompt():
    """Print what an agent works by: the skill, or a command's text."""


def _printing(name, help):
    @prompt.command(name, help=help)
    @FORMAT
    def text(shape):
        body = getattr(prompts, name)()
        return show({"prompt": body}) if shape == "json" else click.echo(body, nl=False)


_printing("skill", "How to query, propose, confirm and flag; for the agent's skills folder.")
_printing("reflect", "How to look back on a session for what is worth sharing.")
_printing("status", "How to show what is known.")
