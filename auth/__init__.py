"""Who is calling, what that lets them do, and how often."""

import threading
from datetime import timedelta
from functools import wraps
from urllib.parse import urlsplit

from flask import current_app, g, request

from auth.address import caller, refuse_keys_in_url
from auth.keys import Owners, from_key, key_hash, key_token, new_key, parse_ttl
from auth.passwords import hash_password, log_in
from auth.sessions import drop_cookies, from_session, jwt, sign_in, sign_out, token_for
from errors import Forbidden, TooMany, Unauthorized, Unavailable
from rates import Rates

__all__ = [
    "agent_required",
    "anybody",
    "drop_cookies",
    "hash_password",
    "init_app",
    "key_hash",
    "key_token",
    "log_in",
    "new_key",
    "parse_ttl",
    "reader",
    "session_required",
    "sign_in",
    "sign_out",
    "token_for",
]

SAFE = ("GET", "HEAD", "OPTIONS")


def init_app(app):
    public = app.config["CQ_PUBLIC_URL"] or ""
    app.config.update(
        JWT_SECRET_KEY=app.config["CQ_JWT_SECRET"],
        JWT_ACCESS_TOKEN_EXPIRES=timedelta(hours=24),
        # Sessions outlive a clock that is set back; `sessions` allows this for `iat` alone.
        JWT_DECODE_LEEWAY=timedelta(days=1),
        JWT_ENCODE_NBF=False,
        JWT_TOKEN_LOCATION=["headers", "cookies"],
        JWT_COOKIE_SECURE=public.startswith("https:"),
    )
    jwt.init_app(app)
    app.extensions["cq_rates"] = Rates()
    app.extensions["cq_logins"] = threading.BoundedSemaphore(app.config["CQ_THREADS"] // 2)
    app.extensions["cq_touched"] = {}
    app.extensions["cq_owners"] = Owners()
    app.extensions["cq_known"] = {}
    app.before_request(refuse_keys_in_url)
    app.before_request(refuse_other_sites)


def refuse_other_sites():
    """A browser names the site that sent it: another one may not change anything here."""
    if request.method in SAFE:
        return
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site:
        foreign = site not in ("same-origin", "none")
    else:
        foreign = bool(origin) and _host(origin) != request.host
    if foreign:
        raise Forbidden("Requests from another site are refused")


def _host(origin):
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def agent_required(view):
    """An agent's API key, within the rate of writes; clients keep what is refused with 503."""

    @wraps(view)
    def wrapper(*args, **kwargs):
        g.actor = from_key()
        _hold(current_app.config["CQ_WRITE_RATE"], Unavailable, "write", g.actor.id)
        return view(*args, **kwargs)

    return _note(wrapper, "key")


def session_required(role="contributor", human=False):
    """A session of this role or a higher one; `human` obeys CQ_HUMAN_REVIEW."""

    def decorate(view):
        @wraps(view)
        def wrapper(*args, **kwargs):
            g.actor = from_session()
            if not g.actor.may(role):
                raise Forbidden(f"This needs the role {role}; yours is {g.actor.role}")
            if human and current_app.config["CQ_HUMAN_REVIEW"] and g.actor.channel != "page":
                raise Forbidden("This server takes decisions from the review page only")
            return view(*args, **kwargs)

        return _note(wrapper, "session", role)

    return decorate


def reader(view):
    """Anybody, within the rate of reads; `g.private` says whether private units are shown.

    They are to a valid key or session. One that is not valid counts as none.
    """

    @wraps(view)
    def wrapper(*args, **kwargs):
        g.actor = None
        try:
            if request.headers.get("Authorization", "").startswith("Bearer cqa."):
                g.actor = from_key()
            elif "Authorization" in request.headers or request.cookies:
                g.actor = from_session()
        except (Unauthorized, Forbidden):
            pass
        g.private = g.actor is not None or current_app.config["CQ_OPEN_READS"]
        who = ("user", g.actor.id) if g.actor else ("address", caller())
        _hold(current_app.config["CQ_READ_RATE"], TooMany, "read", *who)
        return view(*args, **kwargs)

    return _note(wrapper, "reader")


def anybody(view):
    """Say that a route asks nothing of its caller and has no rate."""
    return _note(view, "anybody")


def _note(wrapper, who, role=None):
    """Say on the view what it asks, for the API document and the tests that walk all routes."""
    wrapper.asks = (who, role)
    return wrapper


def _hold(rate, refusal, *key):
    if rate and not _rates().hit(rate, *map(str, key)):
        raise refusal("Too many requests; slow down", _rates().wait(rate, *map(str, key)))


def _rates():
    return current_app.extensions["cq_rates"]
