"""Which texts of a unit are embedded, and what rows of numbers come of them.

The first row stands for the unit: its summary counts twice, the beginning of its detail once
(measured better than both in one text, and than with the action; see docs/decisions.md). A detail
that is longer than the model reads adds a row for each further window: nothing is out of reach.
"""

import hashlib

import numpy as np

# What a window costs at most: 256 word pieces of any text that is read, for a letter of English is
# a quarter of one as a rule, and what is none may be one of its own.
WINDOW, DENSE = 900, 4
# So much of a window stands in the next one too.
OVERLAP = 9
SUMMARY = 2.0
# Rows made by another recipe are made anew.
RECIPE = "1"
FORMAT = np.dtype("<f4")


def passages(summary, detail):
    """The texts to encode: the summary, then each window of the detail."""
    return [summary, *windows(detail)]


def windows(text):
    """Pieces that the model reads whole and that overlap, cut between words where there are any."""
    plain = (char.isascii() and (char.isalpha() or char.isspace()) for char in text)
    costs = np.cumsum([0, *(1 if each else DENSE for each in plain)])
    pieces, start = [], 0
    while costs[start] + WINDOW < costs[-1]:
        full = int(costs.searchsorted(costs[start] + WINDOW, side="right")) - 1
        # A word may be cut only if it alone is longer than a good part of the window.
        end = _gap(text, range(full, start + (full - start) // 2, -1)) or full
        pieces.append(text[start:end])
        back = end - (end - start) // OVERLAP
        start = _gap(text, range(back, end)) or back
    return [*pieces, text[start:]]


def _gap(text, places):
    """The first of these places that a word begins or ends at, or None."""
    return next((each for each in places if text[each - 1].isspace() or text[each].isspace()), None)


def pooled(vectors):
    """(rows, dimension) of a unit out of the vectors of its passages, each of length 1."""
    first = SUMMARY * vectors[0] + vectors[1]
    return np.vstack([first / np.linalg.norm(first), vectors[2:]]).astype(np.float32)


def digest(summary, detail):
    """Changes when the rows of a unit have to be made anew."""
    return hashlib.sha256("\0".join((RECIPE, summary, detail)).encode()).hexdigest()


def pack(vector):
    """A vector as little-endian float32."""
    return vector.astype(FORMAT).tobytes()


def unpack(blob, dimension):
    """The vector of these bytes, or None if they are none of this dimension and of length 1."""
    if not isinstance(blob, bytes) or len(blob) != dimension * FORMAT.itemsize:
        return None
    vector = np.frombuffer(blob, FORMAT)
    return vector if whole(vector) else None


def whole(vectors):
    """Whether all numbers are finite and each row has length 1."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(vectors, axis=-1)
        return bool(np.all(np.abs(lengths - 1) < 1e-3))
