"""Proxies before this server: what the trusted ones say of a caller counts, and nobody else's word.

Knows no route and no right.
"""

import ipaddress
import re

from werkzeug.middleware.proxy_fix import ProxyFix

PREFIX = re.compile(r"(/[A-Za-z0-9_~.-]+)+")
HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
# What a request carries that came through a proxy, trusted or not.
MARKS = (
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "Forwarded",
    "Via",
)


def init_app(app):
    """Each trusted proxy adds the address that it was called from to X-Forwarded-For. Of the other
    headers the nearest one's word counts, since most proxies set them anew.
    """
    count = app.config["CQ_TRUSTED_PROXIES"]
    if count:
        inner = _Checked(app.wsgi_app)
        app.wsgi_app = ProxyFix(inner, x_for=count, x_proto=1, x_host=1, x_prefix=1)


def passed(request):
    """Whether a request came through a proxy that says so."""
    return any(mark in request.headers for mark in MARKS)


class _Checked:
    """Takes back what a proxy passed on that is no address, scheme, host or prefix."""

    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start_response):
        before = environ["werkzeug.proxy_fix.orig"]
        address = _address(environ.get("REMOTE_ADDR"))
        environ["REMOTE_ADDR"] = address or before["REMOTE_ADDR"]
        if environ["wsgi.url_scheme"] not in ("http", "https"):
            environ["wsgi.url_scheme"] = before["wsgi.url_scheme"]
        if not HOST.fullmatch(environ.get("HTTP_HOST") or ""):
            for name in ("HTTP_HOST", "SERVER_NAME", "SERVER_PORT"):
                environ[name] = before[name] or ""
        prefix = environ.get("SCRIPT_NAME", "").rstrip("/")
        dots = {".", ".."} & {*prefix.split("/")}
        environ["SCRIPT_NAME"] = prefix if PREFIX.fullmatch(prefix) and not dots else ""
        return self.app(environ, start_response)


def _address(text):
    """An address without the port that some proxies add, or None. A port would make each connection
    a caller of its own.
    """
    text = (text or "").strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
