"""Agents and reviewers at full speed.

A call whose answer was lost is made again until its outcome is known.
"""

import http.client
import json
import random
import threading
import time
from urllib.parse import urlencode

from bench import texts
from bench.load import HOST
from cq import unit as rules

# Seconds within which each call is answered, kills and restarts included.
PATIENCE = 90
KNOWN = 200


class Person(threading.Thread):
    """One account, one thing at a time: so whatever bears its name is what it did."""

    def __init__(self, node, ledger, stop, name, token):
        super().__init__(name=name, daemon=True)
        self.node, self.ledger, self.stop, self.token = node, ledger, stop, token
        self.rng = random.Random(name)
        self.turn = 0
        self.line = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.turn += 1
                self.act()
        except Exception as fault:
            self.ledger.fault(f"{self.name} stopped: {type(fault).__name__}: {fault}")
        finally:
            self.hang_up()

    def ask(self, did, method, path, body=None, expected=(), **headers):
        """(status, JSON, whether an earlier attempt may have done it already).

        What is neither 2xx nor `expected` is a fault; so is a 503 that does not say when to come
        again. What does is asked again.
        """
        unsure = False
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                status, given, wait = self._once(method, path, body, headers)
            except (OSError, http.client.HTTPException, ValueError):
                self.hang_up()
                unsure = True
                self.ledger.count(self.ledger.repeated, did)
                time.sleep(0.05)
                continue
            if status == 503 and wait:
                self.ledger.count(self.ledger.busy, did)
                time.sleep(0.2)
                continue
            if not 200 <= status < 300 and status not in expected:
                self.ledger.fault(f"{method} {path}: {status} {json.dumps(given)[:300]}")
            return status, given, unsure
        raise TimeoutError(f"{method} {path} was not answered within {PATIENCE} s")

    def _once(self, method, path, body, headers):
        if self.line is None:
            if self.node.port is None:
                raise ConnectionRefusedError
            self.line = http.client.HTTPConnection(HOST, self.node.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        self.line.request(method, f"/api/v1{path}", body, headers)
        answer = self.line.getresponse()
        wait = int(answer.headers.get("Retry-After", 0))
        return answer.status, json.loads(answer.read()), wait

    def hang_up(self):
        if self.line is not None:
            self.line.close()
            self.line = None

    def refuse(self, did):
        self.ledger.count(self.ledger.refused, did)


class Agent(Person):
    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []
        self.proposed = []

    def act(self):
        drawn = self.rng.random()
        if drawn < 0.4 or not self.seen:
            self.query()
            if drawn < 0.1 or not self.seen:
                self.propose()
        elif drawn < 0.6:
            self.propose()
        elif drawn < 0.65 and self.proposed:
            self.propose_again()
        elif drawn < 0.87:
            self.confirm()
        else:
            self.flag()

    def query(self):
        asked = [("domains", tag) for tag in texts.tags(self.rng, 2)]
        if self.rng.random() < 0.3:
            asked = [("q", texts.question(self.rng))]
        path = f"/knowledge?{urlencode([*asked, ('limit', 50)])}"
        status, found, _ = self.ask("query", "GET", path)
        self.ledger.count(self.ledger.done, "query")
        if status == 200:
            self.seen = (self.seen + [unit["id"] for unit in found["data"]])[-KNOWN:]

    def propose(self):
        body = texts.proposal(self.rng, self.rng.randrange(texts.TOPICS))
        body["insight"]["summary"] = f"{self.name} {self.turn} {body['insight']['summary']}"
        key = rules.new_id() if self.rng.random() < 0.5 else f"{self.name} {self.turn}"
        status, unit, _ = self._propose("propose", key, body)
        if status == 201:
            self.proposed = [*self.proposed, (key, body, unit["id"])][-KNOWN:]
            self.ledger.add("propose", who=self.name, unit=unit["id"], key=key)

    def propose_again(self):
        """The same under the same key is the same unit, whatever became of it."""
        key, body, id = self.rng.choice(self.proposed)
        status, unit, _ = self._propose("propose again", key, body)
        self.ledger.count(self.ledger.done, "propose again")
        if status == 201 and unit["id"] != id:
            self.ledger.fault(f"the key {key} made {id} and then {unit['id']}")

    def _propose(self, did, key, body):
        return self.ask(did, "POST", "/knowledge", body, **{"Idempotency-Key": key})

    def confirm(self):
        self._vote("confirm", self.rng.choice(self.seen), "confirmations", None)

    def flag(self):
        id, other = self.rng.choice(self.seen), self.rng.choice(self.seen)
        reason = self.rng.choice(rules.FLAG_REASONS)
        if reason == "duplicate" and other == id:
            reason = "stale"
        body = {"reason": reason, "detail": f"{self.name} {self.turn}"}
        if reason == "duplicate":
            body["duplicate_of"] = other
        self._vote("flag", id, "flags", body, kind=reason)

    def _vote(self, did, id, path, body, kind="confirm"):
        """A unit that another one took the place of since is refused with 404."""
        status, _, unsure = self.ask(did, "POST", f"/knowledge/{id}/{path}", body, expected=[404])
        if status == 201 or unsure:
            self.ledger.add(did, status == 201, who=self.name, unit=id, kind=kind)
        else:
            self.refuse(did)


class Reviewer(Person):
    def __init__(self, *args):
        super().__init__(*args)
        self.pending, self.approved = [], []

    def act(self):
        if not self.pending:
            _, page, _ = self.ask("queue", "GET", "/review/queue?limit=50")
            self.ledger.count(self.ledger.done, "queue")
            self.pending = [
                (item["knowledge_unit"]["id"], item["revision"]) for item in page["items"]
            ]
            self.rng.shuffle(self.pending)
            if not self.pending:
                time.sleep(0.05)
                return
        drawn = self.rng.random()
        if drawn < 0.1 and len(self.approved) > 10:
            self.supersede()
            return
        id, revision = self.pending.pop()
        if drawn < 0.25:
            self.edit(id, revision)
        elif drawn < 0.4:
            self.decide(id, "reject", "rejected", {"reason": "Not so."})
        else:
            tier = self.rng.choice(rules.TIERS)
            self.decide(id, "approve", "approved", {"tier": tier})

    def decide(self, id, verb, status, body):
        """Another reviewer may be first: the 409 says so, and the history who was."""
        if self._step(verb, id, body, lambda told: self._mine(told, status)):
            self.ledger.add(verb, who=self.name, unit=id, type=status)
            if verb == "approve":
                self.approved = [*self.approved, id][-KNOWN:]

    def supersede(self):
        id, heir = self.rng.sample(self.approved, 2)
        body = {"replacement": heir, "reason": "Better said there."}
        self.approved.remove(id)
        if self._step("supersede", id, body, lambda told: self._mine(told, "superseded")):
            self.ledger.add("supersede", who=self.name, unit=id, type="superseded", heir=heir)

    def edit(self, id, revision):
        words = f"{self.name} {self.turn} edited {texts.question(self.rng)}"
        body = {"insight": {"summary": words}, "revision": revision}

        def mine(told):
            return any(each["insight"]["summary"] == words for each in told["revisions"])

        if self._step("edit", id, body, mine):
            self.ledger.add("edit", who=self.name, unit=id, type="edited", summary=words)

    def _step(self, did, id, body, mine):
        """Whether it was done; a refusal of a repeat is looked into."""
        method, path = ("PATCH", "") if did == "edit" else ("POST", f"/{did}")
        refusals = [409, 422] if did == "supersede" else [409]
        status, _, unsure = self.ask(did, method, f"/review/{id}{path}", body, expected=refusals)
        if status == 200:
            return True
        if unsure and mine(self.ask("history", "GET", f"/review/{id}/history")[1]):
            return True
        self.refuse(did)
        return False

    def _mine(self, told, type):
        return any(each["type"] == type and each["by"] == self.name for each in told["events"])
