"""Evidence by tags, by words and by meaning: who is a candidate, and who is good enough.

What the evidence comes to is told by `cq.ranking`; bounds were measured, see docs/decisions.md and
bench/retrieval.py.
"""

from functools import partial
from typing import NamedTuple

from cq.ranking import NEUTRAL, score, told
from index.order import Asked
from models import Unit, full_text

# Candidates of each sort.
DEPTH = 50
# Units that share no tag are left out unless the best one's evidence comes up to this: by words
# and meaning for a question, the same for tags that were asked for alone, and by words only.
ENOUGH, ENOUGH_FOR_TAGS, ENOUGH_WORDS = 0.47, 0.3, 0.38
# And of them those with less than this part of the best one's evidence.
TAIL = 0.5
# A unit so near by meaning answers a question with which it shares no word.
NEAR = 0.55
# What is less alike than this is no near duplicate.
ALIKE = 0.5


class Candidate(NamedTuple):
    """A unit with its evidence: by words and meaning together, in all, and part by part."""

    pk: int
    shares: bool
    told: float
    good: bool
    parts: dict


def fused(index, vectors, asked, question, meant, words, limit, private):
    """[(row number, parts of its score)] of the best approved units, best first.

    `words` is what `worded` gave. `meant` is what the question means, None in domain mode: then
    words and tags make the score.
    """
    found = list(_candidates(index, vectors, asked, question, meant, words, private))
    good = any(each.good for each in found)
    least = TAIL * max((each.told for each in found), default=0.0)
    kept = [each for each in found if each.shares or (good and each.told > least)]
    kept.sort(key=lambda each: (-each.parts["score"], -each.pk))
    return [(each.pk, each.parts) for each in kept[:limit]]


def worded(index, said, private, common):
    """{row number: weight} of the approved units that have words of what is asked."""
    served = partial(index.served, private=private)
    return dict(full_text.matching(said, DEPTH, served, common))


def _candidates(index, vectors, asked, question, meant, words, private):
    pks = {*words, *(pk for pk, _ in index.rank(*asked, limit=DEPTH, private=private))}
    kin, similar = {}, {}
    if meant:
        akin = Asked(meant.kin, *asked[1:])
        pks.update(pk for pk, _ in index.rank(*akin, limit=DEPTH, private=private))
        pks.update(pk for pk, _ in vectors.nearest(meant.vector, DEPTH, private))
        kin = index.look(pks, akin, private) if meant.kin else {}
        similar = vectors.similarities(pks, meant.vector)
    for pk, seen in index.look(pks, asked, private).items():
        tags, shares = seen.relevance, seen.shares
        if pk in kin and kin[pk].shares:
            tags, shares = max(tags, meant.likeness * kin[pk].relevance), True
        parts = {"domain": tags, "text": words.get(pk, 0.0), "confidence": seen.confidence}
        if meant:
            parts["meaning"] = similar.get(pk, NEUTRAL)
        evidence = told(parts["text"], parts.get("meaning"))
        if pk in similar:
            good = evidence >= (ENOUGH if question else ENOUGH_FOR_TAGS) or similar[pk] >= NEAR
        else:
            good = parts["text"] >= ENOUGH_WORDS
        parts["score"] = score(
            parts["text"], parts.get("meaning"), tags, seen.confidence, bool(question)
        )
        yield Candidate(pk, shares, evidence, good, parts)


def alike(unit, limit):
    """[(row number, 0..1)] of live units by the rare words of a unit's summary, most first."""
    near = full_text.matching(unit.summary, DEPTH, Unit.live)
    shared = [(pk, full_text.covered(pk, unit.summary)) for pk, _ in near if pk != unit.pk]
    return sorted(shared, key=lambda each: -each[1])[:limit]
