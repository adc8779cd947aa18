"""A unit as an agent's machine keeps it: JSON as the wire has it, read leniently whoever wrote it,
changed by votes, ranked. Members that are unknown here are kept.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from cq import unit as rules

TIMES = ("first_observed", "last_confirmed")
# RFC 3339 with any number of digits; Python reads six.
_FRACTION = re.compile(r"(\.\d{1,6})\d*")
_KINDS = {str: "text", list: "list", dict: "object"}


class Asked(NamedTuple):
    """What a query names, folded: tuples of tags, and a pattern."""

    domains: tuple
    languages: tuple
    frameworks: tuple
    pattern: str


def ask(domains, languages=(), frameworks=(), pattern=""):
    lists = (tuple(rules.normalise(tags)) for tags in (domains, languages, frameworks))
    return Asked(*lists, rules.fold(pattern))


def now():
    return _text(datetime.now(UTC))


def _text(moment):
    return moment.isoformat().replace("+00:00", "Z")


def complete(raw):
    """A new unit with every member that a reader expects. Raises ValueError if it is none."""
    if not isinstance(raw, dict) or not rules.is_id(raw.get("id")):
        raise ValueError("no id of a unit")
    insight = raw.get("insight")
    if not isinstance(insight, dict) or not all(
        isinstance(insight.get(name), str) for name in ("summary", "detail", "action")
    ):
        raise ValueError("insight needs summary, detail and action")
    context = _member(raw, "context", dict)
    unit = {
        **raw,
        "version": raw.get("version") or 1,
        "domains": _strings(raw, "domains"),
        "context": {
            **context,
            "languages": _strings(context, "languages"),
            "frameworks": _strings(context, "frameworks"),
            "pattern": _member(context, "pattern", str),
        },
        "evidence": _evidence(_member(raw, "evidence", dict)),
        "tier": _member(raw, "tier", str) or "local",
        "created_by": _member(raw, "created_by", str),
        "extensions": _member(raw, "extensions", dict),
        "flags": [_flag(flag) for flag in _member(raw, "flags", list)],
    }
    if not unit["domains"]:
        raise ValueError("domains are missing")
    for name in ("superseded_by", "extensions"):
        if not unit.get(name):
            unit.pop(name, None)
    return unit


def _member(raw, name, kind):
    """The member; an empty one of its kind where it is null or not there. Raises ValueError."""
    value = raw.get(name) or kind()
    if not isinstance(value, kind):
        raise ValueError(f"{name} is no {_KINDS[kind]}")
    return value


def _strings(raw, name):
    items = _member(raw, name, list)
    if not all(isinstance(item, str) for item in items):
        raise ValueError(f"{name} is no list of texts")
    return list(items)


def _evidence(raw):
    confidence, confirmations = raw.get("confidence"), raw.get("confirmations")
    evidence = {
        **raw,
        "confidence": rules.START if confidence is None else confidence,
        "confirmations": 1 if confirmations is None else confirmations,
    }
    for name, value in (("confidence", confidence), ("confirmations", confirmations)):
        number = evidence[name]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(f"{name} is no number: {value!r:.40}")
        if not _finite(number):
            raise ValueError(f"{name} is not finite")
    for name in TIMES:
        if evidence.get(name):
            evidence[name] = moment(evidence[name])
        else:
            evidence.pop(name, None)
    return evidence


def _finite(number):
    try:
        return rules.finite(float(number))
    except OverflowError:
        # JSON has whole numbers that no double holds.
        return False


def _flag(raw):
    if not isinstance(raw, dict) or not isinstance(raw.get("reason"), str):
        raise ValueError("a flag has no reason")
    flag = {name: value for name, value in raw.items() if value is not None}
    if "timestamp" in flag:
        flag["timestamp"] = moment(flag["timestamp"])
    return flag


def moment(text):
    """A time of RFC 3339 as UTC with `Z`; one without an offset is UTC. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError("a time is no text")
    # `t` and `z` are as good as `T` and `Z` to RFC 3339, and not to Python.
    read = datetime.fromisoformat(_FRACTION.sub(r"\1", text.strip().upper()))
    try:
        return _text(read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC))
    except OverflowError:
        raise ValueError(f"a time before the first year or after the last: {text:.40}") from None


def make(
    summary,
    detail,
    action,
    domains,
    languages=(),
    frameworks=(),
    pattern="",
    extensions=None,
    created_by="",
):
    """A new local unit, seen once, now."""
    at = now()
    unit = {
        "id": rules.new_id(),
        "version": 1,
        "domains": rules.normalise(domains),
        "insight": {"summary": summary, "detail": detail, "action": action},
        "context": {
            "languages": list(languages),
            "frameworks": list(frameworks),
            "pattern": pattern,
        },
        "evidence": {
            "confidence": rules.START,
            "confirmations": 1,
            "first_observed": at,
            "last_confirmed": at,
        },
        "tier": "local",
        "created_by": created_by,
        "flags": [],
    }
    return {**unit, "extensions": extensions} if extensions else unit


def confirmed(unit, at):
    """The unit after one more confirmation."""
    evidence = unit["evidence"]
    return {
        **unit,
        "evidence": {
            **evidence,
            "confidence": rules.shift(evidence["confidence"], rules.CONFIRM),
            "confirmations": evidence["confirmations"] + 1,
            "last_confirmed": at,
        },
    }


def flagged(unit, at, reason, detail=None, duplicate_of=None):
    """The unit after one more flag."""
    flag = {"reason": reason, "timestamp": at, "detail": detail, "duplicate_of": duplicate_of}
    evidence = unit["evidence"]
    return {
        **unit,
        "evidence": {
            **evidence,
            "confidence": rules.shift(evidence["confidence"], rules.FLAG),
        },
        "flags": [*unit["flags"], {name: value for name, value in flag.items() if value}],
    }


def relevance(unit, asked):
    """How well a unit fits what is asked, 0..1; see `cq.unit.relevance`."""
    domains, context = set(rules.normalise(unit["domains"])), unit["context"]
    shared, either = domains & {*asked.domains}, domains | {*asked.domains}
    return rules.relevance(
        len(shared),
        len(either) or 1,
        _meets(context["languages"], asked.languages),
        _meets(context["frameworks"], asked.frameworks),
        bool(asked.pattern) and rules.fold(context["pattern"]) == asked.pattern,
    )


def _meets(tags, asked):
    return bool(asked) and not {*map(rules.fold, tags)}.isdisjoint(asked)


def score(unit, asked):
    """Relevance * confidence."""
    return relevance(unit, asked) * unit["evidence"]["confidence"]


def rank(units, asked, limit):
    """The best of these units, best first; of equals the newer, and then the greater id."""
    units = sorted(units, key=lambda unit: (_seen(unit), unit["id"]), reverse=True)
    return sorted(units, key=lambda unit: -score(unit, asked))[:limit]


def _seen(unit):
    """When it was first observed, as text in the order of time: `Z` would sort after a fraction."""
    return unit["evidence"].get("first_observed", "").removesuffix("Z")


def buckets(confidences):
    """{label: how many}, a bound counted with what lies above it."""
    labels = rules.bucket_labels(rules.AGENT_BUCKETS)
    counts = dict.fromkeys(labels, 0)
    for confidence in confidences:
        # Arithmetic of doubles leaves .29999999999999993 of what is .3.
        exact = round(confidence, 6)
        counts[labels[sum(exact >= edge for edge in rules.AGENT_BUCKETS)]] += 1
    return counts
