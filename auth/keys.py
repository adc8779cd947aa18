"""Agents' API keys: made, recognised, and noted when used."""

import base64
import hashlib
import hmac
import logging
import re
import secrets
import time
import uuid

from flask import current_app, request
from sqlalchemy.exc import OperationalError

from errors import Invalid, Unauthorized, Unavailable
from models import PEOPLE, Actor, ApiKey, Change, db, now

log = logging.getLogger("cq.auth")

TOUCH_EVERY = 60
MANY = 10_000


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
        self.kept = None, {}

    def get(self, key_id):
        """The row of `ApiKey.owner`, from the database at the first call after a change."""
        number = Change.last(PEOPLE)
        seen, known = self.kept
        if number != seen or len(known) > MANY:
            # Both in one step: what another thread reads under an older number stays with it.
            known = {}
            self.kept = number, known
        if key_id not in known:
            owner = ApiKey.owner(key_id)
            if owner is None:
                return None
            known[key_id] = owner
        return known[key_id]


def from_key():
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
    if len(touched) > MANY:
        touched.clear()
    touched[id] = time.monotonic()
    try:
        ApiKey.touch(id)
        db.session.commit()
    except (OperationalError, Unavailable) as fault:
        db.session.rollback()
        log.warning("the use of a key was not noted: %s", type(fault).__name__)
