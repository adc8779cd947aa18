"""`cq _hook`: what hosts call at their lifecycle hooks. Whatever happens, a host goes on."""

import contextlib
import json
import sys

import click

from cq import hook


class Word(click.Choice):
    """One of some words, however it is written."""

    def convert(self, value, param, ctx):
        return super().convert(value.strip().lower(), param, ctx)


def _folder(ctx, param, value):
    if not value.strip():
        raise click.BadParameter("it is empty", ctx, param)
    return value


@click.command(hidden=True)
@click.option("--host", required=True, type=Word(list(hook.HOSTS)))
@click.option("--mode", required=True, type=Word(list(hook.MODES)))
@click.option("--state-dir", required=True, callback=_folder, help="Where failures are kept.")
def _hook(host, mode, state_dir):
    """Take a host's JSON from stdin and answer with its JSON. Always exit code 0."""
    answer = {}
    try:
        answer = hook.handle(host, mode, state_dir, sys.stdin.buffer)
    # A host takes some exit codes for orders, such as not to stop.
    except Exception as fault:
        # What others raise may repeat the payload; the system's words name a path.
        words = str(fault) if isinstance(fault, OSError) else ""
        told = " ".join(f"{type(fault).__name__} {words}".split())
        _print(2, f"cq: hook internal error: {told}")
    _print(1, json.dumps(answer))


def _print(handle, line):
    """A line on stdout or stderr; for nobody if nobody listens. What sys.stdout and sys.stderr
    cannot write when the process ends would make an exit code.
    """
    with contextlib.suppress(OSError), open(handle, "wb", closefd=False) as stream:
        stream.write(line.encode("ascii", "backslashreplace") + b"\n")
