"""The vectors of units as one matrix of rows of length 1, and the nearest to another vector.

Similarity is the cosine, bigger is nearer. Up to EXACT rows all are multiplied; beyond, the signs
of the numbers, packed into bits, choose some first: thirty times less to read, and next to
nothing lost that would stand among the first fifty (a test compares).
"""

import numpy as np

GONE, PENDING, PRIVATE, PUBLIC = 0, 1, 2, 3
EXACT = 5000
# So many are chosen by signs, or eight times what is asked for if that is more.
CHOSEN = 1200
WORD = 64


class Matrix:
    """Rows of units by the unit's row number, each with what the unit is: PENDING and so on.

    A unit may have several rows; it is as near as its nearest. A place given up is used again. Not
    safe across threads: whoever follows the database holds a lock.
    """

    def __init__(self, dimension):
        self.dimension = dimension
        self.rows = np.zeros((0, dimension), np.float32)
        self.signs = np.zeros((-(-dimension // WORD), 0), np.uint64)
        self.pks = np.zeros(0, np.int64)
        self.kinds = np.zeros(0, np.uint8)
        self.size = 0
        self.free = []
        self.places = {}
        self.units = [0, 0, 0, 0]

    def put(self, pk, kind, vectors):
        """The rows of a unit instead of its earlier ones."""
        self.drop(pk)
        places = [self._place() for _ in vectors]
        self.rows[places] = vectors
        self.signs[:, places] = _signs(self.rows[places])
        self.pks[places] = pk
        self.kinds[places] = kind
        self.places[pk] = places
        self.units[kind] += 1

    def _place(self):
        if self.free:
            return self.free.pop()
        if self.size == len(self.pks):
            self.reserve(max(64, self.size * 5 // 4))
        self.size += 1
        return self.size - 1

    def reserve(self, size):
        """Make room for so many rows in all."""
        if size > len(self.pks):
            self.rows = _longer(self.rows, size)
            self.signs = _longer(self.signs.T, size).T.copy()
            self.pks = _longer(self.pks, size)
            self.kinds = _longer(self.kinds, size)

    def drop(self, pk):
        if pk in self.places:
            self.mark(pk, GONE)
            self.units[GONE] -= 1
            self.free += self.places.pop(pk)

    def mark(self, pk, kind):
        """What the unit is now. False if it has no rows."""
        places = self.places.get(pk)
        if places is None:
            return False
        self.units[self.kinds[places[0]]] -= 1
        self.units[kind] += 1
        self.kinds[places] = kind
        return True

    def count(self, least):
        """How many units of at least this kind have rows."""
        return sum(self.units[least:])

    def of(self, pk):
        """The first row of a unit, or None."""
        places = self.places.get(pk)
        return None if places is None else self.rows[places[0]].copy()

    def nearest(self, vector, limit, least=PRIVATE):
        """[(pk, similarity)] of the units of at least this kind, nearest first."""
        shown = np.flatnonzero(self.kinds[: self.size] >= least)
        if len(shown) > EXACT:
            shown = self._alike(vector, shown, max(CHOSEN, 8 * limit))
        if 3 * len(shown) > self.size:
            similar = (self.rows[: self.size] @ vector)[shown]
        else:
            similar = self.rows[shown] @ vector
        best = {}
        wanted = min(len(shown), 2 * limit)
        while True:
            top = np.argpartition(similar, len(shown) - wanted)[len(shown) - wanted :]
            for place in top[np.argsort(-similar[top], kind="stable")].tolist():
                best.setdefault(int(self.pks[shown[place]]), float(similar[place]))
            if len(best) >= limit or wanted == len(shown):
                return list(best.items())[:limit]
            # Units with many rows filled the list.
            wanted = min(len(shown), 4 * wanted)

    def _alike(self, vector, shown, many):
        """Those places of `shown` whose signs differ least from the vector's."""
        asked = _signs(vector[None])[:, 0]
        apart = np.zeros(self.size, np.uint16)
        for signs, word in zip(self.signs, asked, strict=True):
            apart += np.bitwise_count(signs[: self.size] ^ word)
        apart = apart[shown]
        # Of those that are the last to be chosen, all equally far, as many as there is room for.
        furthest = np.searchsorted(np.cumsum(np.bincount(apart)), many)
        nearer = np.flatnonzero(apart < furthest)
        edge = np.flatnonzero(apart == furthest)[: many - len(nearer)]
        return shown[np.concatenate([nearer, edge])]

    def similarities(self, pks, vector):
        """{pk: similarity} of those of these units that have rows."""
        known = [(pk, place) for pk in pks for place in self.places.get(pk, ())]
        if not known:
            return {}
        similar = self.rows[[place for _, place in known]] @ vector
        best = {}
        for (pk, _), each in zip(known, similar.tolist(), strict=True):
            best[pk] = max(each, best.get(pk, each))
        return best


def _longer(array, size):
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _signs(rows):
    """(words, rows): which numbers are positive, 64 of them to a word."""
    bits = np.packbits(rows > 0, axis=1)
    words = -(-rows.shape[1] // WORD)
    whole = np.zeros((len(rows), words * WORD // 8), np.uint8)
    whole[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(whole.view(np.uint64).T)
