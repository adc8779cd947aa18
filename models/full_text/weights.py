"""What full text is in either database: the fields and their weights, and where words are cut."""

import unicodedata

# bm25 weights, by field.
WEIGHTS = {"summary": 2.0, "detail": 1.0, "action": 0.5, "domains": 1.0}


def cut(folded):
    """The words of a folded text, in order. No character of them means anything to a database."""
    return "".join(char if _in_word(char) else " " for char in folded).split()


def _in_word(char):
    """Letters, digits, and the marks that belong to a letter."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"
