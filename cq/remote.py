"""HTTP to a node: paths, statuses, the key. The key goes where discovery may lead, nowhere else."""

import json
import re
import threading
import time
import unicodedata
from itertools import zip_longest
from urllib.parse import quote, urlencode

from cq import discovery, record, transport
from cq import unit as rules
from cq.failures import AppliedUnreadable, DiscoveryFailed, Invalid, NoAnswer, Refused

# The node looked at what was sent, and will say the same again.
DEFINITE = {400, 404, 405, 409, 410, 413, 415, 422}
# What frameworks say of a path that they do not serve; of a unit, a node says more.
NO_ROUTE = "Not Found"
DETAIL = 300
REMEDIES = {
    401: "the node does not accept the API key: check CQ_API_KEY, or make a new key by "
    "`cq auth key create`",
    403: "the API key may not do this on the node",
    429: "the node asks to slow down",
}


class Remote:
    """A node. `timeout` is for a whole exchange, discovery and the answer's last byte included."""

    def __init__(self, addr, key="", timeout=30.0, folder=None, send=transport.send):
        self.addr, self._key, self._timeout, self._send = addr, key, timeout, send
        self._folder = discovery.cache_folder() if folder is None else folder
        self._node, self._until = None, 0.0
        self._fresh, self._finding = False, threading.Lock()

    def refresh(self):
        """Ask the node anew where its API lives, whatever is kept of it."""
        self._node, self._fresh = None, True

    def query(self, asked):
        """{"units", "scores" by id where the node explains them, "mode" or None, "warnings"}."""
        fields = [(name, value) for name, value in asked.items() if value]
        if asked.get("q"):
            fields.append(("explain", "1"))
        answer = self._ask("GET", f"/knowledge?{urlencode(fields, doseq=True)}")
        body = self._body(answer)
        data = body.get("data") if isinstance(body, dict) else None
        if not isinstance(data, list):
            raise NoAnswer("the node's answer cannot be read: it has no list of units")
        explained = body.get("explain") if isinstance(body.get("explain"), list) else []
        units, scores, warnings = [], {}, []
        for raw, parts in zip_longest(data, explained[: len(data)]):
            try:
                unit = record.complete(raw)
            except ValueError as fault:
                warnings.append(f"a unit of the node is left out, for it cannot be read: {fault}")
                continue
            units.append(unit)
            score = parts.get("score") if isinstance(parts, dict) else None
            # Neither True, nor NaN, nor what no sum could hold.
            if type(score) in (int, float) and abs(score) < 1e9:
                scores[unit["id"]] = score
        mode = answer.headers.get("CQ-Search")
        return {"units": units, "scores": scores, "mode": mode, "warnings": warnings}

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
        return self._unit(answer, unit)

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
        """The JSON that a path answers, None where it answers nothing."""
        answer = self._ask(method, path, body)
        return self._body(answer) if answer.body else None

    def node(self, deadline=None):
        """Where the API lives; after minutes it is looked up again, for it may have moved.

        Threads that ask at once wait for the first, each as long as its own deadline lets it.
        """
        by = time.monotonic() + self._timeout if deadline is None else deadline
        if not self._finding.acquire(timeout=max(0.0, by - time.monotonic())):
            raise DiscoveryFailed("the node cannot be reached: it did not answer in time")
        try:
            if self._node is None or time.monotonic() >= self._until:
                self._node = None
                self._node = discovery.find(self.addr, by, self._folder, self._fresh, self._send)
                self._fresh, self._until = False, time.monotonic() + discovery.ABSENT_KEPT
            return self._node
        finally:
            self._finding.release()

    def _moved(self):
        """What is kept of where the API lives may be wrong, in memory and in the folder."""
        self.refresh()
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
            raise self._broken(fault, method) from fault
        if 200 <= answer.status < 300:
            return answer
        raise self._failure(answer)

    def _broken(self, fault, method):
        """The failure for an answer that did not come whole; its status may settle it."""
        if fault.status is None:
            self._moved()
            return NoAnswer(f"the node did not answer: {fault}")
        if fault.status >= 300:
            return self._failure(transport.Answer(fault.status, {}, b""))
        if method == "POST":
            return AppliedUnreadable(
                f"the node accepted it, but its answer is lost: {fault}", fault.status
            )
        return NoAnswer(f"the node's answer cannot be read: {fault}", fault.status)

    def _failure(self, answer):
        status, detail = answer.status, _detail(answer.body)
        after = answer.headers.get("Retry-After") or ""
        # Nine digits are thirty years.
        retry_after = int(after) if re.fullmatch("[0-9]{1,9}", after) else None
        if status in DEFINITE and not (status == 404 and detail in ("", NO_ROUTE)):
            return Refused(f"the node refuses: {detail or status}", status, detail, retry_after)
        if status == 404 or 300 <= status < 400:
            self._moved()
        told = REMEDIES.get(status) or f"the node answers {status}"
        if status not in REMEDIES and detail:
            told = f"{told}: {detail}"
        if retry_after:
            told = f"{told}; it may be asked again in {retry_after} s"
        return NoAnswer(told, status, detail, retry_after)

    def _body(self, answer):
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise NoAnswer("the node's answer cannot be read: it is no JSON") from None

    def _unit(self, answer, own=None):
        """The unit of an answer. An id alone says that the node has `own`, which was sent."""
        body = None
        try:
            body = json.loads(answer.body)
            if isinstance(body, dict) and isinstance(body.get("knowledge_unit"), dict):
                body = body["knowledge_unit"]
            return record.complete(body)
        except (ValueError, RecursionError):
            if own and isinstance(body, dict) and rules.is_id(body.get("id")):
                return {**own, "id": body["id"], "tier": "private"}
            raise AppliedUnreadable(
                "the node accepted it, but its answer names no unit", answer.status
            ) from None


def _id(unit_id):
    if not rules.is_id(unit_id):
        raise Invalid([f"{unit_id!r} is no id of a unit: ku_ and 32 hexadecimal digits"])
    return quote(unit_id, safe="")


def _detail(body):
    """What a node says of a failure, in a line; a web page says nothing."""
    try:
        said = json.loads(body)
        if not isinstance(said, dict):
            return ""
        detail = said.get("detail") or said.get("error") or ""
        if isinstance(detail, list):
            detail = "; ".join(_problem(each) for each in detail)
        text = detail if isinstance(detail, str) else json.dumps(detail)
    except (ValueError, RecursionError):
        return ""
    plain = (char if unicodedata.category(char)[0] != "C" else " " for char in text)
    return " ".join("".join(plain).split())[:DETAIL]


def _problem(each):
    """A line of a list of validation problems."""
    if not isinstance(each, dict):
        return str(each)
    steps, told = each.get("loc"), str(each.get("msg", "")).removeprefix("Value error, ")
    if not isinstance(steps, list):
        return told
    place = ".".join(str(step) for step in steps if step not in ("body", "query"))
    return f"{place}: {told}" if place else told
