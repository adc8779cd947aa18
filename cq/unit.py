"""The rules of a knowledge unit: ids, tags, limits, confidence, relevance. No I/O."""

import math
import re
import unicodedata
import uuid
from functools import lru_cache
from itertools import pairwise

SUMMARY, DETAIL, ACTION, PATTERN = 500, 8000, 2000, 200
TAGS, TAG = 16, 64
FLAG_DETAIL, REASON, QUESTION = 1000, 1000, 2000
EXTENSIONS, EXTENSION_BYTES, EXTENSION_DEPTH = 20, 32 * 1024, 32
FLAG_REASONS = ("stale", "incorrect", "duplicate")
TIERS = ("private", "public")
STATUSES = ("pending", "approved", "rejected", "retired", "superseded")
ROLES = ("admin", "reviewer", "contributor")

START, CONFIRM, FLAG, DECIMALS = 0.5, 0.1, -0.15, 4
WEIGHTS = {"domain": 0.55, "language": 0.15, "framework": 0.15, "pattern": 0.15}
AGENT_BUCKETS = (0.3, 0.5, 0.7)
REVIEW_BUCKETS = (0.3, 0.6, 0.8)

_ID = re.compile(r"ku_[0-9a-f]{32}")
_EXTENSION = re.compile(r"[a-z0-9][a-z0-9_-]*:\S+")


def new_id():
    return f"ku_{uuid.uuid4().hex}"


def is_id(text):
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def is_extension_key(text):
    """A namespace, a colon, and a rest without white space: `acme:severity`."""
    return _EXTENSION.fullmatch(text) is not None


@lru_cache(4096)
def fold(text):
    """The form in which two spellings compare equal: NFKC, case folded, NFKC again, trimmed."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def normalise(tags):
    """Fold each tag, drop blanks and repeats, keep the order of first appearance."""
    return list(dict.fromkeys(tag for tag in map(fold, tags) if not is_blank(tag)))


# Letters and a symbol that Unicode calls visible and no font draws: Hangul fillers, empty braille.
_DRAWN_AS_NOTHING = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_blank(text):
    """Whether nothing would be seen: only spaces, controls, marks alone and invisible letters."""
    return not any(
        unicodedata.category(char)[0] not in "CZM" and char not in _DRAWN_AS_NOTHING
        for char in text
    )


def shift(confidence, step):
    """Confidence after one vote, within 0..1, rounded so that 0.5 + 3 * 0.1 is 0.8 exactly."""
    return round(min(max(confidence + step, 0.0), 1.0), DECIMALS)


def relevance(shared, either, language=False, framework=False, pattern=False):
    """How well a unit fits a query, 0..1: weighted Jaccard overlap of tags plus three boosts.

    `shared` of `either` tags stand in both: intersection and union of the two tag sets.
    """
    return (
        WEIGHTS["domain"] * (shared / either)
        + WEIGHTS["language"] * language
        + WEIGHTS["framework"] * framework
        + WEIGHTS["pattern"] * pattern
    )


def bucket_labels(edges):
    """`0.0-0.3` and so on, for the cut points of a distribution."""
    bounds = (0.0, *edges, 1.0)
    return [f"{low:.1f}-{high:.1f}" for low, high in pairwise(bounds)]


def finite(number):
    return not (isinstance(number, float) and not math.isfinite(number))
