"""What the safety check finds and what it takes for a finding: `python bench/safety.py --help`.

Over the true and false cases of the tests, and over units in files of JSON lines if a folder of
them is given: real technical prose, in which nothing should be found.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this folder would hide the standard library's `http` behind bench/http.py.
sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT / "bench"))]

# ruff: noqa: E402
import argparse
import json
import time
from collections import Counter

from bench.tables import plain
from cq import safety
from tests.agent.safety_cases import FALSE, TRUE


def kinds(text):
    return {finding.kind for finding in safety.check_text("detail", text)}


def texts(folder):
    """Each line of each file that is an object with texts in it."""
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield path.name, line.strip() and json.loads(line)


def main():
    parser = argparse.ArgumentParser(description="Count the findings of the safety check.")
    parser.add_argument("folder", nargs="?", help="a folder of *.jsonl with units")
    asked = parser.parse_args()
    table = [["kind", "true", "found", "false", "mistaken"]]
    for kind in TRUE:
        found = sum(kind in kinds(text) for text in TRUE[kind])
        mistaken = sum(kind in kinds(text) for text in FALSE[kind])
        counts = (len(TRUE[kind]), found, len(FALSE[kind]), mistaken)
        table.append([kind, *map(str, counts)])
    print("\n".join(plain(table)))
    if asked.folder:
        counted, number, began = Counter(), 0, time.perf_counter()
        for _, unit in texts(asked.folder):
            if isinstance(unit, dict) and unit:
                number += 1
                said = "\n".join(str(value) for value in unit.values())
                for finding in safety.check_text("unit", said):
                    counted[finding.kind, finding.text] += 1
        took = (time.perf_counter() - began) / max(number, 1) * 1000
        print(f"\n{number} units, {took:.2f} ms each; findings:")
        for (kind, text), count in counted.most_common():
            print(f"  {count:4} {kind}: {text}")


if __name__ == "__main__":
    main()
