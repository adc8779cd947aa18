"""Embed what is new or changed, in the background, and give up nothing over a restart."""

import logging
import random
import threading
import time

from sqlalchemy import tuple_
from sqlalchemy.exc import SQLAlchemyError

from embeddings import digest, pack, passages, pooled, unpack
from errors import Unavailable
from models import UNITS, Change, Unit, Vector, db, near

# Units that are embedded at once: a question that comes meanwhile shares the processor with them.
AT_ONCE = 16
# They are drawn from so many, so that two processes seldom embed the same.
WINDOW = 8 * AT_ONCE
# Seconds between two looks for what is new, and until an encoder that failed is tried again.
LOOK, PAUSE = 0.2, 30
# No row number is greater.
END = (1 << 31) - 1
log = logging.getLogger("cq.vectors")


def waits(row):
    """Whether the vectors of a unit are missing or of other words; a row of `Vector.texts`."""
    return digest(row.summary, row.detail) != row.content_hash


def embed(embedder, rows):
    """Make and write the vectors of these units. Raises what the encoder raises."""
    texts = [passages(row.summary, row.detail) for row in rows]
    # What was read is in hand: no transaction stays open while the encoder works.
    db.session.rollback()
    vectors = embedder.documents([text for each in texts for text in each])
    made, start = {}, 0
    for row, each in zip(rows, texts, strict=True):
        unit = pooled(vectors[start : start + len(each)])
        made[row.pk] = digest(row.summary, row.detail), [pack(vector) for vector in unit]
        start += len(each)
    Vector.put(embedder.encoder.model, embedder.encoder.dimension, made)
    db.session.commit()


def reindex(embedder):
    """Make what vectors are missing, damaged or of other words; yields how many units are done.

    What is written stays, so that another run goes on from there. Raises what the encoder raises.
    """
    model, dimension = embedder.encoder.model, embedder.encoder.dimension
    if near.serves(db.engine):
        near.fill(model, dimension, lambda blob: unpack(blob, dimension) is not None)
        near.index(model, dimension)
    last = 0
    while rows := Vector.texts(model, dimension, Unit.pk > last, (Unit.pk,), WINDOW):
        last = rows[-1].pk
        kept = [row.pk for row in rows if not waits(row)]
        read = Vector.read(db.session.connection(), model, dimension, Vector.unit_pk.in_(kept))
        whole = dict.fromkeys(kept, True)
        for row in read:
            whole[row.unit_pk] &= unpack(row.vector, dimension) is not None
        waiting = [row for row in rows if not whole.get(row.pk)]
        yield len(rows) - len(waiting)
        for start in range(0, len(waiting), AT_ONCE):
            batch = waiting[start : start + AT_ONCE]
            embed(embedder, batch)
            yield len(batch)
        db.session.rollback()


class Worker:
    """Keeps the vectors of the embedder's model up with the live units; `run` is for a thread.

    What changes is embedded first, then what was there without a vector, newest first.
    """

    def __init__(self, app, embedder, vectors, kin):
        self.app, self.embedder, self.vectors, self.kin = app, embedder, vectors, kin
        self._stopped = threading.Event()
        self._fresh = None
        self._backlog = END
        # {row number: hash of the words} that the encoder failed at, and tags; tried again later.
        self._left = {}
        self._left_tags = set()
        self._again = self._paused_until = 0.0
        self._failing = 0

    def stop(self):
        self._stopped.set()

    def run(self):
        if not self.embedder.settled():
            return
        encoder = self.embedder.encoder
        with self.app.app_context():
            while not self._stopped.is_set():
                more = False
                try:
                    if not self.vectors.loaded:
                        self.vectors.load(encoder.model, encoder.dimension)
                    more = self._step()
                except (SQLAlchemyError, Unavailable) as fault:
                    # What a busy or full database does not take now is done at a later look.
                    log.warning("vectors wait for the database: %s", type(fault).__name__)
                    self._stopped.wait(1)
                # This thread has nobody above it, and without it nothing is embedded any more.
                except Exception:
                    log.exception("a step of the vectors failed")
                    self._stopped.wait(PAUSE)
                finally:
                    db.session.remove()
                if not more:
                    self._stopped.wait(LOOK)

    def _step(self):
        """Do a piece of work; whether there may be more."""
        number = Change.last(UNITS)
        if self._fresh is None:
            self._fresh = (number, END)
        self.vectors.follow()
        if time.monotonic() < self._paused_until:
            return False
        if self._fresh < (number, END):
            place = (Unit.changed, Unit.pk)
            rows = self._texts(tuple_(*place) > tuple_(*self._fresh), place)
            if self._piece(rows):
                whole = len(rows) < WINDOW
                self._fresh = (number, END) if whole else (rows[-1].changed, rows[-1].pk)
            return True
        if self._backlog:
            rows = self._texts(Unit.pk < self._backlog, (Unit.pk.desc(),))
            if self._piece(rows):
                self._backlog = rows[-1].pk if rows else None
            return True
        return self._tags() or self._once_more()

    def _once_more(self):
        """Try again what the encoder failed at."""
        if time.monotonic() < self._again or not (self._left or self._left_tags):
            return False
        self._left_tags.clear()
        pks = list(self._left)[:AT_ONCE]
        for pk in pks:
            del self._left[pk]
        self._piece(self._texts(Unit.pk.in_(pks), (Unit.pk,)))
        # Where one failed again, `_failed` has set the time for the next try.
        return True

    def _texts(self, where, order):
        encoder = self.embedder.encoder
        return Vector.texts(encoder.model, encoder.dimension, where, order, WINDOW)

    def _piece(self, rows):
        """Embed some of these; whether all of them are done with, or left for later."""
        waiting = [row for row in rows if self._waits(row)]
        chosen = random.sample(waiting, min(AT_ONCE, len(waiting)))
        for row in self._failed(chosen, self._embed, "units"):
            self._left[row.pk] = digest(row.summary, row.detail)
        return len(chosen) == len(waiting)

    def _failed(self, chosen, work, what):
        """Those of them that the encoder fails at, alone too. If it fails at all it has a rest."""
        if not chosen or self._works(chosen, work, what):
            return []
        alone = len(chosen) == 1
        failed = chosen if alone else [one for one in chosen if not self._works([one], work, what)]
        if failed:
            self._again = time.monotonic() + PAUSE
        if self._failing > 1:
            self._paused_until = time.monotonic() + PAUSE
        return failed

    def _works(self, chosen, work, what):
        try:
            work(chosen)
        except (SQLAlchemyError, Unavailable):
            raise
        except BaseException as fault:
            self._failing += len(chosen) == 1
            self.embedder.fallback(f"broken for {what}", fault)
            return False
        self._failing = 0
        return True

    def _embed(self, rows):
        embed(self.embedder, rows)

    def _waits(self, row):
        if self._left.get(row.pk) == digest(row.summary, row.detail):
            return False
        return waits(row) or not self.vectors.has(row.pk)

    def _tags(self):
        """Embed tags that are new in the store."""
        index = self.app.extensions["cq_index"]
        index.follow()
        known = index.tags()
        words = [word for word in self.kin.missing(known) if word not in self._left_tags][:WINDOW]
        self._left_tags.update(self._failed(words, self._kin, "tags"))
        return bool(words)

    def _kin(self, words):
        self.kin.add(words, self.embedder.documents(words))
