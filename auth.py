"""Who is calling: passwords, reviewers' sessions (JWT), agents' API keys, roles, and how often."""

import base64
import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
import uuid
from datetime import timedelta
from functools import wraps
from urllib.parse import urlsplit

import bcrypt
from flask import current_app, g, jsonify, request
from flask_jwt_extended import (
    JWTManager,
    create_access_token,
    current_user,
    set_access_cookies,
    verify_jwt_in_request,
)
from flask_jwt_extended.exceptions import CSRFError, JWTExtendedException
from jwt.exceptions import PyJWTError
from limits import parse as parse_rate
from sqlalchemy.exc import OperationalError

from errors import Forbidden, Invalid, TooMany, Unauthorized, Unavailable
from models import PEOPLE, Actor, ApiKey, Change, User, db, now
from rates import Rates

log = logging.getLogger("cq.auth")

SAFE = ("GET", "HEAD", "OPTIONS")
PASSWORD_BYTES = 72
# A hash of a password nobody knows: an unknown name takes as long as a wrong password.
NOBODY = b"$2b$12$C6UzMDM.H6dfI/f/IKcEeO0Bz3mMtDrXjbMqRsTUyYbBqEd2mQ5Xe"
LOGIN_FAILURES = parse_rate("10/minute")
TOUCH_EVERY = 60

jwt = JWTManager()


def init_app(app):
    public = app.config["CQ_PUBLIC_URL"] or ""
    app.config.update(
        JWT_SECRET_KEY=app.config["CQ_JWT_SECRET"],
        JWT_ACCESS_TOKEN_EXPIRES=timedelta(hours=24),
        JWT_ENCODE_NBF=False,
        JWT_TOKEN_LOCATION=["headers", "cookies"],
        JWT_COOKIE_SAMESITE="Strict",
        JWT_COOKIE_SECURE=public.startswith("https:"),
        JWT_ACCESS_COOKIE_PATH="/api/",
        JWT_SESSION_COOKIE=False,
    )
    jwt.init_app(app)
    app.extensions["cq_rates"] = Rates()
    # Hashing takes a core for a quarter of a second: half the threads stay free for everybody else.
    app.extensions["cq_logins"] = threading.BoundedSemaphore(app.config["CQ_THREADS"] // 2)
    app.extensions["cq_touched"] = {}
    app.extensions["cq_owners"] = Owners()
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
        foreign = bool(origin) and urlsplit(origin).netloc != request.host
    if foreign:
        raise Forbidden("Requests from another site are refused")


# Passwords


def hash_password(password):
    """bcrypt, cost 12. Raises ValueError with a text for whoever chose the password."""
    if not password.strip():
        raise ValueError("A password must not be blank")
    if len(password.encode()) > PASSWORD_BYTES:
        raise ValueError(f"A password takes at most {PASSWORD_BYTES} bytes")
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt()).decode()


def log_in(username, password):
    """The user of this name and password. Every failure looks and lasts the same.

    Raises Unauthorized, TooMany after ten failures a minute per account or address, Unavailable
    when too many are signing in at once.
    """
    account = hashlib.sha256(username.casefold().encode()).hexdigest()
    keys = [("account", account), ("address", request.remote_addr)]
    for key in keys:
        if _rates().full(LOGIN_FAILURES, *key):
            raise TooMany(
                "Too many failed logins; wait a minute", _rates().wait(LOGIN_FAILURES, *key)
            )
    user = User.named(username)
    db.session.rollback()
    if not check_password(user, password):
        for key in keys:
            _rates().hit(LOGIN_FAILURES, *key)
        raise Unauthorized("Invalid username or password")
    return user


def check_password(user, password):
    gate = current_app.extensions["cq_logins"]
    if not gate.acquire(blocking=False):
        raise Unavailable("Too many people are signing in at once; try again", retry_after=1)
    try:
        raw = password.encode()
        known = user.password_hash.encode() if user else NOBODY
        right = bcrypt.checkpw(raw[:PASSWORD_BYTES], known)
    finally:
        gate.release()
    return right and len(raw) <= PASSWORD_BYTES and user is not None and user.disabled_at is None


# Sessions


def token_for(user):
    """A JWT (HS256) for 24 hours, or until the person's password, role or state changes."""
    return create_access_token(user.username, additional_claims={"sv": user.session_version})


def sign_in(user, page):
    """The answer to a login: its token, or for the page a cookie that no script reads."""
    who = {"username": user.username, "role": user.role}
    if not page:
        return jsonify(token=token_for(user), **who)
    response = jsonify(who)
    set_access_cookies(response, token_for(user))
    return response


@jwt.user_lookup_loader
def _person(_, claims):
    """The token's user, if the token still stands for one; U's tokens carry no `sv` claim."""
    if "exp" not in claims or "iat" not in claims:
        return None
    user = User.named(claims["sub"])
    if user is None or user.disabled_at or user.session_version != claims.get("sv", 0):
        return None
    return user


def _session():
    """The Actor of a bearer token, or else of the page's cookie. Raises Unauthorized, Forbidden."""
    header = request.headers.get("Authorization")
    if header is not None and (not header.startswith("Bearer ") or " " in header[7:]):
        raise Unauthorized("Missing or invalid authorization header")
    if header is None and not request.cookies.get(current_app.config["JWT_ACCESS_COOKIE_NAME"]):
        raise Unauthorized("Missing or invalid authorization header")
    try:
        verify_jwt_in_request(locations=["cookies"] if header is None else ["headers"])
    except CSRFError:
        raise Forbidden("The CSRF token is missing or wrong") from None
    except (JWTExtendedException, PyJWTError):
        raise Unauthorized("Invalid or expired token") from None
    channel = "page" if header is None else "token"
    return Actor(current_user.id, current_user.username, current_user.role, channel)


# API keys


def new_key():
    """(id, secret) of a fresh API key; `key_token` and `key_hash` say what becomes of them."""
    return uuid.uuid4().hex, base64.b32encode(secrets.token_bytes(32)).decode().rstrip("=").lower()


def key_token(id, secret):
    return f"cqa.v1.{id}.{secret}"


def key_hash(secret, pepper=None):
    pepper = pepper or current_app.config["CQ_API_KEY_PEPPER"]
    return hmac.new(pepper.encode(), secret.encode(), hashlib.sha256).hexdigest()


def parse_ttl(text):
    """(canonical form, seconds) of a key's life such as `90d`: up to 365 days. Raises Invalid."""
    canonical = text.strip().lower()
    if not canonical:
        raise Invalid("ttl is required")
    match = re.fullmatch(r"([0-9]+)([smhd])", canonical)
    if not match:
        raise Invalid("ttl is not a valid duration: a number and s, m, h or d, such as 90d")
    seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
    if not seconds:
        raise Invalid("ttl must be greater than zero")
    if seconds > 365 * 86400:
        raise Invalid("ttl exceeds the maximum of 365d")
    return canonical, seconds


class Owners:
    """The owners of keys that were used lately, forgotten when any account or key changes."""

    def __init__(self):
        self.seen = None
        self.known = {}

    def get(self, key_id):
        """The row of `ApiKey.owner`, from the database at the first call after a change."""
        number = Change.last(PEOPLE)
        if number != self.seen or len(self.known) > 10_000:
            self.seen, self.known = number, {}
        known = self.known
        if key_id not in known:
            owner = ApiKey.owner(key_id)
            if owner is None:
                return None
            known[key_id] = owner
        return known[key_id]


def _key():
    """The Actor of the API key in the header. Raises Unauthorized."""
    id, secret = _split_key(request.headers.get("Authorization", ""))
    owner = current_app.extensions["cq_owners"].get(id) if id else None
    if owner is None or owner.expires_at <= now():
        raise Unauthorized("Invalid API key")
    peppers = [None, *current_app.config["CQ_API_KEY_PEPPERS_OLD"]]
    if not any(hmac.compare_digest(key_hash(secret, pepper), owner.key_hash) for pepper in peppers):
        raise Unauthorized("Invalid API key")
    _touch(id)
    return Actor(owner.id, owner.username, owner.role, "key")


def _split_key(header):
    parts = header[7:].split(".") if header.startswith("Bearer cqa.v1.") else []
    if len(parts) != 4 or len(parts[3]) != 52:
        return None, None
    try:
        return uuid.UUID(parts[2]).hex, parts[3]
    except ValueError:
        return None, None


def _touch(id):
    """Note that the key was used, once a minute; a database that cannot take it costs no answer."""
    touched = current_app.extensions["cq_touched"]
    if time.monotonic() - touched.get(id, -TOUCH_EVERY) < TOUCH_EVERY:
        return
    if len(touched) > 10_000:
        touched.clear()
    touched[id] = time.monotonic()
    try:
        ApiKey.touch(id)
        db.session.commit()
    except (OperationalError, Unavailable) as fault:
        db.session.rollback()
        log.warning("the use of a key was not noted: %s", type(fault).__name__)


# What a route asks of its caller


def agent_required(view):
    """An agent's API key, within the rate of writes; clients keep what is refused with 503."""

    @wraps(view)
    def wrapper(*args, **kwargs):
        g.actor = _key()
        _hold(current_app.config["CQ_WRITE_RATE"], Unavailable, "write", g.actor.id)
        return view(*args, **kwargs)

    return _note(wrapper, "key")


def session_required(role="contributor", human=False):
    """A session of this role or a higher one; `human` obeys CQ_HUMAN_REVIEW."""

    def decorate(view):
        @wraps(view)
        def wrapper(*args, **kwargs):
            g.actor = _session()
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
                g.actor = _key()
            elif "Authorization" in request.headers or request.cookies:
                g.actor = _session()
        except (Unauthorized, Forbidden):
            pass
        g.private = g.actor is not None or current_app.config["CQ_OPEN_READS"]
        who = ("user", g.actor.id) if g.actor else ("address", request.remote_addr)
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
