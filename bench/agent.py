"""How long an agent waits for `cq`, in times of an empty Python: `python bench/agent.py --help`.

The command line runs in a process of its own each time, over local stores of several sizes, in
turns with `python -c pass`; `cq mcp` in turns with the import of the SDK that it stands on.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this folder would hide the standard library's `http` behind bench/http.py.
sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT / "bench"))]

# ruff: noqa: E402
import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from statistics import median

from bench import texts
from bench.tables import markdown, plain, say, whole_numbers
from cq import record
from cq.store import open_store

START = "import sys; sys.argv[0] = 'cq'; from cq.cli import main; main()"
EMPTY = "python -c pass"
TURNS = 15
MCP_START = "cq mcp, from its start to"
SDK = "python -c 'import mcp'"
# At most so many times as long as an empty Python, and as long as the import of the SDK.
VERSION, QUERY, MCP = 8, 14, 1.5
AIM = 10_000


def fill(path, size):
    """A store of so many units."""
    rng = random.Random(texts.SEED)
    store = open_store(str(path))
    units = []
    for number in range(size):
        said = texts.proposal(rng, number % texts.TOPICS)
        insight, context = said["insight"], said["context"]
        units.append(record.make(**insight, domains=said["domains"], **context))
    store.add_all(units)
    store.close()


def took(command, environ):
    """Milliseconds."""
    began = time.perf_counter()
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


INFO = {"name": "bench", "version": "1"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
ASKED = {"name": "query", "arguments": {"domains": ["tag01", "tag02"]}}


def spoken(command, environ):
    """Milliseconds from the start of `cq mcp` to its answer to `initialize`, and to a query."""

    def ask(id, method, params):
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        host.stdin.write(json.dumps(message).encode() + b"\n")
        host.stdin.flush()
        answer = json.loads(host.stdout.readline())
        assert "error" not in answer, answer
        return (time.perf_counter() - began) * 1000

    began = time.perf_counter()
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as host:
        hello = ask(1, "initialize", HELLO)
        host.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        found = ask(2, "tools/call", ASKED)
        host.stdin.close()
    return hello, found


def served(path, home):
    """[what, ms, times] of `cq mcp` over a store, in times of the import of the official SDK."""
    python, here = [sys.executable, "-c"], {**home, "CQ_LOCAL_DB_PATH": str(path)}
    bars, hellos, answers = [], [], []
    for turn in range(TURNS):
        say(f"cq mcp, turn {turn + 1} of {TURNS}")
        bars.append(took([*python, "import mcp"], home))
        hello, found = spoken([*python, START, "mcp"], here)
        hellos.append(hello)
        answers.append(found)
    yield SDK, median(bars), 1.0
    for what, each in (
        (f"{MCP_START} initialize", hellos),
        (f"{MCP_START} a first query", answers),
    ):
        yield what, median(each), median(ms / bar for ms, bar in zip(each, bars, strict=True))


def measure(sizes):
    """[what, ms, times] for each command."""
    python = [sys.executable, "-c"]
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as folder:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        home = {**kept, "PYTHONPATH": str(ROOT), "HOME": folder}
        commands = {
            EMPTY: ([*python, "pass"], home),
            "cq --version": ([*python, START, "--version"], home),
        }
        for size in sizes:
            say(f"a store of {size} units")
            path = Path(folder, f"{size}.db")
            fill(path, size)
            asked = [*python, START, "query", "--domain", "tag01", "--domain", "tag02"]
            question = [*python, START, "query", texts.question(random.Random(1))]
            here = {**home, "CQ_LOCAL_DB_PATH": str(path)}
            commands[f"cq query, two domains, {size} units"] = (asked, here)
            commands[f"cq query, a question, {size} units"] = (question, here)
        runs = {what: [] for what in commands}
        for turn in range(TURNS):
            say(f"turn {turn + 1} of {TURNS}")
            for what, command in commands.items():
                runs[what].append(took(*command))
        protocol = list(served(path, home))
    say("")
    # Each turn is compared with its own empty Python.
    bars = runs[EMPTY]
    for what, each in runs.items():
        yield what, median(each), median(ms / bar for ms, bar in zip(each, bars, strict=True))
    yield from protocol


def main():
    parser = argparse.ArgumentParser(description="Measure the start of cq on an agent's machine.")
    parser.add_argument("--sizes", type=whole_numbers, default=[1000, AIM, 100_000])
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    asked = parser.parse_args()
    rows = list(measure(asked.sizes))
    table = [
        ["", "ms", "times"],
        *([what, f"{ms:.0f}", f"{times:.1f}"] for what, ms, times in rows),
    ]
    print("\n".join((markdown if asked.markdown else plain)(table)))
    bounds = {
        "cq --version": VERSION,
        f"cq query, two domains, {AIM} units": QUERY,
        f"{MCP_START} initialize": MCP,
        f"{MCP_START} a first query": MCP,
    }
    for what, _, times in rows:
        if what in bounds:
            met = "met" if times <= bounds[what] else "missed"
            print(f"{what}: {times:.1f} times, at most {bounds[what]}: {met}")


if __name__ == "__main__":
    main()
