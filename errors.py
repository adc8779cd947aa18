"""The refusals of the server, and the one JSON body they are told in: {"detail": ...}.

Failure 400
|-- Unauthorized 401
|-- Forbidden 403
|-- NotFound 404
|-- Conflict 409
|-- TooLarge 413
|-- Invalid 422          detail may be a list of {"type", "loc", "msg"}
|-- TooMany 429          with Retry-After
`-- Unavailable 503      with Retry-After
"""

import logging

from flask import jsonify
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

log = logging.getLogger("cq.errors")

# What SQLite says when it cannot write or read now but may again: busy, full, read-only, I/O.
PASSING = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
)
# The same of PostgreSQL, by the beginning of its codes: no connection, a conflict with another
# transaction, no room or memory, a lock, an end by an operator or by a limit of time, no disk, a
# stand-by that only reads.
PASSING_STATES = ("08", "40", "53", "55P03", "57", "58", "25P0", "25006")


class Failure(Exception):
    """An expected refusal. The class carries the status, so no table maps one to the other."""

    status = 400

    def __init__(self, detail, retry_after=None):
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after


class Unauthorized(Failure):
    status = 401


class Forbidden(Failure):
    status = 403


class NotFound(Failure):
    status = 404


class Conflict(Failure):
    status = 409


class TooLarge(Failure):
    status = 413


class Invalid(Failure):
    status = 422

    @classmethod
    def at(cls, *place, because):
        """One problem at a place such as ("body", "name"), in the shape that schemas give."""
        problem = {"type": "value_error", "loc": list(place), "msg": f"Value error, {because}"}
        return cls([problem])


class TooMany(Failure):
    status = 429


class Unavailable(Failure):
    status = 503


def passing(error):
    """What hinders the database now and may not later, in a word; None for a fault that stays."""
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return name if name.startswith(PASSING) else None
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state if state.startswith(PASSING_STATES) else None
    # What never came as far as an answer has no code.
    return "no connection" if isinstance(error, OperationalError) else None


def register(app):
    """Answer every error of the app in JSON; a 500 says nothing and logs everything."""

    @app.errorhandler(Failure)
    def failure(error):
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
        return jsonify(detail=error.detail), error.status, headers

    @app.errorhandler(HTTPException)
    def http(error):
        if isinstance(error, RequestEntityTooLarge):
            return failure(TooLarge("The body is larger than 256 KiB"))
        kept = {name: value for name, value in error.get_headers() if name != "Content-Type"}
        return jsonify(detail=error.name), error.code, kept

    @app.errorhandler(DBAPIError)
    def database(error):
        name = passing(error)
        if name is None:
            return unexpected(error)
        log.warning("the database cannot be used now: %s", name)
        return failure(Unavailable("The database is busy or full; try again", retry_after=2))

    @app.errorhandler(PoolTimeout)
    def crowded(error):
        log.warning("no database connection is free: %s", error)
        return failure(Unavailable("The server is busy; try again", retry_after=2))

    @app.errorhandler(Exception)
    def unexpected(error):
        log.error("unexpected failure", exc_info=error)
        return jsonify(detail="Internal Server Error"), 500
