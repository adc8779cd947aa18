"""Structured logs: one JSON object a line on stderr, with a request id and without secrets."""

import json
import logging
import re
import sys
import time
import uuid

from flask import g, has_request_context, request

# An API key, and a session's token, wherever somebody put them.
SECRET = re.compile(r"cqa\.v1\.[\w.~%-]*|eyJ[\w-]+\.[\w-]+\.[\w-]*", re.IGNORECASE)
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

access = logging.getLogger("cq.access")


class Lines(logging.Formatter):
    def format(self, record):
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if has_request_context() and hasattr(g, "request_id"):
            line["request_id"] = g.request_id
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return SECRET.sub("[hidden]", json.dumps(line, ensure_ascii=False))


def start(level):
    """Send what this process logs to stderr; only a server does, commands speak to a person."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for talkative, least in (("waitress.queue", logging.ERROR), ("alembic", logging.WARNING)):
        logging.getLogger(talkative).setLevel(least)


def init_app(app):
    app.before_request(begin)
    app.after_request(end)


def begin():
    g.started = time.perf_counter()
    asked = request.headers.get("X-Request-ID", "")
    g.request_id = asked if REQUEST_ID.fullmatch(asked) else uuid.uuid4().hex


def end(response):
    response.headers["X-Request-ID"] = g.request_id
    access.info(
        "%s %s %s",
        request.method,
        request.path,
        response.status_code,
        extra={
            "fields": {
                "ms": round(1000 * (time.perf_counter() - g.started), 1),
                "address": request.remote_addr,
                "user": g.actor.name if g.get("actor") else None,
            }
        },
    )
    return response
