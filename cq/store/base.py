"""What every store does, whatever it keeps units in: bounds, ranking, statistics."""

from typing import NamedTuple

from cq import record
from cq import unit as rules

LIMIT, MOST, TAGS = 5, 500, 50


class Closing:
    """A store in a `with` is closed at its end."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Found(NamedTuple):
    """Units, best first, and a line on each trouble that did not prevent an answer."""

    units: list
    warnings: list


def bounds(asked, limit):
    """The limit to go by. Raises ValueError for what no query may ask."""
    if limit < 0:
        raise ValueError("limit must be positive")
    if limit > MOST:
        raise ValueError(f"limit must be at most {MOST}")
    for name in ("domains", "languages", "frameworks"):
        if len(getattr(asked, name)) > TAGS:
            raise ValueError(f"the maximum number of {name} is {TAGS}")
    return limit or LIMIT


def ranked(units, asked, limit, by_words):
    """Units that score by tags, then those found by words alone, in the order of `by_words`."""
    units = list(units)
    places = {id: place for place, id in enumerate(by_words)}
    scoring = [unit for unit in units if record.score(unit, asked) > 0]
    ids = {unit["id"] for unit in scoring}
    others = [unit for unit in units if unit["id"] in places and unit["id"] not in ids]
    others.sort(key=lambda unit: places[unit["id"]])
    return (record.rank(scoring, asked, limit) + others)[:limit]


def statistics(total, domains, recent, confidences):
    """The JSON of a store's statistics; `domains` are (name, count) pairs."""
    return {
        "total_count": total,
        "domain_counts": dict(sorted(domains, key=lambda each: (-each[1], each[0]))),
        "recent": recent,
        "confidence_distribution": record.buckets(confidences),
        "tier_counts": {"local": total},
        "warnings": [],
    }


def clean(unit):
    """A unit to be stored: complete, its domains folded. Raises ValueError."""
    unit = record.complete(unit)
    domains = rules.normalise(unit["domains"])
    if not domains:
        raise ValueError("at least one domain must not be blank")
    return {**unit, "domains": domains}
