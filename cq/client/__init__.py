"""What an agent may do: query, propose, confirm, flag, status, drain, hold. Local first: a node
that does not answer costs a warning, never a proposal. Knows no command line and no MCP.
"""

import os

from cq import record, safety, store
from cq import unit as rules
from cq.client.checks import candidate, check, listed
from cq.client.merging import add_stats, merged, votes
from cq.client.results import Drained, Found, Held, Proposed
from cq.failures import CqError, Invalid, NoNode, NotFound, Refused, RemoteFailure, Unsafe

__all__ = ["Client", "CqError", "Drained", "Found", "Held", "Proposed"]

LIMIT, MOST = 5, 50
# Seconds for a whole exchange with a node.
TIMEOUT = 30.0
# Notes in the store: what the last drain did, and which id a node gave to a unit of ours.
DRAINED, SENT = "drained", "sent:"


class Client:
    """`addr` and `key` default to CQ_ADDR and CQ_API_KEY; `store` is a path, a URL or an open
    store, which stays the caller's to close. Safe across threads as its store is.
    """

    def __init__(self, addr=None, key=None, store=None, timeout=TIMEOUT, environ=os.environ):
        self.addr = (environ.get("CQ_ADDR", "") if addr is None else addr).strip()
        self._key = (environ.get("CQ_API_KEY", "") if key is None else key).strip()
        self._where, self._environ, self.timeout = store, environ, timeout
        self._given = not (store is None or isinstance(store, str | os.PathLike))
        self._opened = store if self._given else None
        self._node = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if not self._given and self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def store(self):
        """Opened at first use. Raises `cq.store.StoreError`."""
        if self._opened is None:
            self._opened = store.open_store(self._where, self._environ)
        return self._opened

    @property
    def remote(self):
        """The node. Raises a RemoteFailure if its address is none."""
        if self._node is None:
            # HTTP costs as much to import as all the rest, and the local store needs none of it.
            from cq.remote import Remote

            self._node = Remote(self.addr, self._key, self.timeout)
        return self._node

    @property
    def has_key(self):
        return bool(self._key)

    def twin(self):
        """The same with a store of its own, for a thread of its own."""
        return Client(self.addr, self._key, self._where, self.timeout, self._environ)

    def refresh(self):
        """Ask anew where the node's API lives, whatever was kept of it."""
        self.remote.refresh()

    def query(self, domains=(), q="", languages=(), frameworks=(), pattern="", limit=LIMIT):
        """`Found`: units that share a tag with `domains`, or answer the question `q`."""
        limit = LIMIT if limit <= 0 else min(limit, MOST)
        tags = {
            "domains": listed(domains),
            "languages": listed(languages),
            "frameworks": listed(frameworks),
            "pattern": pattern,
        }
        given = {name: value for name, value in {**tags, "q": q}.items() if value}
        if not given.keys() & {"domains", "q"}:
            raise Invalid(["domains or a question: at least one is needed"])
        check("Query", given)
        asked = record.ask(**tags)
        here = self.store.find(asked, q, limit=MOST)
        warnings = list(here.warnings)
        if self.addr and (q or asked.domains):
            there = self._tried(
                lambda: self.remote.query({**given, "limit": limit}),
                "only this machine's units were searched",
                warnings,
            )
            if there:
                warnings += there["warnings"]
                scores, mode = there["scores"], there["mode"]
                found = merged(here.units, there["units"], asked, q, scores, mode)
                return Found(found[:limit], "local+remote", warnings, mode)
        return Found(here.units[:limit], "local", warnings, None)

    def _tried(self, call, instead, warnings):
        """What the node answers, or None, and a warning that says what was done instead."""
        try:
            return call()
        except RemoteFailure as failure:
            warnings.append(f"{failure}; {instead}")
            return None

    def propose(self, *said, **more):
        """`Proposed`: share a unit, of which `candidate` tells the arguments.

        Raises Invalid, Unsafe and Refused; then nothing is kept.
        """
        return self._share(self.candidate(*said, **more))

    candidate = staticmethod(candidate)

    def _share(self, unit):
        """Keep the unit, send it, let it go when the node has it: whatever ends this in between
        loses nothing, and a node knows the id when it comes again.
        """
        findings = safety.check(unit)
        if refusals := safety.refusals(findings):
            raise Unsafe(refusals)
        if not self.addr:
            self._keep(unit)
            return Proposed(unit, True, [], findings)
        warnings = []
        try:
            self._keep(unit)
        except store.StoreError as fault:
            warnings.append(f"this machine's store fails: {fault}")
        kept = not warnings
        try:
            sent = self.remote.propose(unit)
        except Refused:
            if kept:
                self._let_go(unit["id"], unit["id"])
            raise
        except RemoteFailure as failure:
            if not kept:
                raise NoNode(f"the unit is NOT saved. {failure}; {warnings[0]}") from failure
            warnings.append(f"{failure}; the unit is kept here until `cq drain` sends it")
            return Proposed(unit, True, warnings, findings)
        if kept:
            self._let_go(unit["id"], sent["id"])
        return Proposed(sent, False, warnings, findings)

    def _keep(self, unit):
        try:
            self.store.add(unit)
        except store.Duplicate:
            # A held candidate whose sending was broken off.
            return

    def _let_go(self, id, given):
        """The unit need not wait here; the node has it under the id that it gave, if it has it."""
        if given != id:
            self.store.note(SENT + id, given)
        try:
            self.store.delete(id)
        except store.Missing:
            # A drain was there first; the node took both for one.
            return

    def confirm(self, unit_id):
        """The unit after one more confirmation: here if it is here, else on the node."""
        return self._vote(
            unit_id,
            lambda unit: record.confirmed(unit, record.now()),
            lambda id: self.remote.confirm(id),
        )

    def flag(self, unit_id, reason, detail=None, duplicate_of=None):
        """The same after a flag: stale, incorrect, or duplicate of another."""
        given = {"reason": rules.fold(reason), "detail": detail, "duplicate_of": duplicate_of}
        given = check("Flag", given)
        return self._vote(
            unit_id,
            lambda unit: record.flagged(unit, record.now(), **given),
            lambda id: self.remote.flag(id, **given),
        )

    def _vote(self, unit_id, here, there):
        if not rules.is_id(unit_id):
            raise Invalid([f"{unit_id!r} is no id of a unit: ku_ and 32 hexadecimal digits"])
        try:
            return self.store.change(unit_id, here)
        except store.Missing:
            if not self.addr:
                raise NotFound(
                    f"{unit_id} is not on this machine, and no node is configured (CQ_ADDR)"
                ) from None
        try:
            return there(self.store.noted(SENT + unit_id) or unit_id)
        except Refused as refused:
            if refused.status != 404:
                raise
            raise NotFound(
                f"{unit_id} is not on this machine, and the node has no approved unit of this id"
            ) from None
        except RemoteFailure as failure:
            raise NoNode(f"{unit_id} is not on this machine. {failure}") from failure

    def status(self):
        """The statistics of this machine and of the node as one, with `held`, a count, and `drain`,
        how the last one went.
        """
        stats = self.store.stats(recent=5)
        stats["held"] = len(self.store.held())
        stats["drain"] = self.store.noted(DRAINED)
        if self.addr:
            there = self._tried(
                lambda: self.remote.stats(),
                "only this machine's numbers are shown",
                stats["warnings"],
            )
            if there is not None:
                add_stats(stats, there)
        return stats

    def waiting(self):
        """The units that wait to be sent, oldest first."""
        return [unit for unit in self.store.all() if unit["tier"] == "local"]

    def drain(self, told=lambda done, total: None):
        """`Drained`: send what waits and let go of what the node has. An answer that does not come
        ends it, a refusal does not. `told` hears how far it is. Raises NoNode and `cq.store.Busy`.
        """
        if not self.addr:
            raise NoNode("no node to send to: set CQ_ADDR or give --addr")
        with self.store.draining():
            drained = self._drain(told)
        self.store.note(DRAINED, {**drained._asdict(), "at": record.now()})
        return drained

    def _drain(self, told):
        units, warnings, pushed, refused = self.waiting(), [], 0, 0
        for number, unit in enumerate(units):
            told(number, len(units))
            try:
                if unsafe := safety.refusals(safety.check(unit)):
                    raise Unsafe(unsafe)
                sent = self.remote.propose(unit)
            except (Unsafe, Refused) as failure:
                refused += 1
                warnings.append(f"{unit['id']} stays here: {failure}")
                continue
            except RemoteFailure as failure:
                warnings.append(f"{unit['id']} stays here: {failure}")
                break
            self._let_go(unit["id"], sent["id"])
            pushed += 1
            if lost := votes(unit):
                warnings.append(f"{unit['id']} was sent; {lost} that were made here do not travel")
        told(pushed + refused, len(units))
        return Drained(pushed, refused, len(units) - pushed - refused, warnings)

    def hold(self, unit, why):
        """Keep a candidate until a person decides."""
        self.store.hold(unit, why)

    def held(self):
        """[Held], oldest first."""
        return [Held(*each) for each in self.store.held()]

    def release(self, unit_id):
        """Drop a candidate. Raises NotFound."""
        try:
            self.store.release(unit_id)
        except store.Missing:
            raise NotFound(f"{unit_id} is not held; `cq held` lists what is") from None

    def send(self, unit_id):
        """Propose a candidate that a person approved, and release it. Raises as `propose` does."""
        units = {each.unit["id"]: each.unit for each in self.held()}
        if unit_id not in units:
            raise NotFound(f"{unit_id} is not held; `cq held` lists what is")
        unit = units[unit_id]
        said = {**unit["insight"], **unit["context"], "domains": unit["domains"]}
        self.candidate(**said, extensions=unit.get("extensions"))
        # Under its own id: if this is broken off and done again, the node knows it.
        proposed = self._share(unit)
        self.store.release(unit_id)
        return proposed
