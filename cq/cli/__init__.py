"""The command `cq`: what each command is called and where it stands; imported at its first use."""

import importlib
import sys

import click

from cq.failures import CqError

PLACES = {
    "query": "cq.cli.units",
    "propose": "cq.cli.units",
    "confirm": "cq.cli.units",
    "flag": "cq.cli.units",
    "status": "cq.cli.state",
    "drain": "cq.cli.state",
    "held": "cq.cli.held",
    "prompt": "cq.cli.prompt",
    "auth": "cq.cli.auth",
    "install": "cq.cli.install",
    "doctor": "cq.cli.doctor",
    "completion": "cq.cli.completion",
    "mcp": "cq.cli.mcp",
    "_hook": "cq.cli.hook",
}


class Commands(click.Group):
    """Commands that are imported when they are called: most of them need little of the whole."""

    def list_commands(self, ctx):
        return list(PLACES)

    def get_command(self, ctx, name):
        place = PLACES.get(name)
        return getattr(importlib.import_module(place), name) if place else None

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except CqError as failure:
            raise click.ClickException(str(failure)) from failure


def _version(ctx, _, asked):
    if asked:
        from cq import VERSION

        click.echo(f"cq v{VERSION}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@click.option("--addr", help="Address of the node; CQ_ADDR. Without one, this machine only.")
@click.option("--api-key", help="Key of an agent; CQ_API_KEY.")
@click.option("--db-path", help="File or URL of the local store; CQ_LOCAL_DB_PATH.")
@click.option(
    "--timeout",
    help="For an exchange with the node, such as 30s, 1m30s, 500ms; CQ_TIMEOUT in whole seconds. "
    "30s if neither is set.",
)
@click.option("--refresh", is_flag=True, help="Ask the node anew where its API lives.")
@click.pass_context
def cq(ctx, **given):
    """A shared knowledge commons for coding agents: ask before you act, propose what you learned,
    confirm what proved right, flag what did not.
    """
    ctx.obj = given


def main():
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # A host may give none; a terminal shows what its encoding lacks as escapes.
        if stream:
            stream.reconfigure(errors="backslashreplace")
    cq(prog_name="cq")
