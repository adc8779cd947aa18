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
from sqlalchemy.exc import OperationalError
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

    @app.errorhandler(OperationalError)
    def database(error):
        name = getattr(error.orig, "sqlite_errorname", "")
        if not name.startswith(PASSING):
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
