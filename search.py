"""Answer a query: candidates by tag and by text, ranked, and the JSON of those that won."""

import json
import re
import threading
import unicodedata
from collections import OrderedDict

from flask import current_app
from sqlalchemy import text

from cq import unit as rules
from index import Index
from models import Unit, db

# Words that stand in every text and tell none apart.
STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "so",
        "than",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)
WORDS = 32
# Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009): each list adds 1 / (K + rank).
K = 60
DEPTH = 50
# How far confidence moves a fused rank: from 0 to 1 about six places.
CONFIDENCE = 0.1
# bm25 weights of summary, detail, action and domains.
FIELDS = (2.0, 1.0, 1.0, 2.0)
SHELF_BYTES = 32 * 1024 * 1024


class Shelf:
    """The JSON of units that were served lately, by row number and change, within a byte budget."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = OrderedDict()
        self.bytes = 0

    def get(self, key):
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
            return self.kept.get(key)

    def put(self, key, value):
        with self.lock:
            self.bytes += len(value) - len(self.kept.pop(key, b""))
            self.kept[key] = value
            while self.bytes > SHELF_BYTES:
                self.bytes -= len(self.kept.popitem(last=False)[1])


def init_app(app):
    app.extensions["cq_index"] = Index()
    app.extensions["cq_shelf"] = Shelf()


def index():
    """The index of this app, as of now."""
    followed = current_app.extensions["cq_index"]
    followed.follow()
    return followed


def find(domains=None, q="", languages=(), frameworks=(), pattern="", limit=5, private=True):
    """[(row number, parts of its score)] of the best approved units, best first.

    Tags alone rank as U does: relevance * confidence. With a question, the ranks by tag and by text
    are fused, and confidence breaks what is near.
    """
    tags = (domains or [], languages, frameworks, rules.fold(pattern))
    if not q.strip():
        ranked = index().rank(*tags, limit=limit, private=private)
        return [(pk, {"domain": score, "score": score}) for pk, score in ranked]
    by_tag = index().rank(*tags, limit=DEPTH, private=private)
    by_text = matching(q, DEPTH, private)
    parts = {}
    for rank, (pk, score) in enumerate(by_tag, 1):
        parts[pk] = {"domain": score, "text": 0.0, "score": 1 / (K + rank)}
    for rank, (pk, score) in enumerate(by_text, 1):
        known = parts.setdefault(pk, {"domain": 0.0, "text": 0.0, "score": 0.0})
        known["text"] = score
        known["score"] += 1 / (K + rank)
    for pk, confidence in index().confidences(parts).items():
        parts[pk]["score"] *= 1 + CONFIDENCE * (confidence - rules.START)
    return sorted(parts.items(), key=lambda found: -found[1]["score"])[:limit]


def expression(q, every):
    """The words of a question as an FTS5 expression, each quoted so that none is an operator.

    `every` asks for all of them. None if there is no word.
    """
    words = [word.casefold() for word in re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", q))]
    words = list(dict.fromkeys(words))
    words = [word for word in words if word not in STOP] or words
    return (" AND " if every else " OR ").join(f'"{word}"' for word in words[:WORDS]) or None


def matching(q, limit, private=True):
    """[(row number, bm25 score, more is better)]: units with all words, then those with any."""
    found = {}
    for every in (True, False):
        asked = expression(q, every)
        if asked and len(found) < limit:
            rows = db.session.execute(
                text(_MATCHING.format(tier="" if private else "AND u.tier = 'public'")),
                {"asked": asked, "limit": limit},
            )
            for pk, score in rows:
                found.setdefault(pk, -score)
    return list(found.items())[:limit]


_MATCHING = f"""
    SELECT u.pk, bm25(units_fts, {", ".join(map(str, FIELDS))}) AS score
    FROM units_fts JOIN units u ON u.pk = units_fts.rowid
    WHERE units_fts MATCH :asked AND u.status = 'approved' {{tier}}
    ORDER BY score, u.id DESC LIMIT :limit
"""


def render(pks):
    """The JSON of these approved units as agents read it, in this order, mostly from the shelf.

    A unit that was taken back meanwhile is left out.
    """
    shelf, current = current_app.extensions["cq_shelf"], current_app.extensions["cq_index"]
    keys = {pk: (pk, current.changed(pk)) for pk in pks}
    ready = {pk: shelf.get(key) for pk, key in keys.items()}
    missing = [pk for pk in pks if ready[pk] is None]
    for pk, unit in (Unit.numbered(missing) if missing else {}).items():
        if unit.status == "approved":
            ready[pk] = json.dumps(
                unit.wire(author=False), ensure_ascii=False, separators=(",", ":")
            ).encode()
            shelf.put((pk, unit.changed), ready[pk])
    return [ready[pk] for pk in pks if ready[pk] is not None]
