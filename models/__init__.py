"""The tables, the verbs that change rows, and `wire()`: how a row looks in JSON.

Models change rows and never commit; views do, once, last. They know no request.
"""

from models import connection, door, near
from models.base import PEOPLE, UNITS, VECTORS, Change, db, now, write
from models.gaps import Query, Use
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
    "Query",
    "Revision",
    "Unit",
    "UnitDomain",
    "Use",
    "User",
    "Vector",
    "Vote",
    "connection",
    "db",
    "door",
    "near",
    "now",
    "write",
]
