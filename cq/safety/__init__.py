"""What a unit must not carry to others: secrets, personal data, internal places, hidden characters,
text that addresses the model that reads it. Knows no database and no network.

Secrets and hidden characters are refused (`hard`); the rest is for a person to weigh. Each pattern
takes time in proportion to the text. How much is found is measured by bench/safety.py.
"""

from typing import NamedTuple

from cq.safety import hidden, patterns

SECRET, PERSONAL, INTERNAL, HIDDEN, DIRECTIVE = (
    "secret", "personal", "internal", "hidden", "directive",
)  # fmt: skip
HARD = {SECRET, HIDDEN}


class Finding(NamedTuple):
    """Where, of which kind, and in words what was found; never the thing itself."""

    field: str
    kind: str
    hard: bool
    text: str


def check(unit):
    """[Finding] of a unit's JSON, in the order of its members; one of a kind and text per field."""
    return [finding for field, text in _texts(unit) for finding in check_text(field, text)]


def refusals(findings):
    """Those for which nothing may leave."""
    return [finding for finding in findings if finding.hard]


def check_text(field, text):
    """[Finding] of one text."""
    found = [(HIDDEN, what) for what in hidden.found(text)]
    found += [(SECRET, what) for what in patterns.secrets(text)]
    found += [(PERSONAL, what) for what in patterns.personal(text)]
    found += [(INTERNAL, what) for what in patterns.internal(text)]
    found += [(DIRECTIVE, what) for what in patterns.directives(text)]
    return [Finding(field, kind, kind in HARD, what) for kind, what in dict.fromkeys(found)]


def _texts(unit):
    """(field, text) of all that people wrote."""
    insight, context = unit.get("insight") or {}, unit.get("context") or {}
    for name in ("summary", "detail", "action"):
        yield name, insight.get(name) or ""
    for name, tags in (
        ("domains", unit.get("domains")),
        ("languages", context.get("languages")),
        ("frameworks", context.get("frameworks")),
    ):
        yield name, "\n".join(tags or [])
    yield "pattern", context.get("pattern") or ""
    yield "extensions", "\n".join(_strings(unit.get("extensions") or {}))


def _strings(value):
    """The texts within JSON, keys too."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list):
            waiting += each
