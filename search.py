"""Answer a query: candidates by tag and by text, ranked, and the JSON of those that won."""

import json
import threading
from collections import OrderedDict

from flask import current_app

from cq import unit as rules
from index import Index
from models import Unit, full_text

# Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009): each list adds 1 / (K + rank).
K = 60
DEPTH = 50
# How far confidence moves a fused rank: from 0 to 1 about six places.
CONFIDENCE = 0.1
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


def find(domains=None, q=None, languages=(), frameworks=(), pattern="", limit=5, private=True):
    """[(row number, parts of its score)] of the best approved units, best first.

    Tags alone rank as U does: relevance * confidence. With a question, the ranks by tag and by text
    are fused, and confidence breaks what is near.
    """
    tags = (domains or [], languages, frameworks, rules.fold(pattern))
    if not q or rules.is_blank(q):
        ranked = index().rank(*tags, limit=limit, private=private)
        return [(pk, {"domain": score, "score": score}) for pk, score in ranked]
    by_tag = index().rank(*tags, limit=DEPTH, private=private)
    by_text = full_text.matching(q, limit, DEPTH, private)
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


def render(pks, private=True):
    """{row number: JSON} of these approved units as agents read it, mostly from the shelf.

    A unit that was taken back meanwhile is left out.
    """
    shelf, current = current_app.extensions["cq_shelf"], current_app.extensions["cq_index"]
    keys = {pk: (pk, current.changed(pk)) for pk in pks}
    ready = {pk: shelf.get(key) for pk, key in keys.items()}
    missing = [pk for pk in pks if ready[pk] is None]
    for pk, unit in (Unit.numbered(missing) if missing else {}).items():
        if unit.shown(private):
            ready[pk] = json.dumps(
                unit.wire(author=False), ensure_ascii=False, separators=(",", ":")
            ).encode()
            shelf.put((pk, unit.changed), ready[pk])
    return {pk: text for pk, text in ready.items() if text is not None}
