"""A person's account at a node: sign in, and the API keys of one's agents. Prints nothing."""

import base64
import json
from datetime import UTC, datetime
from urllib.parse import quote

from cq import credentials, ttl
from cq.discovery import address
from cq.failures import CqError, Invalid, NoAnswer, NotFound, Refused
from cq.remote import Remote


class SignedOut(CqError):
    """Nobody is signed in to this node, or no longer."""


def sign_in(addr, username, password, timeout):
    """`Session`, kept for later. Raises SignedOut for a wrong password, and as `Remote` does."""
    remote = Remote(address(addr), "", timeout)
    try:
        said = remote.call("POST", "/auth/login", {"username": username, "password": password})
    except NoAnswer as failure:
        if failure.status == 401:
            raise SignedOut(f"{remote.addr} does not know this name and password") from None
        raise
    token = said.get("token") if isinstance(said, dict) else None
    if not isinstance(token, str) or not token:
        raise NoAnswer("the node's answer holds no token: is it a cq node?")
    session = credentials.Session(remote.addr, username, token, _expires(token))
    credentials.save(session)
    return session


def session_of(addr):
    """The session at this address; without an address the one that there is. Raises SignedOut."""
    session = credentials.load()
    if session is None:
        raise SignedOut("not signed in: run `cq auth login`")
    if addr and session.addr and session.addr != address(addr):
        raise SignedOut(f"signed in to {session.addr}, not to {addr}: run `cq auth login`")
    return session


def _expires(token):
    """The time in a JSON web token, or nothing."""
    try:
        part = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return datetime.fromtimestamp(said["exp"], UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, LookupError, TypeError, OverflowError):
        return ""


class Keys:
    """The API keys of who is signed in."""

    def __init__(self, addr, timeout):
        session = session_of(addr)
        place = session.addr or addr
        if not place:
            raise SignedOut("no node: set CQ_ADDR or give --addr")
        self._remote = Remote(address(place), session.token, timeout)

    def create(self, name, lifetime, labels=()):
        """The key's facts with the key itself as `key`, which no later answer holds."""
        try:
            lifetime, _ = ttl.parse(lifetime)
        except ValueError as fault:
            raise Invalid([f"--ttl: {fault}"]) from None
        asked = {"name": name, "ttl": lifetime, "labels": list(labels)}
        made = self._ask("POST", "/users/me/api-keys", asked)
        key = made.get("api_key") or made.get("token") if isinstance(made, dict) else None
        if not key:
            raise NoAnswer(
                "the node made a key, and its answer does not show it: revoke it and make another"
            )
        return {**_facts(made), "key": key}

    def all(self):
        said = self._ask("GET", "/users/me/api-keys")
        data = said.get("data") if isinstance(said, dict) else None
        if not isinstance(data, list):
            raise NoAnswer("the node's list of keys cannot be read")
        return [_facts(each) for each in data if isinstance(each, dict)]

    def revoke(self, id):
        self._ask("POST", f"/users/me/api-keys/{quote(id, safe='')}/revoke")

    def _ask(self, method, path, body=None):
        try:
            return self._remote.call(method, path, body)
        except Refused as refused:
            if refused.status == 404 and path.endswith("/revoke"):
                raise NotFound(
                    "there is no such key of yours; `cq auth key list` shows them"
                ) from (None)
            raise
        except NoAnswer as failure:
            if failure.status == 401:
                raise SignedOut("the session has ended: run `cq auth login`") from None
            raise


def _facts(said):
    """A key as both spellings of the wire tell it."""
    status = "inactive"
    for name, word in (
        ("revoked_at", "revoked"),
        ("is_expired", "expired"),
        ("is_active", "active"),
    ):
        if said.get(name):
            status = word
            break
    return {
        "id": said.get("id") or "",
        "name": said.get("name") or "",
        "prefix": said.get("key_prefix") or said.get("prefix") or "",
        "labels": said.get("labels") or [],
        "status": status,
        "expires_at": said.get("expires_at") or "",
    }
