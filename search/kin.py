"""Tags that mean nearly the same: `k8s` and `kubernetes`, `postgres` and `postgresql`.

By their vectors, which for single words are rough: words that could be short for one another need
less likeness than others.
"""

import threading

import numpy as np

# Measured on pairs of tags of both sorts: see docs/decisions.md.
KIN, SHORT = 0.6, 0.35
# So many tags are known, first come.
TAGS = 5000


class Kin:
    """The tags of the store and their vectors. Safe across threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._words = {}
        self._rows = None

    def missing(self, words):
        """Those that have no vector yet, as far as there is room."""
        room = TAGS - len(self._words)
        return [word for word in words if word not in self._words][:room]

    def add(self, words, rows):
        with self._lock:
            rows = rows if self._rows is None else np.vstack([self._rows, rows])
            for word in words:
                self._words[word] = len(self._words)
            self._rows = rows

    def of(self, word):
        """The vector of a tag of the store, or None."""
        with self._lock:
            place = self._words.get(word)
            return None if place is None else self._rows[place]

    def nearest(self, word, vector, stands):
        """(tag, similarity) of the nearest other tag that means nearly the same, or None.

        `stands(tag)` says whether a unit that may be served has it.
        """
        with self._lock:
            if self._rows is None:
                return None
            similar, words = self._rows @ vector, list(self._words)
        near = np.flatnonzero(similar >= SHORT)
        for place in near[np.argsort(-similar[near])].tolist():
            likeness, other = float(similar[place]), words[place]
            kin = other != word and (likeness >= KIN or short_for(word, other))
            if kin and stands(other):
                return other, likeness
        return None


def short_for(one, other):
    """Whether one could be short for the other: its letters in order, the first the same."""
    short, long = sorted(("".join(filter(str.isalpha, word)) for word in (one, other)), key=len)
    if len(short) < 2 or short[0] != long[0]:
        return False
    rest = iter(long)
    return all(letter in rest for letter in short)
