"""Which texts of a unit are embedded, and what rows of numbers come of them.

The first row stands for the unit: its summary counts twice, the beginning of its detail once
(measured better than both in one text, and than with the action; see docs/decisions.md). A detail
that is longer than the model reads adds a row for each further window: nothing is out of reach.
"""

import hashlib

import numpy as np

# Characters: 256 word pieces of English, somewhat less of code.
WINDOW, OVERLAP = 900, 100
SUMMARY = 2.0
# Rows made by another recipe are made anew.
RECIPE = "1"
FORMAT = np.dtype("<f4")


def passages(summary, detail):
    """The texts to encode: the summary, then each window of the detail."""
    return [summary, *windows(detail)]


def windows(text):
    """Pieces of at most WINDOW characters that overlap, cut between words where there are any."""
    pieces, start = [], 0
    while True:
        end = start + WINDOW
        if end >= len(text):
            pieces.append(text[start:])
            return pieces
        # A word may be cut only if it alone is longer than a good part of the window.
        space = text.rfind(" ", start + WINDOW // 2, end)
        end = space if space > 0 else end
        pieces.append(text[start:end])
        space = text.find(" ", end - OVERLAP, end)
        start = space + 1 if space > 0 else end


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
    if len(blob) != dimension * FORMAT.itemsize:
        return None
    vector = np.frombuffer(blob, FORMAT)
    return vector if whole(vector) else None


def whole(vectors):
    """Whether all numbers are finite and each row has length 1."""
    lengths = np.linalg.norm(vectors, axis=-1)
    return bool(np.all(np.abs(lengths - 1) < 1e-3))
