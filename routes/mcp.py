"""The tools of `cq mcp` for hosts that speak HTTP: the protocol's streamable HTTP, one JSON answer
to one request, no sessions. Each tool calls this node's own API, by its rules and in its rates.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial

from flask import Response, current_app, g, request
from werkzeug.test import Client as Caller

import auth
from cq import safety
from cq.client import LIMIT, MOST, Found, Proposed, candidate
from cq.discovery import Node
from cq.failures import NoNode
from cq.remote import Remote
from cq.transport import Answer
from errors import Unauthorized
from models import db


def init_app(app):
    app.add_url_rule("/mcp", view_func=mcp, methods=["POST"])
    # It tells of each request.
    logging.getLogger("mcp").setLevel(logging.WARNING)


@auth.reader
def mcp():
    """A message of the protocol. An API key as bearer token lets it propose, confirm and flag."""
    if "Authorization" in request.headers and not _key():
        raise Unauthorized("Missing or invalid API key")
    # A tool takes a connection of its own; one that waits here for it might be the last there is.
    db.session.rollback()
    # In a thread of its own: the caller's may have a loop already, in which none can begin.
    serve = partial(asyncio.run, _served(_scope(), request.get_data()))
    with ThreadPoolExecutor(1) as aside:
        status, headers, body = aside.submit(copy_context().run, serve).result()
    return Response(body, status, headers)


def _key():
    """The API key that the request carries and that holds, or nothing."""
    by_key = g.actor is not None and g.actor.channel == "key"
    return request.headers["Authorization"].removeprefix("Bearer ") if by_key else ""


def _scope():
    """This request as ASGI tells it."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": None,
    }


async def _served(scope, body):
    """(status, headers, body) by the SDK, on a loop of this request's own and in its context, so
    that what a tool calls finds the request where every view does.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    asked, sent = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        if asked:
            return asked.pop()
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    manager = StreamableHTTPSessionManager(_server(), json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    start, *rest = sent
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]
    ]
    return start["status"], headers, b"".join(each.get("body", b"") for each in rest)


@cache
def _server():
    """Made at the first request: the SDK takes a second to import, and many nodes never need it."""
    from cq.mcp import make

    async def run(call):
        return call()

    return make(_Tools(), run)


class _Tools:
    """What the tools call, with whatever key the request at hand carries."""

    def query(self, limit=LIMIT, **asked):
        limit = LIMIT if limit <= 0 else min(limit, MOST)
        found = _Here().query({**asked, "limit": limit})
        return Found(found["units"], "remote", found["warnings"], found["mode"])

    def propose(self, **given):
        unit = candidate(**given)
        findings = safety.check(unit)
        return Proposed(_writing().propose(unit), False, [], findings)

    def confirm(self, unit_id):
        return _writing().confirm(unit_id)

    def flag(self, unit_id, reason, detail=None, duplicate_of=None):
        return _writing().flag(unit_id, reason, detail, duplicate_of)

    def status(self):
        return _Here().stats()


def _writing():
    if not _key():
        raise NoNode("this needs an API key: let the host send it as `Authorization: Bearer cqa.…`")
    return _Here()


class _Here(Remote):
    """This node, called without a network."""

    def __init__(self):
        super().__init__("", _key(), send=_called)

    def node(self, deadline=None):
        return Node("/api/v1", "")


def _called(method, url, headers, body, deadline, limit):
    """An exchange with our own API, from the address of who called us."""
    answer = Caller(current_app.wsgi_app).open(
        url,
        method=method,
        headers=headers,
        data=body,
        environ_overrides={"REMOTE_ADDR": request.remote_addr or ""},
    )
    return Answer(answer.status_code, answer.headers, answer.get_data())
