"""How long an API key lives, as people write it: `90d`, `12h`, `30m`, `45s`; a year at most."""

import re

LONGEST, DIGITS, ECHO = 365 * 86400, 16, 64
_GRAMMAR = re.compile(r"[0-9]+[smhd]")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse(text):
    """(canonical text, seconds). Raises ValueError with a message of less than 256 signs."""
    canonical = text.strip().lower()
    if not canonical:
        raise ValueError("a lifetime is required, such as 90d")
    if len(canonical) > DIGITS:
        raise ValueError(f"{text[:ECHO]!r} is too large; 365d is the most")
    if not _GRAMMAR.fullmatch(canonical):
        raise ValueError(f"{text[:ECHO]!r} is no lifetime: a whole number and s, m, h or d")
    seconds = int(canonical[:-1]) * _SECONDS[canonical[-1]]
    if seconds == 0:
        raise ValueError(f"{text[:ECHO]!r} is too small; 1s is the least")
    if seconds > LONGEST:
        raise ValueError(f"{text[:ECHO]!r} is too large; 365d is the most")
    return canonical, seconds
