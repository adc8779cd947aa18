"""The approved units by tag, in memory: compact arrays that follow the database's change counter.

Ranking by tags reads every unit that shares one, and the commonest tag may stand on half of them;
arrays do in a millisecond what SQL does in a hundred. Nothing of a unit's text is held here.
"""

import threading

import numpy as np
from sqlalchemy import select

from cq import unit as rules
from models import UNITS, Change, Unit, db

GONE, PRIVATE, PUBLIC = 0, 1, 2
# A word on more than one in DENSE units is kept as flags too.
DENSE = 32
BLOCK = 256
COLUMNS = {
    "pk": np.int64,
    "changed": np.int64,
    "revision": np.int32,
    "tags": np.uint8,
    "tier": np.uint8,
    "confidence": np.float64,
    "high": np.uint64,
    "low": np.uint64,
}


class Growing:
    """An array that is appended to; `all` is the part in use."""

    def __init__(self, dtype):
        self.room = np.empty(16, dtype)
        self.size = 0

    @property
    def all(self):
        return self.room[: self.size]

    def extend(self, values):
        size = self.size + len(values)
        if size > len(self.room):
            room = np.empty(max(size, 2 * len(self.room)), self.room.dtype)
            room[: self.size] = self.all
            self.room = room
        self.room[self.size : size] = values
        self.size = size


class Index:
    """Slots of approved units and, for each word of a kind, the slots that have it.

    A slot is never used twice: a unit that leaves or changes its words leaves a gone slot behind,
    and once half of all are gone the index is read anew. All methods are safe across threads.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self._clear()

    def _clear(self):
        self.seen = 0
        self.gone = 0
        self.slots = {}
        self.columns = {name: Growing(dtype) for name, dtype in COLUMNS.items()}
        self.postings = {}
        self.remembered = {}

    def follow(self):
        """Take in what was committed since the last call; one small statement when nothing was."""
        number = Change.last(UNITS)
        if number <= self.seen:
            return
        with self.lock:
            if number <= self.seen:
                return
            self._read(number)
            if self.gone > 1000 and self.gone > len(self.slots):
                self._clear()
                self._read(number)

    def _read(self, number):
        statement = select(
            Unit.pk,
            Unit.id,
            Unit.status,
            Unit.tier,
            Unit.confidence,
            Unit.revision,
            Unit.changed,
            Unit.domains,
            Unit.languages,
            Unit.frameworks,
            Unit.pattern,
        ).where(Unit.changed > self.seen)
        if not self.seen:
            statement = statement.where(Unit.status == "approved")
        fresh, words = [], {}
        for row in db.session.execute(statement.execution_options(yield_per=5000)):
            slot = self.slots.get(row.pk)
            if self._same_words(slot, row):
                self._update(slot, row)
                continue
            if slot is not None:
                self.columns["tier"].room[slot] = GONE
                del self.slots[row.pk]
                self.gone += 1
            if row.status == "approved":
                slot = self.columns["pk"].size + len(fresh)
                self.slots[row.pk] = slot
                fresh.append(_slot(row))
                for word in _words(row):
                    words.setdefault(word, []).append(slot)
        for name, values in zip(COLUMNS, zip(*fresh, strict=True), strict=False):
            self.columns[name].extend(values)
        for word, slots in words.items():
            self.postings.setdefault(word, Growing(np.int32)).extend(slots)
        self.seen = number
        self.remembered = {}

    def _same_words(self, slot, row):
        known = slot is not None and row.status == "approved"
        return known and self.columns["revision"].room[slot] == row.revision

    def _update(self, slot, row):
        self.columns["confidence"].room[slot] = row.confidence
        self.columns["tier"].room[slot] = _TIERS[row.tier]
        self.columns["changed"].room[slot] = row.changed

    def changed(self, pk):
        """The number of the unit's last change, or None if no agent sees it."""
        slot = self.slots.get(pk)
        return None if slot is None else int(self.columns["changed"].room[slot])

    def confidences(self, pks):
        """{row number: confidence} of those that agents see."""
        confidence = self.columns["confidence"].room
        return {pk: float(confidence[self.slots[pk]]) for pk in pks if pk in self.slots}

    def rank(self, domains, languages=(), frameworks=(), pattern="", limit=5, private=True):
        """[(row number, score)] of units that share a tag, best first, ties by the greater id.

        The score is confidence times `cq.unit.relevance`, step by step over all slots at once.
        """
        with self.lock:
            shared = self._count(("domain", word) for word in domains)
            shared *= self._visible(private)
            either = self.columns["tags"].all + np.uint8(len(domains)) - shared
            score = shared / either
            score *= rules.WEIGHTS["domain"]
            for kind, words in (
                ("language", languages),
                ("framework", frameworks),
                ("pattern", [pattern] if pattern else []),
            ):
                if words:
                    has = self._count((kind, word) for word in words) > 0
                    score += rules.WEIGHTS[kind] * has
            score *= self.columns["confidence"].all
            # Where no tag is shared the score is below 1, and now below 0: out of the ranking.
            score -= shared == 0
            best = self._best(score, limit)
            return [(int(self.columns["pk"].all[slot]), float(score[slot])) for slot in best]

    def _count(self, words):
        """For each slot, how many of the words it has."""
        count = np.zeros(self.columns["pk"].size, np.uint8)
        for word in words:
            posting = self.postings.get(word)
            if posting is None:
                continue
            if posting.size * DENSE < len(count):
                count[posting.all] += 1
            else:
                count += self._dense(word, posting)
        return count

    def _best(self, score, limit):
        """Slots of the `limit` greatest scores that are not negative, in order; ties by id."""
        blocks = len(score) // BLOCK
        least = 0.0
        if blocks > limit:
            # The best of each block: the one at `limit` bounds the answer from below.
            tops = score[: blocks * BLOCK].reshape(blocks, BLOCK).max(axis=1)
            least = max(least, np.partition(tops, blocks - limit)[blocks - limit])
        kept = np.flatnonzero(score >= least)
        if len(kept) > 8 * limit:
            values = score[kept]
            least = np.partition(values, len(kept) - limit)[len(kept) - limit]
            above, level = kept[values > least], kept[values == least]
            high = self.columns["high"].all[level]
            if len(level) > limit:
                level = level[high >= np.partition(high, len(high) - limit)[len(high) - limit]]
            kept = np.concatenate([above, level])
        keys = (self.columns["low"].all[kept], self.columns["high"].all[kept], score[kept])
        return kept[np.lexsort(keys)[::-1][:limit]]

    def _visible(self, private):
        """1 for each slot that may be shown, 0 for others."""
        return self._kept(
            ("visible", private),
            lambda: (self.columns["tier"].all >= (PRIVATE if private else PUBLIC)).astype(np.uint8),
        )

    def _dense(self, word, posting):
        """1 for each slot that has a common word: adding it up is faster than looking it up."""

        def spread():
            flags = np.zeros(self.columns["pk"].size, np.uint8)
            flags[posting.all] = 1
            return flags

        return self._kept(word, spread)

    def _kept(self, key, make):
        """What `make` gives, worked out once a change; to be called under the lock."""
        if key not in self.remembered:
            self.remembered[key] = make()
        return self.remembered[key]

    def stats(self, private=True, edges=rules.AGENT_BUCKETS):
        """What agents may see, counted: total, by tier, by domain (commonest first), by confidence.

        Worked out once a change.
        """
        return self.remember(
            ("stats", private, edges), lambda: self._stats(PRIVATE if private else PUBLIC, edges)
        )

    def remember(self, key, make):
        """What `make` gives, worked out once a change under this key."""
        with self.lock:
            return self._kept(key, make)

    def _stats(self, least, edges):
        tier = self.columns["tier"].all
        tiers = np.bincount(tier[tier >= least], minlength=3)
        confidence = self.columns["confidence"].all[tier >= least]
        buckets = np.bincount(
            np.searchsorted(edges, confidence, side="right"), minlength=len(edges) + 1
        )
        domains = {
            word: int(np.count_nonzero(tier[posting.all] >= least))
            for (kind, word), posting in self.postings.items()
            if kind == "domain"
        }
        ordered = sorted(domains.items(), key=lambda pair: (-pair[1], pair[0]))
        return {
            "total_count": int(tiers[PRIVATE:].sum()),
            "tier_counts": {name: int(tiers[code]) for name, code in _TIERS.items() if tiers[code]},
            "domain_counts": {name: count for name, count in ordered if count},
            "confidence_distribution": dict(
                zip(rules.bucket_labels(edges), map(int, buckets), strict=True)
            ),
        }


_TIERS = {"private": PRIVATE, "public": PUBLIC}


def _slot(row):
    digits = row.id.removeprefix("ku_")
    return (
        row.pk,
        row.changed,
        row.revision,
        len(row.domains),
        _TIERS[row.tier],
        row.confidence,
        int(digits[:16], 16),
        int(digits[16:], 16),
    )


def _words(row):
    """(kind, folded word) of all that a query may match; spelling counts as it does for tags."""
    yield from (("domain", word) for word in row.domains)
    yield from (("language", word) for word in set(rules.normalise(row.languages)))
    yield from (("framework", word) for word in set(rules.normalise(row.frameworks)))
    if pattern := rules.fold(row.pattern):
        yield "pattern", pattern
