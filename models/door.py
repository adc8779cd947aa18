"""Safety at the door: for what words are refused, and what is kept for reviewers to weigh.

What is found is what `cq.safety` finds on an agent's machine too; never the thing itself.
"""

from cq import safety
from errors import Invalid

# The part of a body in which a member stands.
WITHIN = {
    **dict.fromkeys(("summary", "detail", "action"), "insight"),
    **dict.fromkeys(("languages", "frameworks", "pattern"), "context"),
}
REFUSED = {safety.SECRET: "a secret", safety.HIDDEN: "a hidden character"}


def look(words, strict):
    """(findings, refusal): [{"field", "kind", "text"}] of a proposal's members or an edit's, and
    the Invalid that names what may not come in. That is None where all may, or not `strict`.
    """
    found = safety.check(words)
    refused = safety.refusals(found) if strict else []
    return _told(found), Invalid([_problem(each) for each in refused]) if refused else None


def findings(unit):
    """The findings of all the words that a row has."""
    return _told(safety.check({**unit.content(), "extensions": unit.extensions}))


def _told(found):
    return [{"field": each.field, "kind": each.kind, "text": each.text} for each in found]


def _problem(found):
    place = filter(None, ("body", WITHIN.get(found.field), found.field))
    text = f"Value error, {REFUSED[found.kind]} must be taken out: {found.text}"
    return {"type": "value_error", "loc": list(place), "msg": text}
