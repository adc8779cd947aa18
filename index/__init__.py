"""The approved units by tag, in memory: compact arrays that follow the database's change counter.

The commonest tag may stand on half of all units, so ranking must not read every unit that shares
one. Units are kept in order of confidence; a query walks its tags' units in that order and stops
once no later one can score higher. What changed since the order was made stands aside and is ranked
one by one. Nothing of a unit's text is held here.
"""

import heapq
import logging
import threading
from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from cq import unit as rules
from index.order import GONE, PRIVATE, PUBLIC, Asked, Growing, Order
from models import UNITS, Change, Unit, db

_TIERS = {"private": PRIVATE, "public": PUBLIC}
# So many domains are counted in an answer, the commonest.
DOMAINS = 1000
# So many changed units stand aside before the order is made anew.
ASIDE = 256
log = logging.getLogger("cq.index")

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


class Evidence(NamedTuple):
    """How well a unit fits the words of a query, whether it shares a tag, and its confidence."""

    relevance: float
    shares: bool
    confidence: float


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
        """Take in all up to this number, in a transaction of its own: one that began earlier, as
        the request's may have, would not see it all.
        """
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
        try:
            with db.engine.connect() as connection:
                self._take(connection.execution_options(yield_per=5000).execute(statement), whole)
        except SQLAlchemyError:
            # Half of it may be taken in: begin anew at the next call.
            self._clear()
            raise
        self.seen = number
        self.remembered = {}
        if whole or len(self.aside) > ASIDE:
            self._arrange()

    def _take(self, rows, whole):
        fresh, postings, aside = [], {}, {}
        for row in rows:
            slot = self.slots.get(row.pk)
            if slot is not None:
                self.aside.pop(slot, None)
                self.order.set_aside(slot)
            try:
                words, values = set(_words(row)), _slot(row)
            except (KeyError, TypeError, ValueError) as fault:
                # One bad row, however it came there, is left out and spoils nothing else.
                log.error("unit %s cannot be served: %r", row.id, fault)
                words = None
            if row.status != "approved" or words is None:
                self._drop(row.pk, slot)
                continue
            if slot is not None and self.columns["revision"].room[slot] == row.revision:
                self._update(slot, row)
            else:
                self._drop(row.pk, slot)
                slot = self.columns["pk"].size + len(fresh)
                self.slots[row.pk] = slot
                fresh.append(values)
                for word in words:
                    postings.setdefault(word, []).append(slot)
            if not whole:
                aside[slot] = words
        for name, values in zip(COLUMNS, zip(*fresh, strict=True), strict=False):
            self.columns[name].extend(values)
        for word, slots in postings.items():
            self.postings.setdefault(word, Growing(np.int32)).extend(slots)
        self.aside.update(aside)

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
        with self.lock:
            slot = self.slots.get(pk)
            return None if slot is None else int(self.columns["changed"].all[slot])

    def served(self, pks, private=True):
        """Those of these units that agents see."""
        least = PRIVATE if private else PUBLIC
        with self.lock:
            tier, slots = self.columns["tier"].room, self.slots
            return {pk for pk in pks if pk in slots and tier[slots[pk]] >= least}

    def look(self, pks, asked, private=True):
        """{row number: Evidence} of those of these units that agents see."""
        least = PRIVATE if private else PUBLIC
        with self.lock:
            tier, confidence = self.columns["tier"].room, self.columns["confidence"].room
            pks = [pk for pk in pks if pk in self.slots and tier[self.slots[pk]] >= least]
            slots = np.array([self.slots[pk] for pk in pks], np.int32)
            shared = self._having([("domain", word) for word in asked.domains], slots)
            either = self.columns["tags"].room[slots] + len(asked.domains) - shared
            relevance = rules.WEIGHTS["domain"] * shared / np.maximum(either, 1)
            for kind, words in asked.lifts():
                having = self._having([(kind, word) for word in words], slots)
                relevance += rules.WEIGHTS[kind] * (having > 0)
            told = zip(
                relevance.tolist(), (shared > 0).tolist(), confidence[slots].tolist(), strict=True
            )
            return {pk: Evidence(*each) for pk, each in zip(pks, told, strict=True)}

    def _having(self, words, slots):
        """How many of the words each slot's unit has. Slots of a word rise."""
        count = np.zeros(len(slots), np.int64)
        for word in words:
            posting = self.postings.get(word)
            if posting is not None:
                places = posting.all.searchsorted(slots)
                places[places == posting.size] = 0
                count += posting.all[places] == slots
        return count

    def count(self):
        """How many units agents see, private ones too."""
        return len(self.slots)

    def tags(self):
        """The domains that any unit has or had since the index was read."""
        with self.lock:
            return [word for kind, word in self.postings if kind == "domain"]

    def has(self, domain, private=True):
        """Whether any unit that agents see has this domain."""
        least = PRIVATE if private else PUBLIC
        with self.lock:
            posting = self.postings.get(("domain", domain))
            tier = self.columns["tier"].room
            return posting is not None and bool((tier[posting.all] >= least).any())

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
        """What `make` gives, worked out once a change under this key.

        What takes longer than until the next change is kept for nobody.
        """
        remembered = self.remembered
        if key not in remembered:
            remembered[key] = make()
        return remembered[key]

    def _stats(self, least, edges):
        with self.lock:
            return self._counted(least, edges)

    def _counted(self, least, edges):
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
            "domain_counts": {name: count for name, count in ordered[:DOMAINS] if count},
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
