"""A store in memory, for callers that keep nothing."""

import copy
import threading
from collections import Counter
from contextlib import contextmanager

from cq import record
from cq.store.base import Closing, Found, bounds, clean, ranked, statistics
from cq.store.failures import Busy, Closed, Duplicate, Missing
from cq.store.text import words


class MemoryStore(Closing):
    """Units in order of insertion. Copies go in and out. Safe across threads."""

    name = "memory"

    def __init__(self):
        self._lock, self._draining = threading.RLock(), threading.Lock()
        self._units, self._held, self._notes = {}, {}, {}
        self._closed = False

    def close(self):
        self._closed = True

    @contextmanager
    def _open(self):
        with self._lock:
            if self._closed:
                raise Closed("the store is closed")
            yield

    def get(self, id):
        with self._open():
            return copy.deepcopy(self._units.get(id))

    def all(self):
        with self._open():
            return copy.deepcopy(list(self._units.values()))

    def add(self, unit):
        self.add_all([unit])

    def add_all(self, units):
        """Add these: all, or none. Raises Duplicate."""
        units = [copy.deepcopy(clean(unit)) for unit in units]
        with self._open():
            ids = {*self._units}
            for unit in units:
                if unit["id"] in ids:
                    raise Duplicate(f"{unit['id']} is there already")
                ids.add(unit["id"])
            self._units |= {unit["id"]: unit for unit in units}

    def update(self, unit):
        self.change(unit["id"], lambda _: unit)

    def change(self, id, function):
        """The unit as `function` makes it of what it was."""
        with self._open():
            if id not in self._units:
                raise Missing(f"{id} is not in this store")
            unit = clean(function(copy.deepcopy(self._units[id])))
            self._units[id] = copy.deepcopy(unit)
            return unit

    def delete(self, id):
        with self._open():
            if self._units.pop(id, None) is None:
                raise Missing(f"{id} is not in this store")

    def find(self, asked, question="", limit=5):
        """`Found`: units that share a tag, and those found by the words of a question."""
        limit = bounds(asked, limit)
        wanted = {word.casefold() for word in words(question)}
        counted = []
        for unit in self.all():
            texts = [unit["insight"][name] for name in ("summary", "detail", "action")]
            said = {word.casefold() for word in words(" ".join(texts))}
            if wanted & said or {*unit["domains"]} & {*asked.domains}:
                counted.append((len(wanted & said), unit))
        counted.sort(key=lambda each: -each[0])
        by_words = [unit["id"] for count, unit in counted if count]
        return Found(ranked((unit for _, unit in counted), asked, limit, by_words), [])

    def stats(self, recent=5):
        if recent < 0:
            raise ValueError("recent must not be negative")
        units = self.all()
        domains = Counter(domain for unit in units for domain in unit["domains"])
        newest = units[::-1][:recent]
        confidences = [unit["evidence"]["confidence"] for unit in units]
        return statistics(len(units), domains.items(), newest, confidences)

    def hold(self, unit, why):
        """Keep a candidate, with a reason, apart from the units."""
        unit = copy.deepcopy(record.complete(unit))
        with self._open():
            self._held[unit["id"]] = (unit, why, record.now())

    def held(self):
        """[(unit, why, at)], oldest first."""
        with self._open():
            return copy.deepcopy(list(self._held.values()))

    def release(self, id):
        with self._open():
            if self._held.pop(id, None) is None:
                raise Missing(f"{id} is not held")

    def note(self, key, value):
        """Remember a value of JSON under a key."""
        with self._open():
            self._notes[key] = copy.deepcopy(value)

    def noted(self, key):
        """That value, or None."""
        with self._open():
            return copy.deepcopy(self._notes.get(key))

    @contextmanager
    def draining(self):
        """Hold the right to drain. Raises Busy."""
        with self._open():
            if not self._draining.acquire(blocking=False):
                raise Busy("this store is being drained")
        try:
            yield
        finally:
            self._draining.release()
