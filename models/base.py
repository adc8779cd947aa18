"""The database handle, whose turn it is to write, the clock, and column types of our own."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from weakref import WeakKeyDictionary

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Text, TypeDecorator, bindparam, event, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from errors import Unavailable
from models.connection import PATIENCE, alone


class Base(DeclarativeBase):
    pass


db = SQLAlchemy(model_class=Base, session_options={"expire_on_commit": False})


def now(ago=0):
    """The time, or that of `ago` seconds past: UTC, 27 characters that sort as they read."""
    return iso(datetime.now(UTC) - timedelta(seconds=ago))


def iso(moment):
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def offset(time):
    """The dialect of all times outside a knowledge unit: `+00:00` instead of `Z`."""
    return time and time.replace("Z", "+00:00")


class Json(TypeDecorator):
    """JSON in a text column, compact and readable, so that full-text search can read it too."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value, dialect):
        if value is None:
            return None
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def process_result_value(self, value, dialect):
        return None if value is None else json.loads(value)


UNITS, PEOPLE, VECTORS = 1, 2, 3


class Change(db.Model):
    """The number of the last change to units, to people and keys, and to vectors. What is kept in
    memory follows these; see `write`.
    """

    __tablename__ = "changes"

    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int]

    @classmethod
    def last(cls, kind):
        """The number now; what another process wrote is noticed within `LAG` seconds."""
        engine = db.engine
        known = _known.get(engine)
        if known is None or known.written != _written or time.monotonic() > known.until:
            written, until = _written, time.monotonic() + LAG
            with engine.connect() as connection:
                rows = connection.exec_driver_sql("SELECT id, number FROM changes").all()
            known = _known[engine] = Known(written, until, dict(map(tuple, rows)))
        return known.numbers[kind]


class Known(NamedTuple):
    """What was read from `changes`: good until a commit of this process, or for a moment."""

    written: int
    until: float
    numbers: dict


LAG = 0.25
_known = WeakKeyDictionary()
_written = 0

# SQLite lets a waiting writer poll, and some starve; a lock of the process serves them in turn.
# PostgreSQL has a queue of its own, in which a process then stands once.
_turn = threading.Lock()


def turn(patience=PATIENCE):
    """Wait for this thread's turn to write, which the end of the transaction gives up.

    What was read earlier is forgotten. `patience` in seconds is for other threads and other
    processes together. Raises Unavailable.
    """
    session = db.session()
    if "turn" in session.info:
        return
    session.rollback()
    end = time.monotonic() + patience
    if not _turn.acquire(timeout=patience):
        raise Unavailable("The database is busy; try again", retry_after=2)
    session.info["turn"] = {}
    alone(session, end - time.monotonic())


def write(kind=UNITS):
    """Begin to write: the number of this change, alone with the database until the session ends it.

    Every verb that changes rows calls this before it reads, so that what it reads stays true. Two
    changes commit in the order of their numbers. Raises Unavailable.
    """
    turn()
    numbers = db.session.info["turn"]
    if kind not in numbers:
        numbers[kind] = db.session.execute(_NEXT, {"kind": kind}).scalar_one()
    return numbers[kind]


_NEXT = (
    update(Change)
    .where(Change.id == bindparam("kind"))
    .values(number=Change.number + 1)
    .returning(Change.number)
)


@event.listens_for(Session, "after_transaction_end")
def end_turn(session, transaction):
    """Give the turn up. The count of writes goes on first: what is read from here on is fresh."""
    global _written
    if transaction.parent is None:
        numbers = session.info.pop("turn", None)
        if numbers is not None:
            _written += bool(numbers)
            _turn.release()
