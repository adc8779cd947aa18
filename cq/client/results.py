"""What the client answers."""

from typing import NamedTuple


class Found(NamedTuple):
    """Units, best first. `source` is local or local+remote; `mode` is semantic or domain, None
    where no node answered.
    """

    units: list
    source: str
    warnings: list
    mode: str | None


class Proposed(NamedTuple):
    """The unit; `kept` is true while it waits on this machine. `findings` of the safety check."""

    unit: dict
    kept: bool
    warnings: list
    findings: list


class Drained(NamedTuple):
    """How many units were sent, refused, and still wait, with a line on each trouble."""

    pushed: int
    refused: int
    waiting: int
    warnings: list


class Held(NamedTuple):
    """A candidate that waits for a person, why, and since when."""

    unit: dict
    why: str
    at: str
