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
from concurrent.futures import Future, wait

import numpy as np

from embeddings.passages import whole

PATIENCE = 1.0
# Units may take as long before that counts as hanging, and the model as long to be loaded.
LONG = 60
# Texts of several callers that are encoded at once; with more, all callers wait for the same batch
# and then none is being encoded while they rank.
TOGETHER = 8
REMEMBERED = 2048
LOGGED_EVERY = 60
log = logging.getLogger("cq.embedder")


class NoVector(Exception):
    """No vector is to be had now: off, loading, failed, hanging, late, broken or wrong."""


class Wrong(Exception):
    """What the encoder answered is no vector."""


class Use:
    """How one use of the encoder goes: since when it is at a text, and what went wrong last."""

    def __init__(self, patience, clock):
        self.patience, self.clock = patience, clock
        self.since = None
        self.wrong = None

    @property
    def lasts(self):
        """Seconds since the encoder was given what it is at; 0 if it rests."""
        since = self.since
        return 0.0 if since is None else self.clock() - since

    @property
    def hangs(self):
        return self.lasts > self.patience()

    @property
    def trouble(self):
        """What is wrong, in a line, or None."""
        if self.hangs:
            return f"the model has not answered for {self.lasts:.0f} s"
        return self.wrong

    def encode(self, encoder, texts):
        """The vectors of texts, checked. Raises what the encoder raises, and Wrong."""
        self.since = self.clock()
        try:
            rows = _numbers(encoder.encode(texts))
            if rows.shape != (len(texts), encoder.dimension) or not whole(rows):
                raise Wrong(f"{rows.shape} is not {len(texts)} unit vectors of {encoder.dimension}")
            slow = f"the model took {self.lasts:.0f} s, longer than anybody waits"
            self.wrong = slow if self.hangs else None
            return rows
        except BaseException as fault:
            self.wrong = why(fault)
            raise
        finally:
            self.since = None


class Embedder:
    """One encoder for a process. `load` makes it; None stands for an embedder that is off.

    `state` is off, idle, loading, ready or failed, and `reason` says in a line why it failed.
    `questions` and `units` tell how these two uses go. Safe across threads.
    """

    def __init__(self, load=None):
        self._load = load
        self.state = "idle" if load else "off"
        self.reason = None
        self.encoder = None
        self.fallbacks = Counter()
        self._clock = time.monotonic
        self.questions = Use(lambda: PATIENCE, lambda: self._clock())
        self.units = Use(lambda: LONG, lambda: self._clock())
        self._began = None
        self._settled = threading.Event()
        self._asked = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._remembered = OrderedDict()
        self._told = {}

    def start(self):
        """Begin to load in the background; nothing if that was begun before."""
        with self._lock:
            if self.state != "idle":
                return
            self.state = "loading"
            self._began = self._clock()
        threading.Thread(target=self._serve, name="cq-embedder", daemon=True).start()

    def stop(self):
        """End the thread after what it is at; nobody waits for it to be ready any more."""
        self._asked.put(None)
        self._settled.set()

    def settled(self):
        """Wait until it is ready or has failed; whether it is ready."""
        self._settled.wait()
        return self.state == "ready"

    def load(self):
        """Load in this thread. Raises what that raises."""
        try:
            encoder = self._load()
            # The first encoding is the slowest, and shows whether it can encode at all.
            self.units.encode(encoder, ["warm"])
            self.encoder, self.state = encoder, "ready"
        except BaseException as fault:
            self.state, self.reason = "failed", why(fault)
            raise
        finally:
            self._settled.set()

    def _serve(self):
        try:
            self.load()
        # A library of native code may raise what is no Exception; this thread has nobody above it.
        except BaseException as fault:
            log.error("the embedder failed: %s", self.reason, exc_info=fault)
            return
        while (asked := self._asked.get()) is not None:
            batch = [asked]
            while len(batch) < TOGETHER and not self._asked.empty():
                batch.append(self._asked.get())
            # Whoever waited too long has left.
            kept = [each for each in batch if each and each[1].set_running_or_notify_cancel()]
            if kept:
                self._answer(kept)
            if None in batch:
                return

    def _answer(self, batch):
        try:
            rows = self.questions.encode(self.encoder, [text for text, _ in batch])
            for (text, answer), row in zip(batch, rows, strict=True):
                self._remember(text, row)
                answer.set_result(row)
        except BaseException as fault:
            if len(batch) > 1:
                # One text that it fails at shall not cost the others their answers.
                for each in batch:
                    if not each[1].done():
                        self._answer([each])
            elif not batch[0][1].done():
                batch[0][1].set_exception(fault)

    def _remember(self, text, row):
        with self._lock:
            # A copy: a row alone would keep the whole batch in memory.
            self._remembered[text] = row.copy()
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)

    def vectors(self, texts, meanwhile=None):
        """A vector of length 1 for each text, in the order given. Raises NoVector.

        `meanwhile` is called while the caller would only wait.
        """
        if self.state != "ready":
            raise self._no_vector("loading" if self.state == "idle" else self.state)
        with self._lock:
            known = {text: self._remembered.get(text) for text in texts}
            for text, row in known.items():
                if row is not None:
                    self._remembered.move_to_end(text)
        missing = [text for text, row in known.items() if row is None]
        if missing:
            known.update(self._wait(missing, meanwhile))
        return [known[text] for text in texts]

    def _wait(self, texts, meanwhile):
        if self.questions.hangs:
            raise self._no_vector("hanging")
        answers = {text: Future() for text in texts}
        for pair in answers.items():
            self._asked.put(pair)
        until = self._clock() + PATIENCE
        if meanwhile:
            meanwhile()
        late = wait(answers.values(), max(0.0, until - self._clock())).not_done
        if late:
            for answer in late:
                answer.cancel()
            raise self._no_vector("late")
        for answer in answers.values():
            if fault := answer.exception():
                raise self._no_vector("wrong" if isinstance(fault, Wrong) else "broken", fault)
        return {text: answer.result() for text, answer in answers.items()}

    def documents(self, texts):
        """The same for texts of any length, in this thread and as long as it takes.

        Raises what the encoder raises, and Wrong.
        """
        return self.units.encode(self.encoder, texts)

    def _no_vector(self, cause, fault=None):
        self.fallback(cause, fault)
        return NoVector(cause)

    def fallback(self, cause, fault=None):
        """Count an answer without a vector; tell of it once a minute, unless it is expected."""
        if cause == "off":
            return
        now = self._clock()
        # These pass by themselves, as a rule.
        began = now if self._began is None else self._began
        expected = (cause == "loading" and now - began < LONG) or (
            cause == "missing" and not self.units.hangs
        )
        with self._lock:
            self.fallbacks[cause] += 1
            count, told = self.fallbacks[cause], self._told.get(cause, -LOGGED_EVERY)
            if expected or now - told < LOGGED_EVERY:
                return
            self._told[cause] = now
        log.warning("the embedder is %s, %d times by now", cause, count, exc_info=fault)


def _numbers(answer):
    """What an encoder answered as float32. Raises Wrong."""
    try:
        rows = np.asarray(answer)
        if rows.dtype.kind not in "fiu":
            raise Wrong(f"{rows.dtype} is no type of numbers")
        with np.errstate(all="ignore"):
            return rows.astype(np.float32)
    except (TypeError, ValueError) as fault:
        raise Wrong(f"{type(answer).__name__} is no array of numbers ({fault})") from None


def why(fault):
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
