"""The approved units by tag, in memory: compact arrays that follow the database's change counter.

The commonest tag may stand on half of all units, so ranking must not read every unit that shares
one. Units are kept in order of confidence; a query walks its tags' units in that order and stops
once no later one can score higher. What changed since the order was made stands aside and is ranked
one by one. Nothing of a unit's text is held here.
"""

import heapq
import threading
from typing import NamedTuple

import numpy as np
from sqlalchemy import select

from cq import unit as rules
from models import UNITS, Change, Unit, db

GONE, PRIVATE, PUBLIC = 0, 1, 2
_TIERS = {"private": PRIVATE, "public": PUBLIC}
# So many changed units stand aside before the order is made anew.
ASIDE = 256
# The first stretch of the order that is looked at; each next one is twice as long. Up to 500
# elements numpy works without letting other threads in between, which costs more than the work.
STRETCH = 500
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
        if word not in self.ranked:
            posting = self.postings.get(word)
            slots = posting.all if posting else np.empty(0, np.int32)
            ranks = self.ranks[slots[slots < len(self.ranks)]]
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
        self._arrange()

    def _arrange(self):
        self.order = Order(self.columns, self.postings)
        self.aside = {}
        self.remembered = {}

    def follow(self):
        """Take in what was committed since the last call; next to nothing when nothing was."""
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
        whole = not self.seen
        if whole:
            statement = statement.where(Unit.status == "approved")
        fresh, postings, aside = [], {}, {}
        for row in db.session.execute(statement.execution_options(yield_per=5000)):
            words = set(_words(row))
            slot = self.slots.get(row.pk)
            if slot is not None:
                self.aside.pop(slot, None)
                self.order.set_aside(slot)
            if row.status != "approved":
                self._drop(row.pk, slot)
                continue
            if slot is not None and self.columns["revision"].room[slot] == row.revision:
                self._update(slot, row)
            else:
                self._drop(row.pk, slot)
                slot = self.columns["pk"].size + len(fresh)
                self.slots[row.pk] = slot
                fresh.append(_slot(row))
                for word in words:
                    postings.setdefault(word, []).append(slot)
            if not whole:
                aside[slot] = words
        for name, values in zip(COLUMNS, zip(*fresh, strict=True), strict=False):
            self.columns[name].extend(values)
        for word, slots in postings.items():
            self.postings.setdefault(word, Growing(np.int32)).extend(slots)
        self.seen = number
        self.aside.update(aside)
        self.remembered = {}
        if whole or len(self.aside) > ASIDE:
            self._arrange()

    def _drop(self, pk, slot):
        if slot is not None:
            self.columns["tier"].room[slot] = GONE
            del self.slots[pk]
            self.gone += 1

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

        The score is confidence times `cq.unit.relevance`.
        """
        if not domains:
            return []
        asked = Asked(domains, languages, frameworks, pattern)
        least = PRIVATE if private else PUBLIC
        with self.lock:
            found = self.order.best(asked, limit, least)
            found += self._apart(asked, least)
        return [(pk, score) for score, _, pk in heapq.nlargest(limit, found)]

    def _apart(self, asked, least):
        """The same for units that stand aside."""
        column = {name: self.columns[name].room for name in COLUMNS}
        for slot, words in self.aside.items():
            relevance = asked.relevance(words, int(column["tags"][slot]))
            if relevance is not None and column["tier"][slot] >= least:
                id = int(column["high"][slot]), int(column["low"][slot])
                score = relevance * float(column["confidence"][slot])
                yield score, id, int(column["pk"][slot])

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
            if key not in self.remembered:
                self.remembered[key] = make()
            return self.remembered[key]

    def _stats(self, least, edges):
        tier = self.columns["tier"].all
        tiers = np.bincount(tier[tier >= least], minlength=3)
        confidence = self.columns["confidence"].all[tier >= least]
        places = np.searchsorted(edges, confidence, side="right")
        buckets = np.bincount(places, minlength=len(edges) + 1)
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
    yield from (("language", word) for word in rules.normalise(row.languages))
    yield from (("framework", word) for word in rules.normalise(row.frameworks))
    if pattern := rules.fold(row.pattern):
        yield "pattern", pattern
