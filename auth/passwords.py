"""Passwords: hashed, checked at one pace whoever asks, and throttled."""

import hashlib
import unicodedata
from contextlib import contextmanager

import bcrypt
from flask import current_app
from limits import parse as parse_rate

from auth.address import caller
from errors import TooMany, Unauthorized, Unavailable
from models import User, db

PASSWORD_BYTES = 72
# A hash of a password nobody knows: an unknown name takes as long as a wrong password.
NOBODY = b"$2b$12$C6UzMDM.H6dfI/f/IKcEeO0Bz3mMtDrXjbMqRsTUyYbBqEd2mQ5Xe"
LOGIN_FAILURES = parse_rate("10/minute")
MANY = 10_000


def hash_password(password):
    """bcrypt, cost 12. Raises ValueError with a text for whoever chose it, and Unavailable."""
    if not password.strip():
        raise ValueError("A password must not be blank")
    if any(unicodedata.category(char) == "Cc" for char in password):
        raise ValueError("A password must not contain control characters")
    if len(password.encode()) > PASSWORD_BYTES:
        raise ValueError(f"A password takes at most {PASSWORD_BYTES} bytes")
    with _hashing():
        return bcrypt.hashpw(password.encode(), bcrypt.gensalt()).decode()


def log_in(username, password):
    """The user of this name and password. Every failure looks and lasts the same.

    Raises Unauthorized, TooMany after ten failures a minute per account or address, Unavailable
    when too many are signing in at once. Where an account signed in before, what others fail at
    elsewhere does not count: they could keep its owner out for as long as they go on.
    """
    account = hashlib.sha256(username.casefold().encode()).hexdigest()
    address = caller()
    met = current_app.extensions["cq_known"]
    own = (address,) if (account, address) in met else ()
    keys = [("account", account, *own), ("address", address)]
    rates = current_app.extensions["cq_rates"]
    for key in keys:
        if rates.full(LOGIN_FAILURES, *key):
            raise TooMany("Too many failed logins; wait a minute", rates.wait(LOGIN_FAILURES, *key))
    user = User.named(username)
    known = user.password_hash.encode() if user else NOBODY
    # Hashing takes long: no connection is held meanwhile.
    db.session.remove()
    with _hashing():
        raw = password.encode()
        right = bcrypt.checkpw(raw[:PASSWORD_BYTES], known) and len(raw) <= PASSWORD_BYTES
    if not right or user is None or user.disabled_at:
        for key in keys:
            rates.hit(LOGIN_FAILURES, *key)
        raise Unauthorized("Invalid username or password")
    if len(met) >= MANY:
        met.clear()
    met[account, address] = True
    return user


@contextmanager
def _hashing():
    """Half the threads may hash at once, a quarter of a second each; the rest serve others."""
    gate = current_app.extensions["cq_logins"]
    if not gate.acquire(blocking=False):
        raise Unavailable("Too many people are signing in at once; try again", retry_after=1)
    try:
        yield
    finally:
        gate.release()
