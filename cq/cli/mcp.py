"""`cq mcp`: what a coding agent's host starts."""

import os

import click

from cq.cli.shared import connected

MODES = ("ask", "headless")


@click.command()
@connected
def mcp(client):
    """Serve an agent's host by the Model Context Protocol, on standard input and output."""
    approved = os.environ.get("CQ_APPROVAL", "").strip() or "ask"
    if approved not in MODES:
        raise click.UsageError(f"CQ_APPROVAL is {approved!r}; it takes ask or headless")
    # Standard output is the wire, whatever a library prints from its first import on.
    wire = os.dup(1)
    os.dup2(2, 1)
    from cq.mcp import stdio

    stdio.serve(client, wire, approved)
