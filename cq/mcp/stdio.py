"""The server over standard input and output, until its input ends."""

import os
import sys
import threading

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from cq.failures import CqError
from cq.mcp import make

# What may still run once the input has ended, in seconds: a drain that is at its last unit.
GRACE = 1.0


def serve(client, wire, approved):
    """Serve `client` until the input ends; the process ends with it, whatever still runs.

    `wire` is a descriptor of the true standard output. What waits is sent in the background.
    """
    draining = threading.Thread(target=_drain, args=[client], daemon=True)
    if client.addr:
        draining.start()
    with open(wire, "w", encoding="utf-8", newline="\n", closefd=False) as out:
        anyio.run(_serve, client, out, approved)
    if draining.is_alive():
        draining.join(GRACE)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # A call that waits for a node must not keep the host waiting: what it proposed is on the disk.
    os._exit(0)


async def _serve(client, out, approved):
    async with stdio_server(stdout=anyio.wrap_file(out)) as (incoming, outgoing):
        server = make(client, _aside, approved)
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _aside(call):
    """In a thread of its own: a host may ask more while a node takes its time."""
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)


def _drain(client):
    """With a store of its own; how it went is noted there, for `status`."""
    with client.twin() as own:
        try:
            own.drain()
        except CqError as failure:
            print(f"cq: nothing was sent: {failure}", file=sys.stderr)
