"""`cq completion`: the script that completes commands and options in a shell."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell):
    """Print a completion script: `eval "$(cq completion bash)"` in your shell's start file."""
    root = click.get_current_context().find_root().command
    script = get_completion_class(shell)(root, {}, "cq", "_CQ_COMPLETE")
    click.echo(script.source())
