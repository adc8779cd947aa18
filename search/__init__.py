"""Answer a query: candidates by tag, words and meaning, ranked, and the JSON of those that won."""

from flask import current_app
from sqlalchemy.exc import SQLAlchemyError

from cq import unit as rules
from errors import Failure
from index import Index
from index.near import Near
from index.order import Asked
from index.vectors import Vectors
from models import db, near
from search import ranking
from search.meaning import Meaning
from search.shelf import Answers, Shelf

SEMANTIC, DOMAIN = "semantic", "domain"


def init_app(app, load):
    """`load` makes the encoder, None where there shall be none. The database is up to date."""
    app.extensions["cq_index"] = Index()
    app.extensions["cq_shelf"] = Shelf()
    app.extensions["cq_answers"] = Answers()
    with app.app_context():
        vectors = Near() if near.serves(db.engine) else Vectors()
    app.extensions["cq_meaning"] = Meaning(app, load, vectors)


def index():
    """The index of this app, as of now."""
    followed = current_app.extensions["cq_index"]
    followed.follow()
    return followed


def meaning():
    """What this app knows of meaning, begun to be loaded."""
    known = current_app.extensions["cq_meaning"]
    known.start()
    return known


def stop(app):
    """End the threads of an app."""
    app.extensions["cq_meaning"].stop()


def find(domains=None, q=None, languages=(), frameworks=(), pattern="", limit=5, private=True):
    """(mode, [(row number, parts of its score)]): the best approved units, best first.

    In domain mode tags alone rank as U does: relevance * confidence. Otherwise see `ranking`.
    """
    asked = Asked(domains or [], languages, frameworks, rules.fold(pattern))
    question = "" if rules.is_blank(q or "") else q
    # The index first: a model that is being loaded beside it makes both slow.
    current, known = index(), meaning()

    def words():
        return _worded(asked, question, private)

    meant = known.meant(question, asked.domains, current, private, meanwhile=words)
    if meant:
        try:
            return SEMANTIC, _fused(asked, question, meant, limit, private)
        except (SQLAlchemyError, Failure):
            raise
        # What the vectors do must not cost the answer.
        except Exception as fault:
            known.embedder.fallback("broken", fault)
    if question:
        return DOMAIN, _fused(asked, question, None, limit, private)
    ranked = current.rank(*asked, limit=limit, private=private)
    return DOMAIN, [(pk, {"domain": score, "score": score}) for pk, score in ranked]


def _fused(asked, question, meant, limit, private):
    """The same question of the same store has the same answer."""
    current, vectors = index(), meaning().vectors
    state = (current.seen, (vectors.seen, tuple(meant.kin)) if meant else None)

    def make():
        words = _worded(asked, question, private)
        # As below: what pgvector finds is kept, too.
        db.session.rollback()
        return ranking.fused(current, vectors, asked, question, meant, words, limit, private)

    key = (*map(tuple, asked), question, limit, private, state)
    return current_app.extensions["cq_answers"].get(key, make)


def _worded(asked, question, private):
    """{row number: weight}: the units found by the words of the question, or of the domains."""
    said, current = question or " ".join(asked.domains), index()

    def make():
        # What is kept under this number is read in a transaction that begins after it.
        db.session.rollback()
        return ranking.worded(current, said, private, common=bool(question))

    key = (said, bool(question), private, current.seen)
    return current_app.extensions["cq_answers"].get(key, make)


def alike(unit, limit):
    """(mode, [(row number, similarity)]): the pending and approved units that are much like a unit,
    nearest first; in domain mode those that share the rare words of its summary.
    """
    near = meaning().alike(unit.pk, limit, index())
    mode = DOMAIN if near is None else SEMANTIC
    near = ranking.alike(unit, limit) if near is None else near
    return mode, [(pk, likeness) for pk, likeness in near if likeness >= ranking.ALIKE]


def render(pks, private=True):
    """{row number: JSON} of these approved units as agents read it, mostly from the shelf.

    A unit that was taken back meanwhile is left out.
    """
    current = current_app.extensions["cq_index"]
    changes = {pk: current.changed(pk) for pk in pks}
    return current_app.extensions["cq_shelf"].render(changes, private)
