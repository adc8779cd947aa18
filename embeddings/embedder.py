"""The encoder in its own threads: loaded in the background, asked within a time, never trusted.

Whatever an encoder does (it cannot be loaded, raises, hangs, answers with what is no vector), the
caller gets `NoVector` with a cause in one word, at most PATIENCE seconds later. Causes are counted,
and logged once a minute.
"""

import logging
import queue
import threading
import time
from collections import Counter, OrderedDict
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate

import numpy as np

from embeddings.passages import whole

PATIENCE = 1.0
# Texts of several callers that are encoded at once.
TOGETHER = 8
REMEMBERED = 2048
LOGGED_EVERY = 60
# These pass by themselves and are no news.
EXPECTED = ("loading", "missing")
log = logging.getLogger("cq.embedder")


class NoVector(Exception):
    """No vector is to be had now: off, loading, failed, hanging, late, broken or wrong."""

    def __init__(self, cause):
        super().__init__(cause)
        self.cause = cause


class Embedder:
    """One encoder for a process. `load` makes it; None stands for an embedder that is off.

    `state` is off, idle, loading, ready or failed; `reason` says in a line why it failed, and
    `trouble` what is wrong with its latest answer, if anything. Safe across threads.
    """

    def __init__(self, load=None):
        self._load = load
        self.state = "idle" if load else "off"
        self.reason = self._wrong = None
        self.encoder = None
        self.fallbacks = Counter()
        self._settled = threading.Event()
        self._asked = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._remembered = OrderedDict()
        self._busy_since = None
        self._told = {}
        self._clock = time.monotonic

    def start(self):
        """Begin to load in the background; nothing if that was begun before."""
        with self._lock:
            if self.state != "idle":
                return
            self.state = "loading"
        threading.Thread(target=self._serve, name="cq-embedder", daemon=True).start()

    def stop(self):
        """End the thread after what it is at."""
        self._asked.put(None)

    def settled(self, timeout=None):
        """Wait until it is ready or has failed; whether it is ready."""
        self._settled.wait(timeout)
        return self.state == "ready"

    def _serve(self):
        try:
            encoder = self._load()
            # The first encoding is the slowest, and shows whether it can encode at all.
            self._encoded(encoder, ["warm"])
            self.encoder, self.state = encoder, "ready"
        # A library of native code may raise what is no Exception; this thread has nobody above it.
        except BaseException as fault:
            self.state, self.reason = "failed", _why(fault)
            log.error("the embedder failed: %s", self.reason, exc_info=fault)
        finally:
            self._settled.set()
        while self.state == "ready" and (asked := self._asked.get()) is not None:
            batch = [asked]
            while len(batch) < TOGETHER and not self._asked.empty():
                more = self._asked.get()
                if more is None:
                    self._asked.put(None)
                    break
                batch.append(more)
            self._answer(batch)

    def _answer(self, batch):
        self._busy_since = self._clock()
        try:
            rows = self._encoded(self.encoder, [text for text, _ in batch])
            for (text, answer), row in zip(batch, rows, strict=True):
                self._remember(text, row)
                answer.set_result(row)
        except BaseException as fault:
            for _, answer in batch:
                answer.set_exception(fault)
        finally:
            self._busy_since = None

    def _encoded(self, encoder, texts):
        """The vectors of texts, checked. Raises what the encoder raises, and Wrong."""
        try:
            rows = np.asarray(encoder.encode(texts), np.float32)
            if rows.shape != (len(texts), encoder.dimension) or not whole(rows):
                raise Wrong(f"{rows.shape} is not {len(texts)} unit vectors of {encoder.dimension}")
        except BaseException as fault:
            self._wrong = _why(fault)
            raise
        self._wrong = None
        return rows

    def _remember(self, text, row):
        with self._lock:
            self._remembered[text] = row
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)

    def vectors(self, texts):
        """A vector of length 1 for each text, in the order given. Raises NoVector."""
        if self.state != "ready":
            raise self._fallback("loading" if self.state == "idle" else self.state)
        with self._lock:
            known = {text: self._remembered.get(text) for text in texts}
            for text, row in known.items():
                if row is not None:
                    self._remembered.move_to_end(text)
        missing = [text for text, row in known.items() if row is None]
        if missing:
            known.update(self._wait(missing))
        return [known[text] for text in texts]

    def _wait(self, texts):
        if (self.hangs_for or 0) > PATIENCE:
            raise self._fallback("hanging")
        end = self._clock() + PATIENCE
        answers = {text: Future() for text in texts}
        for pair in answers.items():
            self._asked.put(pair)
        try:
            return {
                text: answer.result(max(0, end - self._clock())) for text, answer in answers.items()
            }
        except TooLate:
            raise self._fallback("late") from None
        except Wrong as fault:
            raise self._fallback("wrong", fault) from None
        # What an encoder raises, MemoryError and panics of native code among it.
        except BaseException as fault:
            raise self._fallback("broken", fault) from None

    @property
    def hangs_for(self):
        """Seconds since the encoder was given what it is at, or None if it rests."""
        since = self._busy_since
        return None if since is None else self._clock() - since

    @property
    def trouble(self):
        hangs_for = self.hangs_for or 0
        if hangs_for > PATIENCE:
            return f"the model has not answered for {hangs_for:.0f} s"
        return self._wrong

    def documents(self, texts):
        """The same for texts of any length, in this thread and as long as it takes.

        Raises what the encoder raises, and Wrong.
        """
        return self._encoded(self.encoder, texts)

    def _fallback(self, cause, fault=None):
        self.fallback(cause, fault)
        return NoVector(cause)

    def fallback(self, cause, fault=None):
        """Count an answer without a vector; tell of it once a minute, unless it is expected."""
        if cause == "off":
            return
        now = self._clock()
        with self._lock:
            self.fallbacks[cause] += 1
            count, told = self.fallbacks[cause], self._told.get(cause, -LOGGED_EVERY)
            if cause in EXPECTED or now - told < LOGGED_EVERY:
                return
            self._told[cause] = now
        log.warning("the embedder is %s, %d times by now", cause, count, exc_info=fault)


class Wrong(Exception):
    """What the encoder answered is no vector."""


def _why(fault):
    """A line for whoever reads /ready: what is the matter, no path."""
    if isinstance(fault, ModuleNotFoundError) and fault.name:
        return f"the package {fault.name} is not installed"
    if isinstance(fault, FileNotFoundError):
        return "the model is missing"
    if isinstance(fault, MemoryError):
        return "there is not enough memory for the model"
    if isinstance(fault, Wrong):
        return "the model answers with what is no vector"
    return f"the model fails ({type(fault).__name__}, see the log)"
