"""The score of a unit where words and meaning take part: the node and an agent's machine share it.

A weighted sum and not a fusion of ranks: the parts are alike in size for short questions and long
ones, so that one bound tells a hit from the best of nothing. The weights were measured; see
docs/decisions.md and bench/retrieval.py.
"""

from cq.unit import START

WORDS, MEANING = 0.4, 0.6
# What tags weigh beside a question, and where nothing else was said.
TAGS, TAGS_ALONE = 0.25, 0.6
# The similarity that a unit without a vector is given.
NEUTRAL = 0.5
# From confidence 0 to 1 a score grows by a tenth.
CONFIDENCE = 0.1


def told(text, meaning=None):
    """Evidence by words and meaning, each 0..1; `meaning` is None in domain mode."""
    return WORDS * text + MEANING * (0.0 if meaning is None else meaning)


def score(text, meaning, tags, confidence, question=True):
    """The same with relevance by `tags`, 0..1, and confidence; `question` says if there was one."""
    evidence = told(text, meaning) + (TAGS if question else TAGS_ALONE) * tags
    return evidence * (1 + CONFIDENCE * (confidence - START))
