"""What a bench reads and tells: whole numbers, progress, tables (rows of texts, a head first)."""

import argparse
import sys

MOST = 10_000_000


def plain(table):
    """Columns in line, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    right = [_figures(column) for column in zip(*table[1:], strict=True)]
    for row in table:
        cells = zip(row, widths, right, strict=True)
        yield "  ".join(
            cell.rjust(width) if figure else cell.ljust(width) for cell, width, figure in cells
        ).rstrip()


def markdown(table):
    right = [_figures(column) for column in zip(*table[1:], strict=True)]
    rule = ["--:" if figure else "---" for figure in right]
    for row in (table[0], rule, *table[1:]):
        yield f"| {' | '.join(row)} |"


def _figures(column):
    return all(not cell or cell.replace(".", "", 1).isdigit() for cell in column) and any(column)


def say(line):
    """Progress: for a person who waits."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def whole_numbers(text):
    parts = text.split(",")
    if not all(part.isdecimal() and 0 < int(part) <= MOST for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of whole numbers from 1 to {MOST}, such as 1000,10000"
        )
    return sorted(set(map(int, parts)))
