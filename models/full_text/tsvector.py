"""Full text in PostgreSQL: tsvectors of stems in a GIN index, ranked by the bm25 of FTS5.

The words are cut and folded here, by the rule of a question's; PostgreSQL's own parser would know
addresses and numbers where the other database sees words. Only the stems are its dictionary's.
"""

import math
import unicodedata
from collections import defaultdict
from functools import cache

from sqlalchemy import text

from models.base import db
from models.full_text.weights import WEIGHTS, cut

# A tsvector keeps so many hits of a word. A word of more bytes is no word of any question.
HITS, LONGEST = 255, 1000
LABELS = dict(zip(WEIGHTS, "ABCD", strict=True))
# As FTS5 has them.
K1, B = 1.2, 0.75
STEMS = 50_000
_stems = {}


def replace(units):
    """Index {row number: {field: words}} instead of earlier words of these units."""
    said = {
        pk: {field: list(_plain(cut(folded))) for field, folded in words.items()}
        for pk, words in units.items()
    }
    stem = stems({word for fields in said.values() for each in fields.values() for word in each})
    db.session.execute(_REPLACE, [_row(pk, fields, stem) for pk, fields in said.items()])


def _row(pk, fields, stem):
    hits = defaultdict(list)
    for field, words in fields.items():
        for word in words:
            hits[stem[word]].append(LABELS[field])
    return {
        "pk": pk,
        "words": " ".join(f"'{stem}':{_places(each)}" for stem, each in hits.items()),
        "length": sum(map(len, fields.values())),
    }


def _plain(words):
    """Without accents."""
    for word in words:
        if not word.isascii():
            parts = unicodedata.normalize("NFD", word)
            bare = "".join(char for char in parts if unicodedata.category(char) != "Mn")
            word = unicodedata.normalize("NFC", bare)
        if word:
            yield word[: LONGEST // 4]


def _places(labels):
    """A hit's place tells nothing here, only that there are so many, and in which fields."""
    return ",".join(f"{place}{label}" for place, label in enumerate(labels[:HITS], 1))


_REPLACE = text(
    "INSERT INTO units_fts (unit_pk, words, length) VALUES (:pk, CAST(:words AS tsvector), :length)"
    " ON CONFLICT (unit_pk) DO UPDATE SET words = excluded.words, length = excluded.length"
)


def stems(words):
    """{word: its stem}."""
    fresh = [word for word in words if word not in _stems]
    if fresh:
        if len(_stems) > STEMS:
            _stems.clear()
        _stems.update(map(tuple, db.session.execute(_STEM, {"words": fresh})))
    return {word: _stems.get(word, word) for word in words}


_STEM = text(
    "SELECT word, coalesce((ts_lexize('cq_stem', word))[1], word)"
    " FROM unnest(CAST(:words AS text[])) AS word"
)


def _asked(words):
    """The stem of each word."""
    plain = ["".join(_plain([word])) for word in words]
    stem = stems(plain)
    return [stem[word] for word in plain]


def ranked(asked, all_of_them, having, total, limit):
    """[(row number, bm25)] of units that have one of these words, or all, best first.

    `having` is {word: number of units that have it}, `total` what `measure` gave.
    """
    units, average = total
    values = {
        "stems": _asked(asked),
        "rarity": [
            # The units were counted before the word was: there may be more that have it by now.
            max(1e-6, math.log((max(0, units - having[word]) + 0.5) / (having[word] + 0.5)))
            for word in asked
        ],
        "average": average,
        "limit": limit,
    }
    between = " & " if all_of_them else " | "
    values["asked"] = between.join(f"'{stem}'" for stem in dict.fromkeys(values["stems"]))
    for place, stem in enumerate(values["stems"]):
        values[f"stem{place}"] = f"'{stem}'"
    return list(map(tuple, db.session.execute(_ranked(len(asked)), values)))


def _bm25(rarity, hits):
    return f"{rarity} * {hits} * {K1 + 1} / ({hits} + {K1} * length)"


@cache
def _ranked(words):
    """bm25 of those that are best if hits are counted as ts_rank counts them, which is quick; to
    count them truly, all words of a unit are looked at.
    """
    most = max(WEIGHTS.values())
    parts = ",".join(f"{WEIGHTS[field] / most:g}" for field in reversed(WEIGHTS))
    rough = " + ".join(
        _bm25(f"(CAST(:rarity AS float8[]))[{place + 1}]", f"hits{place}") for place in range(words)
    )
    # Of one hit it makes its weight divided by pi squared and multiplied by six.
    hits = ", ".join(
        f"{most * math.pi**2 / 6} * ts_rank('{{{parts}}}', words, CAST(:stem{place} AS tsquery))"
        f" AS hits{place}"
        for place in range(words)
    )
    labels = " ".join(f"WHEN '{LABELS[field]}' THEN {weight}" for field, weight in WEIGHTS.items())
    return text(
        f"""
        WITH asked AS (
            SELECT stem, sum(rarity) AS rarity
            FROM unnest(CAST(:stems AS text[]), CAST(:rarity AS float8[])) AS each (stem, rarity)
            GROUP BY stem
        ), found AS MATERIALIZED (
            SELECT unit_pk, words, {B} * length / CAST(:average AS float8) + {1 - B} AS length,
                {hits}
            FROM units_fts WHERE words @@ CAST(:asked AS tsquery)
        ), best AS MATERIALIZED (
            SELECT unit_pk, words, length FROM found
            ORDER BY {rough} DESC, unit_pk DESC LIMIT :limit
        ), counted AS (
            SELECT unit_pk, length, lexeme,
                (SELECT sum(CASE label {labels} END) FROM unnest(weights) AS label) AS hits
            FROM best, unnest(words) WHERE lexeme = ANY (CAST(:stems AS text[]))
        )
        SELECT unit_pk, sum({_bm25("rarity", "hits")}) AS score
        FROM counted JOIN asked ON stem = lexeme
        GROUP BY unit_pk ORDER BY score DESC, unit_pk DESC
        """
    )


def has(pk, words):
    """For each of the words whether a unit has it."""
    values = {"pk": pk, "stems": [f"'{stem}'" for stem in _asked(words)]}
    found = db.session.execute(_HAS, values).scalar()
    return found or [False] * len(words)


def count(words):
    """For each of the words how many units have it."""
    values = {"stems": [f"'{stem}'" for stem in _asked(words)]}
    return db.session.execute(_COUNT, values).scalar()


_EACH = "unnest(CAST(:stems AS text[])) WITH ORDINALITY AS each (stem, place)"
_HAS = text(
    f"SELECT (SELECT array_agg(words @@ CAST(stem AS tsquery) ORDER BY place) FROM {_EACH})"
    " FROM units_fts WHERE unit_pk = :pk"
)
_COUNT = text(
    "SELECT array_agg((SELECT count(*) FROM units_fts WHERE words @@ CAST(stem AS tsquery))"
    f" ORDER BY place) FROM {_EACH}"
)


def measure():
    """(number of units, words of one on average)."""
    return tuple(db.session.execute(_MEASURE).one())


_MEASURE = text("SELECT count(*), greatest(1, coalesce(avg(length), 1))::float8 FROM units_fts")
