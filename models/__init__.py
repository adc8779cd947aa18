"""The tables, the verbs that change rows, and `wire()`: how a row looks in JSON.

Models change rows and never commit; views do, once, last. They know no request.
"""

from models.base import PEOPLE, UNITS, VECTORS, Change, db, now, write
from models.history import Event, Revision
from models.marks import Flag, UnitDomain, Vote
from models.people import Actor, ApiKey, EndedSession, User
from models.unit import LIVE, Unit
from models.vectors import Vector

__all__ = [
    "LIVE",
    "PEOPLE",
    "UNITS",
    "VECTORS",
    "Actor",
    "ApiKey",
    "Change",
    "EndedSession",
    "Event",
    "Flag",
    "Revision",
    "Unit",
    "UnitDomain",
    "User",
    "Vector",
    "Vote",
    "db",
    "now",
    "write",
]
