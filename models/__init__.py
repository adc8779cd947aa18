"""The tables, the verbs that change rows, and `wire()`: how a row looks in JSON.

Models change rows and never commit; views do, once, last. They know no request.
"""

from models.base import PEOPLE, UNITS, Change, db, now
from models.history import Event, Revision
from models.marks import Flag, UnitDomain, Vote
from models.people import Actor, ApiKey, User
from models.unit import Unit

__all__ = [
    "PEOPLE",
    "UNITS",
    "Actor",
    "ApiKey",
    "Change",
    "Event",
    "Flag",
    "Revision",
    "Unit",
    "UnitDomain",
    "User",
    "Vote",
    "db",
    "now",
]
