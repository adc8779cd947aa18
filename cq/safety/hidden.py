"""Characters that a person does not see and a program reads."""

import unicodedata

BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Joiners have their place between letters of some scripts and within emoji.
JOINERS = frozenset("\u200c\u200d")
EMPTY = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060\u3164\ufeff\uffa0")
SPACES = frozenset("\t\n\r")
JOINING_SCRIPTS = (
    "ARABIC", "SYRIAC", "MONGOLIAN", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA",
    "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "KHMER", "TIBETAN", "MYANMAR",
)  # fmt: skip


def found(text):
    """What is hidden in a text, in words."""
    if text.isascii() and text.isprintable():
        return []
    return list(dict.fromkeys(filter(None, (_told(text, at) for at in range(len(text))))))


def _told(text, at):
    char = text[at]
    if " " <= char < "\x7f" or char in SPACES:
        return None
    code, category = ord(char), unicodedata.category(char)
    if category == "Cc":
        return f"a control character (U+{code:04X})"
    if char in BIDI:
        return f"a character that turns the reading direction (U+{code:04X})"
    if 0xE0000 <= code <= 0xE007F:
        return None if _flag(text, at) else f"an invisible tag character (U+{code:04X})"
    if char in JOINERS:
        return None if _joins(text, at) else f"an invisible joiner (U+{code:04X})"
    if char in EMPTY or category in ("Cf", "Co", "Cs"):
        return f"an invisible character (U+{code:04X})"
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        alone = at == 0 or _selector(text[at - 1]) or text[at - 1].isspace()
        return f"a variation selector without a sign (U+{code:04X})" if alone else None
    return None


def _selector(char):
    return 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF


def _joins(text, at):
    """Whether a joiner stands between what it may join."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not (before and after):
        return False
    if _pictured(before) and _pictured(after):
        return True
    return unicodedata.name(before, "").startswith(JOINING_SCRIPTS)


def _pictured(char):
    """Emoji, their selectors and their colours of skin."""
    return unicodedata.category(char) in ("So", "Sk") or _selector(char)


def _flag(text, at):
    """Whether a tag character stands in a flag of a region: a black flag and tags after it."""
    while at and 0xE0000 <= ord(text[at]) <= 0xE007F:
        at -= 1
    return text[at] == "\U0001f3f4"
