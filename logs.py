"""Structured logs on stderr, a line each: JSON or text, with a request id and without secrets.

Knows what a secret looks like, and not who is calling.
"""

import ipaddress
import json
import logging
import re
import sys
import time
import uuid
from urllib.parse import unquote

from flask import current_app, g, has_request_context, request

# An API key, and a session's token, wherever somebody put them.
SECRET = re.compile(r"cqa\.v1\.[\w.~%-]*|eyJ[\w-]+\.[\w-]+\.[\w-]*", re.IGNORECASE)
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What would end a line of text, or write over it in a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

access = logging.getLogger("cq.access")


class Lines(logging.Formatter):
    """A JSON object a line."""

    def fields(self, record):
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
        return line

    def format(self, record):
        return SECRET.sub("[hidden]", json.dumps(self.fields(record), ensure_ascii=False))


class Text(Lines):
    """The same for people: one line, and the trace below it."""

    def format(self, record):
        line = self.fields(record)
        head = [line.pop(name) for name in ("time", "level", "logger", "message")]
        trace = line.pop("trace", "")
        rest = [f"{name}={value}" for name, value in line.items() if value is not None]
        told = CONTROL.sub(lambda char: f"\\x{ord(char[0]):02x}", " ".join([*head, *rest]))
        return SECRET.sub("[hidden]", f"{told}\n{trace}" if trace else told)


FORMS = {"json": Lines, "text": Text}


def start(level, form):
    """Send what this process logs to stderr; only a server does, commands speak to a person."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMS[form]())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for talkative, least in (("waitress.queue", logging.ERROR), ("alembic", logging.WARNING)):
        logging.getLogger(talkative).setLevel(least)


def init_app(app):
    app.before_request(begin)
    app.after_request(end)


def begin():
    g.started = time.perf_counter()
    asked = request.headers.get("X-Request-ID", "")
    taken = REQUEST_ID.fullmatch(asked) and (
        current_app.config["CQ_TRUSTED_PROXIES"] or loopback(request.remote_addr)
    )
    g.request_id = asked if taken else uuid.uuid4().hex


def end(response):
    response.headers["X-Request-ID"] = g.request_id
    access.info(
        "%s %s %s",
        request.method,
        plain(request.path),
        response.status_code,
        extra={
            "fields": {
                "method": request.method,
                "route": route(),
                "status": response.status_code,
                "duration_ms": round(1000 * (time.perf_counter() - g.started), 1),
                "address": request.remote_addr,
                "user": g.actor.name if g.get("actor") else None,
            }
        },
    )
    return response


def route():
    """The template of the route that was asked for, such as /api/v1/knowledge/<unit_id>, or None.

    What a client writes into a path is not in it, so there are only so many.
    """
    return request.url_rule.rule if request.url_rule else None


def loopback(address):
    """Whether this is an address of the machine itself."""
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


def plain(text):
    """A part of an address without its encoding, however often it was encoded: so a secret in it
    is seen.
    """
    for _ in range(5):
        decoded = unquote(text)
        if decoded == text:
            break
        text = decoded
    return text
