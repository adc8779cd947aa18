"""Where a node's API lives: its own document says, else /api/v1. Knows no API key.

The document is kept for a day, its absence for five minutes. It may not lead from https to http,
nor from an unprotected address to another host.
"""

import contextlib
import hashlib
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from cq import transport
from cq.failures import BadAddress, DiscoveryFailed

PLACE, DEFAULT = "/.well-known/cq-node.json", "/api/v1"
KEPT, ABSENT_KEPT = 24 * 3600, 300
REDIRECTS = 3
ATTEMPTS, PAUSE = 2, 0.2
_HOST = re.compile(r"[A-Za-z0-9._:-]+")
# No space, no control, nothing but ASCII; and no question or fragment, not even an empty one.
_WRITTEN = re.compile(r"[!-~]+")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Node(NamedTuple):
    """`api` is the base of all paths, without a slash at its end."""

    api: str
    name: str


def address(text):
    """A node's address without slashes at its end. Raises BadAddress."""
    text = text.strip().rstrip("/")
    try:
        place = urlsplit(text)
        host, _ = place.hostname, place.port
    except ValueError:
        place = host = None
    usable = (
        host
        and place.scheme in ("http", "https")
        and _HOST.fullmatch(host)
        and _WRITTEN.fullmatch(text)
        and not {*"?#"} & {*text}
        and "@" not in place.netloc
    )
    if not usable:
        # What stands before an @ may be a password.
        shown = text.rpartition("@")[2][:80]
        raise BadAddress(
            f"{shown!r} is no address of a node; CQ_ADDR takes one such as http://localhost:3000"
        )
    return text


def cache_folder(environ=os.environ):
    """Where documents are kept, or None."""
    given = environ.get("XDG_CACHE_HOME", "").strip()
    if given:
        return Path(given, "cq", "discovery") if given.startswith("/") else None
    try:
        return Path("~/.cache/cq/discovery").expanduser()
    except RuntimeError:
        return None


def find(addr, deadline, folder=None, refresh=False, send=transport.send):
    """`Node` of an address. Raises BadAddress and DiscoveryFailed, which are kept nowhere."""
    addr = address(addr)
    kept = _file(addr, folder)
    if kept and not refresh:
        known = _kept(addr, kept)
        if known:
            return known
    raw = _probe(addr, deadline, send)
    node = _node(addr, raw)
    if kept:
        _keep(kept, raw or _absent(addr))
    return node


def forget(addr, folder=None):
    """Ask anew next time, as far as the folder may be written."""
    kept = _file(address(addr), folder)
    if kept:
        with contextlib.suppress(OSError):
            kept.unlink()


def _file(addr, folder):
    return folder and Path(folder, f"{hashlib.sha256(addr.encode()).hexdigest()}.json")


def _kept(addr, path):
    """What the file says, if it is young and right; anything else is as if there were none."""
    try:
        age = time.time() - path.stat().st_mtime
        if not 0 <= age < KEPT:
            return None
        node = _node(addr, path.read_bytes())
    except (OSError, DiscoveryFailed):
        return None
    # Upstream's clients keep the defaults as if the node had said them: a document that says no
    # more counts as absent, whoever kept it.
    absent = node == Node(f"{addr}{DEFAULT}", "")
    return node if age < ABSENT_KEPT or not absent else None


def _absent(addr):
    """What is kept of a node without a document: the defaults, as upstream keeps them."""
    document = {"version": 1, "api_base_url": f"{addr}{DEFAULT}", "api_version": "v1"}
    return json.dumps(document).encode()


def _keep(path, raw):
    """Write whole, or not at all: a cache that fails costs a probe, no answer."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix="tmp-", suffix=".json", dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(file, "wb") as writing:
            writing.write(raw)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _probe(addr, deadline, send):
    """The document's bytes, or None where there is none."""
    url, redirects, attempt = f"{addr}{PLACE}", 0, 1
    while True:
        try:
            answer = send(
                "GET", url, {"Accept": "application/json"}, None, deadline, transport.FAULTS
            )
        except transport.Unreachable as fault:
            if fault.kind == "huge":
                raise DiscoveryFailed(f"{url} is no document of a node: {fault}") from fault
            trouble = DiscoveryFailed(f"the node cannot be reached: {fault}")
        else:
            if answer.status in (301, 302, 303, 307, 308) and redirects < REDIRECTS:
                redirects += 1
                url = _moved(addr, url, answer)
                continue
            if answer.status == 404:
                return None
            if answer.status == 200:
                return _json(answer, url)
            trouble = DiscoveryFailed(
                f"the node answers {answer.status} when asked where its API is", answer.status
            )
            if answer.status < 500:
                raise trouble
        if attempt == ATTEMPTS or time.monotonic() + PAUSE >= deadline:
            raise trouble
        attempt += 1
        time.sleep(PAUSE)


def _moved(addr, url, answer):
    location = answer.headers.get("Location") or ""
    try:
        to = urljoin(url, location)
        same = _origin(to) == _origin(addr)
    except ValueError:
        to, same = location, False
    if not same or not _WRITTEN.fullmatch(to):
        raise DiscoveryFailed(
            f"{addr} sends to {to[:80]!r}: if the node is there, set CQ_ADDR to that"
        )
    return to


def _origin(url):
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    return place.scheme, (place.hostname or "").lower(), port


def _json(answer, url):
    kind = (answer.headers.get("Content-Type") or "").lower()
    if kind.startswith("text/html"):
        raise DiscoveryFailed(
            f"{url} is a web page: CQ_ADDR seems to name an SPA or a portal, not a cq node"
        )
    return answer.body


def _node(addr, raw):
    """What a document says. Raises DiscoveryFailed."""
    if raw is None:
        return Node(f"{addr}{DEFAULT}", "")
    try:
        document = json.loads(raw)
        if not isinstance(document, dict):
            raise ValueError("no object")
    except (ValueError, RecursionError):
        raise DiscoveryFailed(f"cannot parse {addr}{PLACE}: it is no JSON object") from None
    version, api = document.get("version"), document.get("api_version")
    if type(version) is not int or version != 1 or api != "v1":
        raise DiscoveryFailed(
            f"the node speaks version {version!r:.20}, API {api!r:.20}; this cq speaks 1 and 'v1': "
            "one of the two needs an upgrade"
        )
    base = document.get("api_base_url")
    try:
        base = address(base if isinstance(base, str) else "")
    except BadAddress:
        raise DiscoveryFailed(f"api_base_url of {addr}{PLACE} is no http address") from None
    _may_lead(addr, base)
    name = document.get("node_name")
    return Node(base, name if isinstance(name, str) else "")


def _may_lead(addr, base):
    """The API key goes to `base`: it must be as safe as the address that was configured."""
    here, there = urlsplit(addr), urlsplit(base)
    if here.scheme == "https" and there.scheme == "http":
        raise DiscoveryFailed(f"the node at {addr} leads to {base}, without https: refused")
    same = here.hostname == there.hostname
    near = here.hostname in LOOPBACK and there.hostname in LOOPBACK
    if not (same or near or here.scheme == "https"):
        raise DiscoveryFailed(
            f"the node at {addr} leads to another host, {urlunsplit(there)}, over plain http: "
            "refused; set CQ_ADDR to that address if it is right"
        )
