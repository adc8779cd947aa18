"""Full text in SQLite: FTS5 over folded words, ranked by its bm25."""

from functools import cache

from sqlalchemy import text

from models.base import db
from models.full_text.weights import WEIGHTS


def replace(units):
    """Index {row number: {field: words}} instead of earlier words of these units."""
    db.session.execute(_DELETE, [{"pk": pk} for pk in units])
    db.session.execute(_INSERT, [{"pk": pk, **words} for pk, words in units.items()])


_DELETE = text("DELETE FROM units_fts WHERE rowid = :pk")
_INSERT = text(
    "INSERT INTO units_fts (rowid, summary, detail, action, domains)"
    " VALUES (:pk, :summary, :detail, :action, :domains)"
)


def ranked(asked, all_of_them, having, total, limit):
    """[(row number, bm25)] of units that have one of these words, or all, best first.

    `having` and `total` are known to FTS5 itself.
    """
    between = " AND " if all_of_them else " OR "
    expression = between.join(f'"{word}"' for word in asked)
    rows = db.session.execute(_RANKED, {"asked": expression, "limit": limit})
    return [(pk, -score) for pk, score in rows]


_RANKED = text(
    f"SELECT rowid, bm25(units_fts, {', '.join(map(str, WEIGHTS.values()))}) AS score"
    " FROM units_fts WHERE units_fts MATCH :asked ORDER BY score, rowid DESC LIMIT :limit"
)


def has(pk, words):
    """For each of the words whether a unit has it."""
    return db.session.execute(_has(len(words)), {"pk": pk, **_quoted(words)}).one()


def count(words):
    """For each of the words how many units have it."""
    return db.session.execute(_count(len(words)), _quoted(words)).one()


@cache
def _has(words):
    each = "EXISTS (SELECT 1 FROM units_fts WHERE units_fts MATCH :word{} AND rowid = :pk)"
    return text("SELECT " + ", ".join(each.format(place) for place in range(words)))


@cache
def _count(words):
    each = "(SELECT count(*) FROM units_fts WHERE units_fts MATCH :word{})"
    return text("SELECT " + ", ".join(each.format(place) for place in range(words)))


def _quoted(words):
    return {f"word{place}": f'"{word}"' for place, word in enumerate(words)}


def measure():
    """(number of units, words of one on average); the average is FTS5's own business."""
    return db.session.execute(_TOTAL).scalar(), None


_TOTAL = text("SELECT count(*) FROM units")
