"""Passwords: hashed, checked at one pace whoever asks, and throttled."""

import hashlib

import bcrypt
from flask import current_app, request
from limits import parse as parse_rate

from errors import TooMany, Unauthorized, Unavailable
from models import User, db

PASSWORD_BYTES = 72
# A hash of a password nobody knows: an unknown name takes as long as a wrong password.
NOBODY = b"$2b$12$C6UzMDM.H6dfI/f/IKcEeO0Bz3mMtDrXjbMqRsTUyYbBqEd2mQ5Xe"
LOGIN_FAILURES = parse_rate("10/minute")


def hash_password(password):
    """bcrypt, cost 12. Raises ValueError with a text for whoever chose the password."""
    if not password.strip():
        raise ValueError("A password must not be blank")
    if not password.isprintable():
        raise ValueError("A password must not contain control characters")
    if len(password.encode()) > PASSWORD_BYTES:
        raise ValueError(f"A password takes at most {PASSWORD_BYTES} bytes")
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt()).decode()


def log_in(username, password):
    """The user of this name and password. Every failure looks and lasts the same.

    Raises Unauthorized, TooMany after ten failures a minute per account or address, Unavailable
    when too many are signing in at once.
    """
    account = hashlib.sha256(username.casefold().encode()).hexdigest()
    rates = current_app.extensions["cq_rates"]
    keys = [("account", account), ("address", request.remote_addr)]
    for key in keys:
        if rates.full(LOGIN_FAILURES, *key):
            raise TooMany("Too many failed logins; wait a minute", rates.wait(LOGIN_FAILURES, *key))
    user = User.named(username)
    db.session.rollback()
    if not check_password(user, password):
        for key in keys:
            rates.hit(LOGIN_FAILURES, *key)
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
