"""Full-text search as the database does it, over folded words.

How much a hit weighs is told by the rare words of the question that it has, so that a question in
four words and one in forty come to comparable weights.
"""

import math
import operator
import time
from weakref import WeakKeyDictionary

from cq.unit import fold
from models.base import UNITS, Change, db
from models.full_text import fts5, tsvector
from models.full_text.weights import cut

# Words that stand in every text and tell none apart.
STOP = frozenset(
    """a an and are as at be been but by can do does for from had has have how i if in into is it
    its may my no not of on or our so than that the their then there these this to was we were
    what when where which while who why will with you your""".split()
)
WORDS = 32
# So many entries of the words' lists are scored; the rarest words come first.
POSTINGS = 1000
# Beside a rarer word, one that more than this part of the units and more than so many have is left.
COMMON, FEW = 0.25, 100
# Winners are chosen among so many times what is asked for, before it is known which are served.
DRAWN = 2


def _home():
    """What knows how this database searches."""
    return fts5 if db.engine.dialect.name == "sqlite" else tsvector


def replace(units):
    """Index these words of units instead of earlier ones; `units` is {row number: {field: its
    words, of domains a list}}.
    """
    _home().replace({pk: _folded(unit) for pk, unit in units.items()})


def _folded(unit):
    said = {field: unit[field] for field in ("summary", "detail", "action")}
    said["domains"] = " ".join(unit["domains"])
    return {field: fold_text(words) for field, words in said.items()}


def fold_text(words):
    """Long texts are folded each once: the cache of `fold` is for tags."""
    return fold.__wrapped__(words)


def matching(q, depth, served, common=True):
    """[(row number, weight)] of units that have words of a question, at most `depth`, best first.

    `served(row numbers)` gives those of them that may be shown.
    A weight is within 0..1: bm25 as a part of the best one's, times the root of the part of the
    question's rare words that the best one has.

    Words so common that their lists would take long are not asked for. Where there are no others,
    units must have all of them, or there is no answer if `common` is off.
    """
    asked = words(q)
    counts = _counts()
    having = counts.of(asked)
    rare, postings = [], 0
    for word in sorted(asked, key=having.get):
        postings += having[word]
        if postings > POSTINGS or (rare and having[word] > max(FEW, COMMON * counts.total)):
            break
        rare.append(word)
    if not (rare or common):
        return []
    rows = _ranked(rare or asked, not rare, having, counts.measure, depth, served)
    if not rows:
        return []
    best, bm25 = rows[0]
    weight = math.sqrt(covered(best, q)) / max(bm25, 1e-9)
    return [(pk, weight * score) for pk, score in rows]


def _ranked(asked, all_of_them, having, measure, depth, served):
    """[(row number, bm25, more is better)], best first."""
    if not asked:
        return []
    drawn = DRAWN * depth
    while True:
        rows = _home().ranked(asked, all_of_them, having, measure, drawn)
        shown = served([pk for pk, _ in rows])
        kept = [(pk, score) for pk, score in rows if pk in shown][:depth]
        if len(kept) == depth or len(rows) < drawn:
            return kept
        drawn *= 10


def covered(pk, q):
    """The part of a question's words, weighed by their rarity, that a unit with one of them has."""
    asked, counts = words(q), _counts()
    if len(asked) == 1:
        return 1.0
    having = counts.of(asked)
    has = _home().has(pk, asked)
    weights = [counts.rarity(having[word]) for word in asked]
    return sum(map(operator.mul, has, weights)) / sum(weights)


class _Counts:
    """How many units have a word, counted once and kept while the store changes little."""

    def __init__(self, number):
        self.number = number
        self.until = time.monotonic() + KEPT
        self.measure = _home().measure()
        self.total = self.measure[0]
        self.units = {}

    def of(self, words):
        """{word: number of units that have it}."""
        known = self.units
        having = {word: known[word] for word in words if word in known}
        fresh = [word for word in words if word not in having]
        if fresh:
            found = _home().count(fresh)
            having.update(zip(fresh, found, strict=True))
            if len(self.units) > COUNTED:
                self.units = {}
            self.units.update(having)
        return having

    def rarity(self, having):
        """The inverse document frequency as Lucene smooths it: above 0 however common the word.

        UNSEEN units more that have no word asked for: to a small store, most words are unknown.
        """
        return math.log(1 + max(0.0, self.total + UNSEEN - having + 0.5) / (having + 0.5))


KEPT = 60
COUNTED = 50_000
UNSEEN = 100
_kept = WeakKeyDictionary()


def _counts():
    number, engine = Change.last(UNITS), db.engine
    counts = _kept.get(engine)
    stale = counts is None or number > counts.number + counts.number // 10
    if stale or (number > counts.number and time.monotonic() > counts.until):
        counts = _kept[engine] = _Counts(number)
    return counts


def words(q):
    """The words of a question, folded, without those that tell nothing; WORDS of them at most."""
    said = [word for word in dict.fromkeys(cut(fold_text(q))) if any(map(str.isalnum, word))]
    return ([word for word in said if word not in STOP] or said)[:WORDS]
