"""Full-text search as the database does it: SQLite's FTS5, over folded words."""

import unicodedata

from sqlalchemy import text

from cq.unit import fold
from models.base import db

# Words that stand in every text and tell none apart.
STOP = frozenset(
    """a an and are as at be been but by can do does for from had has have how i if in into is it
    its may my no not of on or our so than that the their then there these this to was we were
    what when where which while who why will with you your""".split()
)
WORDS = 32
# bm25 weights of summary, detail, action and domains.
WEIGHTS = (2.0, 1.0, 1.0, 2.0)


def replace(pk, summary, detail, action, domains):
    """Index these words of a unit instead of its earlier ones."""
    words = {"summary": summary, "detail": detail, "action": action, "domains": " ".join(domains)}
    db.session.execute(_DELETE, {"pk": pk})
    db.session.execute(_INSERT, {"pk": pk, **{k: fold_text(v) for k, v in words.items()}})


_DELETE = text("DELETE FROM units_fts WHERE rowid = :pk")
_INSERT = text(
    "INSERT INTO units_fts (rowid, summary, detail, action, domains)"
    " VALUES (:pk, :summary, :detail, :action, :domains)"
)


def fold_text(words):
    """Long texts are folded each once: the cache of `fold` is for tags."""
    return fold.__wrapped__(words)


def matching(q, limit, depth, private=True):
    """[(row number, bm25 score, more is better)] of approved units, at most `depth`: with all words
    of a question, then with any if these are fewer than `limit`.
    """
    statement = _MATCHING if private else _MATCHING_PUBLIC
    found = {}
    for every in (True, False):
        asked = expression(q, every)
        if asked and len(found) < limit:
            for pk, score in db.session.execute(statement, {"asked": asked, "limit": depth}):
                found.setdefault(pk, -score)
    return list(found.items())[:depth]


def expression(q, every):
    """The words of a question as an FTS5 expression, each quoted so that none is an operator.

    `every` asks for all of them. None if there is no word.
    """
    words = "".join(char if _in_word(char) else " " for char in fold_text(q)).split()
    words = [word for word in dict.fromkeys(words) if any(map(str.isalnum, word))]
    words = [word for word in words if word not in STOP] or words
    return (" AND " if every else " OR ").join(f'"{word}"' for word in words[:WORDS]) or None


def _in_word(char):
    """Letters, digits, and the marks that belong to a letter."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


_RANKED = f"""
    SELECT u.pk, bm25(units_fts, {", ".join(map(str, WEIGHTS))}) AS score
    FROM units_fts JOIN units u ON u.pk = units_fts.rowid
    WHERE units_fts MATCH :asked AND u.status = 'approved' {{public}}
    ORDER BY score, u.id DESC LIMIT :limit
"""
_MATCHING = text(_RANKED.format(public=""))
_MATCHING_PUBLIC = text(_RANKED.format(public="AND u.tier = 'public'"))
