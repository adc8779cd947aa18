"""The embedder of an app with what it made: whether answers go by meaning now, and if not, why."""

import threading
from typing import NamedTuple

import numpy as np

from embeddings import Embedder, NoVector
from search.kin import Kin
from search.worker import Worker

# The part of the approved units that must have vectors: among fewer, an answer by meaning would be
# about which units were embedded already.
ENOUGH = 0.9
# The most that is waited for the worker's thread at the end.
LAST = 3


class Meant(NamedTuple):
    """The vector of what is asked, and the tags that are nearly those asked for, 0..1 near."""

    vector: np.ndarray
    kin: list
    likeness: float


class Meaning:
    """One for each app; `start` begins to load the model, and asking for an answer does, too."""

    def __init__(self, app, load, vectors):
        self.embedder = Embedder(load)
        self.vectors = vectors
        self.kin = Kin()
        self._worker = Worker(app, self.embedder, self.vectors, self.kin)
        self._lock = threading.Lock()
        self._thread = None

    def start(self):
        """Load the model in the background and keep up with the store; nothing if begun before."""
        if self._thread is not None or self.embedder.state == "off":
            return
        with self._lock:
            if self._thread is None:
                self.embedder.start()
                self._thread = threading.Thread(
                    target=self._worker.run, name="cq-vectors", daemon=True
                )
                self._thread.start()

    def stop(self):
        """End the threads after what they are at."""
        self._worker.stop()
        self.embedder.stop()
        if self._thread is not None:
            self._thread.join(LAST)

    def hindrance(self, index):
        """(cause in a word, reason in a line) why answers go by tags and words, or None."""
        embedder = self.embedder
        if embedder.state == "off":
            return "off", "CQ_EMBEDDER is off"
        if embedder.state == "failed":
            return "failed", embedder.reason
        if embedder.state != "ready":
            return "loading", "the model is being loaded"
        if not self.vectors.loaded:
            return "loading", "the vectors are being read"
        self.vectors.follow()
        having, units = self.vectors.count(), index.count()
        if having < ENOUGH * units:
            few = f"{having} of {units} approved units have vectors of this model yet"
            trouble = embedder.units.trouble
            return "missing", f"{few}; {trouble}" if trouble else few
        return None

    def meant(self, question, domains, index, private, meanwhile=None):
        """What the question means, or the domains where there is none. None in domain mode.

        `meanwhile` is called while the encoder is at it.
        """
        asked = question or ", ".join(domains)
        if not asked:
            return None
        hindrance = self.hindrance(index)
        if hindrance:
            self.embedder.fallback(hindrance[0])
            return None
        known = {word: self.kin.of(word) for word in domains}
        fresh = [word for word, row in known.items() if row is None]
        try:
            vector, *rows = self.embedder.vectors([asked, *fresh], meanwhile)
        except NoVector:
            return None
        known.update(zip(fresh, rows, strict=True))
        near = {
            word: self.kin.nearest(word, row, lambda tag: index.has(tag, private))
            for word, row in known.items()
        }
        found = [likeness for _, likeness in filter(None, near.values())]
        kin = dict.fromkeys(near[word][0] if near[word] else word for word in domains)
        return Meant(vector, [*kin] if found else [], sum(found) / len(found) if found else 0.0)

    def alike(self, pk, limit, index):
        """[(row number, similarity)] of live units, nearest first; None in domain mode, and for a
        unit that has no vector yet.
        """
        return None if self.hindrance(index) else self.vectors.alike(pk, limit)

    def status(self, index):
        """What /ready tells."""
        hindrance = self.hindrance(index)
        reason = hindrance[1] if hindrance else self.embedder.questions.trouble
        told = {"state": self.embedder.state}
        if self.embedder.encoder:
            told["model"] = self.embedder.encoder.model
        if reason:
            told["reason"] = reason
        if self.embedder.state != "off":
            told["nearest"] = self.vectors.store
        if self.vectors.loaded:
            told["vectors"] = self.vectors.count()
        if self.embedder.fallbacks:
            told["fallbacks"] = dict(self.embedder.fallbacks)
        return ("domain" if reason else "semantic"), told
