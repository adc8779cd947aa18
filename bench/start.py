"""How soon a server answers, and by meaning, and what it holds: `python bench/start.py --help`.

Each start is that of a process over a store that is there, with vectors. What it reads is mostly in
the memory of the operating system, as after an update; `--cold` has it forgotten first, as after a
boot.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this folder would hide the standard library's `http` behind bench/http.py.
sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT / "bench"))]

# ruff: noqa: E402
import argparse
import os
import shutil
import tempfile
from statistics import median

from bench import load, store
from bench.encoder import Alone
from bench.server import Server
from bench.tables import markdown, plain, say, whole_numbers

# So many starts make a figure, their median.
STARTS = 3
EMBEDDERS = ("off", "onnx", "minilm")
HEAD = ["listens s", "first answer s", "by meaning s", "MB", "most MB"]


def measure(size, embedders, cold):
    """A row of texts for each embedder over a store of so many units."""
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as folder:
        empty = Path(folder) / "empty"
        empty.mkdir()
        say(f"{size} units are loaded")
        _, key, _ = store.fill(empty / "cq.db", size)
        for embedder in embedders:
            own = Path(shutil.copytree(empty, Path(folder) / embedder))
            if embedder != "off":
                say(f"{size} units get vectors of {embedder}")
                give_vectors(own / "cq.db", embedder)
            starts = []
            for number in range(STARTS):
                say(f"{size} units, {embedder}: start {number + 1} of {STARTS}")
                if cold:
                    forget(Path(sys.prefix), own)
                starts.append(start(own / "cq.db", embedder, key))
            figures = [median(each) for each in zip(*starts, strict=True)]
            yield [f"{size}", embedder, *(f"{figure:.1f}" if figure else "" for figure in figures)]
            shutil.rmtree(own)


def give_vectors(path, embedder):
    alone = Alone(embedder, path.with_name("encoder.log"))
    try:
        store.embed(path, alone.model, alone.middles)
    finally:
        alone.stop()


def start(path, embedder, key):
    """Seconds until it listens, until a query by tags and one by meaning are answered; MB held
    then, and at most.
    """
    server = Server(path, embedder)
    try:
        load.ask(server.port, load.request("GET", "/knowledge?domains=tag01&limit=5", key))
        first = meant = server.age()
        if embedder != "off":
            server.meaning()
            asked = load.request("GET", "/knowledge?q=a+question&limit=5", key)
            load.ask(server.port, asked, b"Cq-Search: semantic")
            meant = server.age()
        server.rest()
        held, most = server.resident(), server.resident("VmHWM")
        return server.started, first, meant if embedder != "off" else 0, held, most
    finally:
        server.stop()


def forget(*folders):
    """Have the operating system forget these files, apart from those in use."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    options = read_options()
    table = [["units", "embedder", *HEAD]]
    try:
        for size in options.sizes:
            table += measure(size, options.embedders, options.cold)
    except load.Unanswered as fault:
        sys.exit(f"\nNot measured: {fault}")
    except KeyboardInterrupt:
        sys.exit(130)
    say("")
    print(f"{os.cpu_count()} cores, the median of {STARTS} starts each.")
    print("", *(markdown if options.markdown else plain)(table), sep="\n")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=whole_numbers, default="1000,100000", help="units")
    parser.add_argument(
        "--embedders", type=lambda text: text.split(","), default="off,onnx,minilm", help="which"
    )
    parser.add_argument("--cold", action="store_true", help="with nothing in memory before")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    unknown = set(options.embedders) - set(EMBEDDERS)
    if unknown:
        parser.error(f"--embedders takes {', '.join(EMBEDDERS)}, not {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
