"""What FTS5 is asked for: terms as quoted phrases, so that nothing in them is syntax."""

import re

TERMS, LONGEST = 20, 200
_WORD = re.compile(r"\w+")


def expression(terms):
    """Phrases joined by OR, of TERMS terms at most; empty if no term says anything."""
    phrases = []
    for term in terms:
        phrase = term.replace('"', "").replace("\0", "").strip()[:LONGEST]
        if phrase:
            phrases.append(f'"{phrase}"')
        if len(phrases) == TERMS:
            break
    return " OR ".join(phrases)


def words(question):
    """The words of a question, longest first: the rarer ones, as a rule."""
    return sorted(set(_WORD.findall(question)), key=lambda word: (-len(word), word))
