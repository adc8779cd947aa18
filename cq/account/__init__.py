"""A person's account at a node: sign in, sign out, the API keys of one's agents. Prints nothing."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

from cq import credentials, ttl
from cq.account.callback import Callback, encoded, secret
from cq.discovery import address
from cq.failures import CqError, Invalid, NoAnswer, NotFound, Refused, RemoteFailure
from cq.remote import Remote

# What a node answers to a path that it does not have.
UNSUPPORTED = (404, 405, 501)
# How long a person may take on a provider's page, in seconds.
PATIENCE = 300
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# The first that a key has tells how it is.
_STATUSES = {"revoked_at": "revoked", "is_expired": "expired", "is_active": "active"}
_NO_KEY = "there is no such key of yours; `cq auth key list` shows them"


class SignedOut(CqError):
    """Nobody is signed in to this node, or no longer."""


class SignInFailed(CqError):
    """A sign-in by a provider's page did not come to its end."""


class _Control(Remote):
    """A node whose refusals carry the object that it said, as `said`."""

    def _failure(self, answer):
        failure = super()._failure(answer)
        try:
            said = json.loads(answer.body)
        except (ValueError, RecursionError):
            said = None
        failure.said = said if isinstance(said, dict) else {}
        return failure


def sign_in(addr, username, password, timeout):
    """`Session`, kept for later. Raises SignedOut for a wrong password, and as `Remote` does."""
    remote = Remote(address(addr), "", timeout)
    try:
        said = remote.call("POST", "/auth/login", {"username": username, "password": password})
    except NoAnswer as failure:
        if failure.status == 401:
            raise SignedOut(f"{remote.addr} does not know this name and password") from None
        raise
    return _save(remote.addr, username, _token(said, "token"))


def providers(addr, timeout):
    """The names of those who may sign people in there, sorted; none if it takes passwords only."""
    try:
        said = Remote(address(addr), "", timeout).call("GET", "/oauth/providers")
    except RemoteFailure as failure:
        if failure.status in UNSUPPORTED:
            return []
        raise
    offered = said.get("providers") if isinstance(said, dict) else None
    if not isinstance(offered, list):
        raise NoAnswer("the node's list of providers cannot be read")
    return sorted(
        {
            each["name"].strip().lower()
            for each in offered
            if isinstance(each, dict) and each.get("enabled") and isinstance(each.get("name"), str)
        }
        - {""}
    )


def sign_in_by(addr, provider, timeout, show, choose, patience=PATIENCE):
    """`Session` by a provider's page, kept for later: OAuth with PKCE and a callback on loopback.

    `show(url)` tells the page's address and opens it. `choose(why, suggestions)` gives a name for
    an account that has none; `why` tells of the last one given, if it is not taken. What they
    raise ends it. Raises SignInFailed, and as `Remote` does.
    """
    remote = _Control(address(addr), "", timeout)
    verifier = secret(32)
    challenge = encoded(hashlib.sha256(verifier.encode()).digest())
    with Callback() as callback:
        asked = {
            "provider": provider.strip().lower(),
            "code_challenge": challenge,
            "redirect_uri": callback.url,
        }
        show(_page(_started(remote, asked)))
        told = callback.told(patience)
    if "exchange_code" not in told:
        why = told.get("error_description") or told.get("error") or "it did not complete in time"
        raise SignInFailed(f"{provider} did not sign you in: {why[:200]}")
    asked = {"exchange_code": told["exchange_code"], "code_verifier": verifier}
    try:
        said = remote.call("POST", "/oauth/native/exchange", asked)
    except Refused as refused:
        if "invalid_grant" in (refused.said.get("detail"), refused.said.get("error")):
            raise SignInFailed("the sign-in is used up or too old: try again") from None
        raise
    token = _token(said, "access_token")
    return _save(remote.addr, _name(_Control(remote.addr, token, timeout), choose), token)


def _started(remote, asked):
    try:
        return remote.call("POST", "/oauth/native/start", asked)
    except RemoteFailure as failure:
        if failure.status in UNSUPPORTED:
            raise SignInFailed(
                f"{remote.addr} does not sign in by {asked['provider']}; `cq auth providers` "
                "lists by whom, and a name and password may do"
            ) from None
        raise


def _page(said):
    """The address of the provider's page. A browser is to open it: no file's, no program's."""
    url = said.get("authorization_url") if isinstance(said, dict) else None
    try:
        place = urlsplit(url if isinstance(url, str) and re.fullmatch("[!-~]+", url) else "")
    except ValueError:
        place = urlsplit("")
    if place.scheme not in ("http", "https") or not place.hostname:
        raise NoAnswer("the node's answer holds no address of a page to sign in")
    return url


def _name(remote, choose):
    """The name of who is signed in, chosen now if there is none."""
    said = remote.call("GET", "/users/me")
    name = said.get("username") if isinstance(said, dict) else None
    why, suggestions = "", []
    while not (isinstance(name, str) and name):
        wanted = choose(why, suggestions).strip()
        if not wanted:
            continue
        try:
            remote.call("POST", "/users/me/username", {"username": wanted})
            name = wanted
        except Refused as refused:
            error = refused.said.get("error")
            if error not in ("username_unavailable", "username_invalid_format"):
                raise
            why, suggestions = refused.detail, _texts(refused.said.get("suggestions"))
    return name


def _token(said, member):
    token = said.get(member) if isinstance(said, dict) else None
    if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
        raise NoAnswer("the node's answer holds no token: is it a cq node?")
    return token


def _save(addr, username, token):
    session = credentials.Session(addr, username, token, _expires(token))
    credentials.save(session)
    return session


def sign_out(addr, timeout, everywhere=False):
    """End the session at its node, then forget it: "revoked", "absent" if there was none,
    "ended" if the node knew it no more, "unsupported" if it ends none.

    `everywhere` ends the person's sessions on all devices. Raises as `Remote` does, and then the
    session is kept; `credentials.delete` forgets it without the node.
    """
    if credentials.load() is None:
        return "absent"
    session = session_of(addr)
    path = "/auth/logout?all_devices=true" if everywhere else "/auth/logout"
    outcome = "revoked"
    try:
        Remote(session.addr, session.token, timeout).call("POST", path)
    except RemoteFailure as failure:
        if failure.status == 401:
            outcome = "ended"
        elif failure.status in UNSUPPORTED:
            outcome = "unsupported"
        else:
            raise
    credentials.delete()
    return outcome


def session_of(addr):
    """The session at this address; without an address the one that there is. Raises SignedOut."""
    session = credentials.load()
    if session is None:
        raise SignedOut("not signed in: run `cq auth login`")
    # Upstream's sessions do not say where they are from, and must not go just anywhere.
    if not session.addr:
        raise SignedOut("the kept session does not say of which node: run `cq auth login`")
    if addr and session.addr != address(addr):
        raise SignedOut(f"signed in to {session.addr}, not to {addr}: run `cq auth login`")
    return session


def _expires(token):
    """The time in a JSON web token, or nothing."""
    try:
        part = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return datetime.fromtimestamp(said["exp"], UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, LookupError, TypeError, OverflowError, OSError):
        return ""


class Keys:
    """The API keys of who is signed in."""

    def __init__(self, addr, timeout):
        session = session_of(addr)
        self._remote = Remote(session.addr, session.token, timeout)

    def create(self, name, lifetime, labels=()):
        """The key's facts with the key itself as `key`, which no later answer holds."""
        try:
            lifetime, _ = ttl.parse(lifetime)
        except ValueError as fault:
            raise Invalid([f"--ttl: {fault}"]) from None
        asked = {"name": name, "ttl": lifetime, "labels": list(labels)}
        made = self._ask("POST", "/users/me/api-keys", asked)
        made = made if isinstance(made, dict) else {}
        key = _text(made, "api_key") or _text(made, "token")
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
        """End a key of one's own. Raises NotFound."""
        if not _ID.fullmatch(id):
            raise NotFound(_NO_KEY)
        self._ask("POST", f"/users/me/api-keys/{id}/revoke")

    def _ask(self, method, path, body=None):
        try:
            return self._remote.call(method, path, body)
        except Refused as refused:
            if refused.status == 404 and path.endswith("/revoke"):
                raise NotFound(_NO_KEY) from None
            raise
        except NoAnswer as failure:
            if failure.status == 401:
                raise SignedOut("the session has ended: run `cq auth login`") from None
            raise


def _facts(said):
    """A key as both spellings of the wire tell it."""
    return {
        "id": _text(said, "id"),
        "name": _text(said, "name"),
        "prefix": _text(said, "key_prefix") or _text(said, "prefix"),
        "labels": _texts(said.get("labels")),
        "status": next((word for name, word in _STATUSES.items() if said.get(name)), "inactive"),
        "expires_at": _text(said, "expires_at"),
    }


def _text(said, name):
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _texts(items):
    return [each for each in items if isinstance(each, str)] if isinstance(items, list) else []
