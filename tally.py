"""What agents ask for and are served, counted in memory and written in the background.

A query only leaves a note: it waits for no lock and no database. Questions and callers are not
noted. What was noted within EVERY seconds before a process is killed is lost.
"""

import logging
import threading
import time
from collections import Counter, deque

from flask import current_app
from sqlalchemy.exc import SQLAlchemyError

from cq import safety
from errors import Unavailable
from models import db
from models.base import turn
from models.gaps import Query, Use, today

# Seconds between two writings, and between two looks for what is too old.
EVERY, SWEEP = 3, 3600
# So many notes wait to be counted, and so many sets of tags and units to be written; more are lost.
NOTES, MOST = 50_000, 5000
# So many rows are written at once: other writers have to get their turn.
AT_ONCE = 500
log = logging.getLogger("cq.tally")


def init_app(app):
    app.extensions["cq_tally"] = Tally(app)


def note(tags, units):
    """A query by these tags was answered with the units of these row numbers."""
    current_app.extensions["cq_tally"].note(tags, units)


def flush(app):
    """Write what is noted so far. Raises Unavailable and what the database raises."""
    app.extensions["cq_tally"].flush()


def stop(app):
    """Write what is noted, and end the thread of an app."""
    app.extensions["cq_tally"].stop()


class Tally:
    """One for each app; the first query starts its thread, which without the log only sweeps."""

    def __init__(self, app):
        self.app = app
        self.on = app.config["CQ_QUERY_LOG"]
        self._notes = deque(maxlen=NOTES)
        self._queries, self._served = {}, Counter()
        self._swept = None
        self._stopped = threading.Event()
        self._starting, self._writing = threading.Lock(), threading.Lock()
        self._thread = None

    def note(self, tags, units):
        if self.on:
            self._notes.append((tuple(tags), tuple(units)))
        if self._thread is None:
            self._start()

    def _start(self):
        with self._starting:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="cq-tally", daemon=True)
                self._thread.start()

    def stop(self):
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self):
        while not self._stopped.wait(EVERY):
            self._write(patience=2)
        self._write(patience=1)

    def _write(self, patience):
        try:
            self.flush(patience)
        except (SQLAlchemyError, Unavailable) as fault:
            # What a busy or full database does not take now is written with what comes next.
            log.warning("counts wait for the database: %s", type(fault).__name__)
        # This thread has nobody above it, and without it nothing is counted any more.
        except Exception:
            log.exception("a writing of the counts failed")

    def flush(self, patience=2):
        """Write what was noted so far. Raises Unavailable and what the database raises."""
        with self._writing, self.app.app_context():
            try:
                self._count()
                while self._queries or self._served:
                    self._piece(patience)
                if self._swept is None or time.monotonic() > self._swept + SWEEP:
                    turn(patience)
                    Query.sweep()
                    db.session.commit()
                    self._swept = time.monotonic()
            finally:
                db.session.remove()

    def _piece(self, patience):
        """Write some of it in a transaction of its own; what is committed is forgotten here."""
        queries = dict(list(self._queries.items())[:AT_ONCE])
        served = dict(list(self._served.items())[:AT_ONCE])
        turn(patience)
        Query.add(queries)
        Use.add(today(), served)
        db.session.commit()
        for key in queries:
            del self._queries[key]
        for pk in served:
            del self._served[pk]

    def _count(self):
        """Make counts of the notes."""
        day = today()
        while self._notes:
            tags, units = self._notes.popleft()
            tags = tuple(sorted(set(tags)))
            if (day, tags) not in self._queries and safety.check_text("domains", "\n".join(tags)):
                # What looks like a secret, a person or a place is no tag to keep.
                tags = ()
            asked, missed = self._queries.get((day, tags), (0, 0))
            if asked or len(self._queries) < MOST:
                self._queries[day, tags] = asked + 1, missed + (not units)
            for pk in units:
                if pk in self._served or len(self._served) < MOST:
                    self._served[pk] += 1
