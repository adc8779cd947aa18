"""What this machine and a node know, as one: units ranked together, statistics added up."""

import re

from cq import ranking, record
from cq import unit as rules

_WORD = re.compile(r"\w+")


def merged(here, there, asked, q="", scores=None, mode=None):
    """Local units and a node's, best first, by one rule; of an id the better evidenced copy.

    `scores` are the node's own by id, of its fused ranking: a unit that it does not know is scored
    by the same rule. Without them a score is relevance * confidence, and units that have none keep
    the node's order at the end.
    """
    both = {unit["id"]: unit for unit in here}
    for unit in there:
        known = both.get(unit["id"])
        if known is None or _evidence(unit) >= _evidence(known):
            both[unit["id"]] = unit
    if not (q and scores):
        return record.rank(list(both.values()), asked, len(both) or 1)
    meaning = ranking.NEUTRAL if mode == "semantic" else None
    all_scores = {id: _score(unit, asked, q, meaning) for id, unit in both.items()} | scores
    return sorted(both.values(), key=lambda unit: -all_scores[unit["id"]])


def _score(unit, asked, q, meaning):
    said = set(_WORD.findall(rules.fold(" ".join(unit["insight"].values()))))
    wanted = set(_WORD.findall(rules.fold(q)))
    text = len(wanted & said) / len(wanted) if wanted else 0.0
    tags = record.relevance(unit, asked)
    return ranking.score(text, meaning, tags, unit["evidence"]["confidence"])


def _evidence(unit):
    return unit["evidence"]["confirmations"] + len(unit["flags"])


def add_stats(stats, there):
    """Add a node's statistics to local ones; what cannot be read becomes a warning in them."""
    warnings = stats["warnings"]
    for tier, count in _section(there, "tier_counts", warnings).items():
        if tier in rules.TIERS:
            stats["tier_counts"][tier] = stats["tier_counts"].get(tier, 0) + count
            stats["total_count"] += count
        elif tier != "local":
            warnings.append(f"the node counts an unknown tier: {tier[:40]!r}")
    for name, count in _section(there, "domain_counts", warnings).items():
        stats["domain_counts"][name] = stats["domain_counts"].get(name, 0) + count
    for label, count in _section(there, "confidence_distribution", warnings).items():
        if label in stats["confidence_distribution"]:
            stats["confidence_distribution"][label] += count
        else:
            warnings.append(f"the node counts an unknown range of confidence: {label[:40]!r}")


def _section(there, name, warnings):
    section = there.get(name)
    if section is None:
        return {}
    if isinstance(section, dict) and all(type(count) is int for count in section.values()):
        return section
    warnings.append(f"{name} of the node cannot be read")
    return {}


def votes(unit):
    """What a local unit has beside what a proposal carries, in words; empty if nothing."""
    confirmations, flags = unit["evidence"]["confirmations"] - 1, len(unit["flags"])
    told = [(confirmations, "confirmation"), (flags, "flag")]
    counted = [f"{count} {word}{'s' * (count > 1)}" for count, word in told if count > 0]
    return " and ".join(counted)
