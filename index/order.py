"""The units of an index by confidence, and the best for a query without reading all."""

from typing import NamedTuple

import numpy as np

from cq import unit as rules

GONE, PRIVATE, PUBLIC = 0, 1, 2
# The first stretch of the order that is looked at; each next one is twice as long. Up to 500
# elements numpy works without letting other threads in between, which costs more than the work.
STRETCH = 500
NONE = np.empty(0, np.int32)


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


class Order:
    """The slots of an index by confidence, then id, both falling; a rank is a place in it."""

    def __init__(self, columns, postings):
        alive = np.flatnonzero(columns["tier"].all != GONE)
        keys = [columns[name].all[alive] for name in ("low", "high", "confidence")]
        self.slots = alive[np.lexsort(keys)[::-1]].astype(np.int32)
        self.ranks = np.full(columns["pk"].size, -1, np.int32)
        self.ranks[self.slots] = np.arange(len(self.slots), dtype=np.int32)
        self.confidence = columns["confidence"].all[self.slots]
        self.tags = columns["tags"].all[self.slots]
        self.fewest_tags = int(self.tags.min(initial=rules.TAGS))
        tier = columns["tier"].all[self.slots]
        self.shown = {least: (tier >= least).astype(np.uint8) for least in (PRIVATE, PUBLIC)}
        self.columns = columns
        self.postings = postings
        self.ranked = {}

    def set_aside(self, slot):
        """Leave out a unit that changed since the order was made."""
        if slot < len(self.ranks) and self.ranks[slot] >= 0:
            for shown in self.shown.values():
                shown[self.ranks[slot]] = 0

    def having(self, word):
        """The ranks of all units with a word, rising."""
        posting = self.postings.get(word)
        if posting is None:
            return NONE
        if word not in self.ranked:
            ranks = self.ranks[posting.all[posting.all < len(self.ranks)]]
            self.ranked[word] = np.sort(ranks[ranks >= 0])
        return self.ranked[word]

    def best(self, asked, limit, least):
        """[(score, id, row number)] of the best units of at least this tier, unsorted."""
        lists = [self.having(("domain", word)) for word in asked.domains]
        lifts = [
            (rules.WEIGHTS[kind], [self.having((kind, word)) for word in words])
            for kind, words in asked.lifts()
        ]
        ceiling = rules.WEIGHTS["domain"] * asked.overlap(self.fewest_tags)
        for weight, _ in lifts:
            ceiling += weight
        ranks, scores = np.empty(0, np.intp), np.empty(0)
        start, width = 0, STRETCH
        while start < len(self.slots):
            end = min(start + width, len(self.slots))
            fresh = self._stretch(lists, lifts, start, end, least)
            ranks, scores = np.concatenate([ranks, fresh[0]]), np.concatenate([scores, fresh[1]])
            if len(ranks) > limit:
                ranks, scores = self._top(ranks, scores, limit)
            if end < len(self.slots) and self._done(ranks, scores, limit, ceiling, end):
                break
            start, width = end, width * 2
        return list(zip(scores.tolist(), self._ids(ranks), self._pks(ranks), strict=True))

    def _stretch(self, lists, lifts, start, end, least):
        """Ranks from `start` to `end` that share a tag, rising, and their scores."""
        shared = _count(lists, start, end)
        shared *= self.shown[least][start:end]
        at = np.flatnonzero(shared)
        shared = shared[at]
        score = shared / (self.tags[start:end][at] + np.uint8(len(lists)) - shared)
        score *= rules.WEIGHTS["domain"]
        for weight, having in lifts:
            score += weight * (_count(having, start, end)[at] > 0)
        score *= self.confidence[start:end][at]
        return at + start, score

    def _top(self, ranks, scores, limit):
        """The `limit` best of them, equal scores by the greater id."""
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= least)
        ranks, scores = ranks[kept], scores[kept]
        if len(kept) > limit:
            slots = self.slots[ranks]
            ids = (self.columns["low"].all[slots], self.columns["high"].all[slots])
            kept = np.lexsort((*ids, scores))[-limit:]
            ranks, scores = ranks[kept], scores[kept]
        return ranks, scores

    def _done(self, ranks, scores, limit, ceiling, end):
        """Whether no unit from rank `end` on belongs among the best.

        One that could only tie is behind those of its own confidence, whose ids are greater.
        """
        if len(scores) < limit:
            return False
        bound, least = ceiling * self.confidence[end], scores.min()
        if bound != least:
            return bound < least
        return bool((self.confidence[ranks[scores == least]] == self.confidence[end]).all())

    def _ids(self, ranks):
        slots = self.slots[ranks]
        high, low = self.columns["high"].all[slots], self.columns["low"].all[slots]
        return zip(high.tolist(), low.tolist(), strict=True)

    def _pks(self, ranks):
        return self.columns["pk"].all[self.slots[ranks]].tolist()


def _count(lists, start, end):
    """For each rank from `start` to `end`, in how many of the lists of ranks it stands."""
    count = np.zeros(end - start, np.uint8)
    for ranks in lists:
        low, high = ranks.searchsorted((start, end))
        count[ranks[low:high] - start] += 1
    return count


class Asked(NamedTuple):
    """The words of a query, folded."""

    domains: list
    languages: list = ()
    frameworks: list = ()
    pattern: str = ""

    def lifts(self):
        """(kind, words) of what only lifts a score."""
        kinds = (
            ("language", self.languages),
            ("framework", self.frameworks),
            ("pattern", [self.pattern] if self.pattern else []),
        )
        return [(kind, words) for kind, words in kinds if words]

    def overlap(self, fewest):
        """The greatest overlap that a unit of at least so many tags can have."""
        count = len(self.domains)
        return max(
            shared / (max(fewest, shared) + count - shared) for shared in range(1, count + 1)
        )

    def relevance(self, words, tags):
        """Of one unit with these (kind, word) pairs; None if it shares no tag."""
        shared = sum(("domain", word) in words for word in self.domains)
        if not shared:
            return None
        lifted = {
            kind: any((kind, word) in words for word in asked) for kind, asked in self.lifts()
        }
        return rules.relevance(shared, tags + len(self.domains) - shared, **lifted)
