"""HTTP to a node: paths, statuses, the key. The key goes where discovery may lead, nowhere else."""

import json
import time
import unicodedata
from urllib.parse import quote, urlencode

from cq import discovery, record, transport
from cq import unit as rules
from cq.failures import AppliedUnreadable, NoAnswer, Refused

# The node looked at what was sent, and will say the same again.
DEFINITE = {400, 404, 405, 409, 410, 413, 415, 422}
DETAIL = 300
REMEDIES = {
    401: "the node does not accept the API key: check CQ_API_KEY, or make a new key on its page",
    403: "the API key may not do this on the node",
    429: "the node asks to slow down",
}


class Remote:
    """A node. `timeout` is for a whole exchange, discovery and the answer's last byte included."""

    def __init__(self, addr, key="", timeout=30.0, folder=None, send=transport.send):
        self.addr, self._key, self._timeout, self._send = addr, key, timeout, send
        self._folder = discovery.cache_folder() if folder is None else folder
        self._node = None
        self._fresh = False

    def refresh(self):
        """Ask the node anew where its API lives, whatever is kept of it."""
        self._node, self._fresh = None, True

    def query(self, asked):
        """{"units", "scores" by id where the node explains them, "mode" or None}."""
        fields = [(name, value) for name, value in asked.items() if value]
        if asked.get("q"):
            fields.append(("explain", "1"))
        answer = self._ask("GET", f"/knowledge?{urlencode(fields, doseq=True)}")
        body = self._body(answer)
        data = body.get("data") if isinstance(body, dict) else None
        if not isinstance(data, list):
            raise NoAnswer("the node's answer cannot be read: it has no list of units")
        units = []
        for raw in data:
            try:
                units.append(record.complete(raw))
            except ValueError as fault:
                raise NoAnswer(
                    f"the node's answer cannot be read: decoding a unit: {fault}"
                ) from None
        scores = {}
        for unit, parts in zip(units, body.get("explain") or [], strict=False):
            if isinstance(parts, dict) and isinstance(parts.get("score"), int | float):
                scores[unit["id"]] = parts["score"]
        return {"units": units, "scores": scores, "mode": answer.headers.get("CQ-Search")}

    def propose(self, unit):
        """The unit as the node has it: under the same id, where the node honours idempotency."""
        sent = {
            "domains": unit["domains"],
            "insight": unit["insight"],
            "context": unit["context"],
            "created_by": unit.get("created_by") or "",
        }
        if unit.get("extensions"):
            sent["extensions"] = unit["extensions"]
        answer = self._ask("POST", "/knowledge", sent, {"Idempotency-Key": unit["id"]})
        return self._unit(answer)

    def confirm(self, unit_id):
        return self._unit(self._ask("POST", f"/knowledge/{_id(unit_id)}/confirmations"))

    def flag(self, unit_id, reason, detail=None, duplicate_of=None):
        given = {"reason": reason, "detail": detail, "duplicate_of": duplicate_of}
        sent = {name: value for name, value in given.items() if value}
        return self._unit(self._ask("POST", f"/knowledge/{_id(unit_id)}/flags", sent))

    def stats(self):
        """The node's statistics, an object."""
        body = self._body(self._ask("GET", "/knowledge/stats"))
        if not isinstance(body, dict):
            raise NoAnswer("the node's statistics cannot be read")
        return body

    def knows_key(self):
        """Whether the node accepts the key: an empty proposal is refused for its content then."""
        try:
            self._ask("POST", "/knowledge", {})
        except Refused:
            return True
        except NoAnswer as failure:
            if failure.status in (401, 403):
                return False
            raise
        return True

    def call(self, method, path, body=None):
        """The JSON that a path answers."""
        return self._body(self._ask(method, path, body))

    def node(self, deadline=None):
        """Where the API lives."""
        if self._node is None:
            until = time.monotonic() + self._timeout if deadline is None else deadline
            self._node = discovery.find(self.addr, until, self._folder, self._fresh, self._send)
            self._fresh = False
        return self._node

    def _moved(self):
        """What is known of where the API lives is wrong."""
        self._node = None
        discovery.forget(self.addr, self._folder)

    def _ask(self, method, path, body=None, headers=None):
        deadline = time.monotonic() + self._timeout
        node = self.node(deadline)
        headers = {"Accept": "application/json", **(headers or {})}
        if self._key:
            if not (self._key.isascii() and self._key.isprintable()):
                raise NoAnswer("CQ_API_KEY holds what is no part of a key, such as a line's end")
            headers["Authorization"] = f"Bearer {self._key}"
        raw = None
        if method == "POST":
            raw = json.dumps(body).encode() if body is not None else b""
            headers["Content-Type"] = "application/json"
        try:
            answer = self._send(method, node.api + path, headers, raw, deadline, transport.DATA)
        except transport.Unreachable as fault:
            self._moved()
            raise NoAnswer(f"the node did not answer: {fault}") from fault
        if 200 <= answer.status < 300:
            return answer
        raise self._failure(answer)

    def _failure(self, answer):
        status, detail = answer.status, _detail(answer.body)
        after = answer.headers.get("Retry-After") or ""
        retry_after = int(after) if after.isascii() and after.isdigit() else None
        if status in DEFINITE and not (status == 404 and not detail):
            return Refused(f"the node refuses: {detail or status}", status, detail, retry_after)
        if status == 404 or 300 <= status < 400:
            self._moved()
        told = REMEDIES.get(status) or f"the node answers {status}"
        if status not in REMEDIES and detail:
            told = f"{told}: {detail}"
        return NoAnswer(told, status, detail, retry_after)

    def _body(self, answer):
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise NoAnswer("the node's answer cannot be read: it is no JSON") from None

    def _unit(self, answer):
        """The unit that the node answers with."""
        try:
            body = json.loads(answer.body)
            if isinstance(body, dict) and isinstance(body.get("knowledge_unit"), dict):
                body = body["knowledge_unit"]
            return record.complete(body)
        except (ValueError, RecursionError):
            raise AppliedUnreadable(
                "the node accepted it, but its answer names no unit", answer.status
            ) from None


def _id(unit_id):
    if not rules.is_id(unit_id):
        raise ValueError(f"{unit_id!r} is no id of a unit")
    return quote(unit_id, safe="")


def _detail(body):
    """What a node says of a failure, in a line; a web page says nothing."""
    try:
        said = json.loads(body[: transport.FAULTS])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(said, dict):
        return ""
    detail = said.get("detail") or said.get("error") or ""
    if isinstance(detail, list):
        detail = "; ".join(_problem(each) for each in detail)
    text = detail if isinstance(detail, str) else json.dumps(detail)
    plain = (char if unicodedata.category(char)[0] != "C" else " " for char in text)
    return " ".join("".join(plain).split())[:DETAIL]


def _problem(each):
    """A line of a list of validation problems."""
    if not isinstance(each, dict):
        return str(each)
    place = ".".join(str(step) for step in each.get("loc") or [] if step != "body")
    return f"{place}: {each.get('msg', '')}" if place else str(each.get("msg", ""))
