"""The documents of a file: JSON a line, or one JSON list. Knows nothing of what stands in them."""

from marshmallow import ValidationError

from cq import wire

BOM = b"\xef\xbb\xbf"
# A line holds all of a unit's history; a list is read at once.
LINE, LIST = 32 << 20, 64 << 20


class Unreadable(Exception):
    """Why a line, or the file, is no JSON."""


def documents(file):
    """(place, document or Unreadable, bytes since the last one) for each line that is not blank.

    A byte order mark, CRLF and a missing last line end are all the same. A file that begins with
    `[` is one list, and a place is that within it.
    """
    read, number, begun = 0, 0, False
    while raw := file.readline(LINE):
        number += 1
        read += len(raw)
        long = len(raw) == LINE and not raw.endswith(b"\n")
        text = raw.removeprefix(BOM).strip()
        if not begun and text.startswith(b"["):
            yield from _list(raw + file.read(LIST), file)
            return
        begun = begun or bool(text)
        if long:
            while (rest := file.readline(LINE)) and not rest.endswith(b"\n"):
                read += len(rest)
            yield f"line {number}", Unreadable(f"longer than {LINE >> 20} MiB"), read + len(rest)
        elif text:
            yield f"line {number}", _json(text), read
        else:
            continue
        read = 0


def _list(raw, file):
    if file.read(1):
        found = Unreadable(f"a list of more than {LIST >> 20} MiB; write one unit a line instead")
    else:
        found = _json(raw)
    if isinstance(found, Unreadable):
        yield "the list", found, len(raw)
        return
    for place, document in enumerate(found, 1):
        yield f"unit {place}", document, len(raw) // len(found)


def _json(text):
    try:
        return wire.parse_json(text)
    except UnicodeDecodeError:
        return Unreadable("not UTF-8 text")
    except ValidationError as fault:
        return Unreadable(f"not JSON (character {next(iter(fault.messages)) + 1})")
