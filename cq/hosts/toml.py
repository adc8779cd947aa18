"""One table of a TOML text: read, added, changed, removed. The text around it stays as it is."""

import copy
import json
import re
import tomllib
from typing import NamedTuple

from cq.hosts import tail
from cq.hosts.files import Unusable

_PART = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\r\n]*|[\[\]{}]|\r?\n|.',
    re.S,
)


class Line(NamedTuple):
    """A header or a pair, however many lines it takes: text[start:end]; `value` is where a pair's
    value ends, before its comment. `key` is a header's path, or the first of a pair's names.
    """

    header: bool
    key: tuple
    start: int
    value: int
    end: int


def table(path, text, where):
    """The table as Python has it, or None. Raises Unusable."""
    found = _read(path, text)
    for depth, name in enumerate(where, 1):
        if not isinstance(found, dict):
            raise Unusable(f"{path}: {'.'.join(where[: depth - 1])} is not a table; mend it first")
        found = found.get(name)
        if found is None:
            return None
    if not isinstance(found, dict):
        raise Unusable(f"{path}: {'.'.join(where)} is not a table; mend it first")
    return found


def add(text, where, pairs):
    """With the table at the end."""
    body = "\n".join(f"{key} = {_value(value)}" for key, value in pairs.items())
    return tail.append(text, f"[{'.'.join(where)}]\n{body}")


def change(path, text, where, new, gone):
    """With some pairs set and some gone, and all others untouched. Raises Unusable."""
    expected = copy.deepcopy(_read(path, text))
    inside = expected
    for name in where:
        inside = inside[name]
    for key in gone:
        del inside[key]
    inside.update(new)
    found = [lines[0] for lines in _sections(text) if lines[0].key[: len(where)] == where]
    if found and where not in [header.key for header in found]:
        # There is only a table in it, such as its env.
        at = found[0].start
        text = f"{text[:at]}[{'.'.join(where)}]{tail.eol(text)}{text[at:]}"
    for key in gone:
        text = _set(path, text, where, key, None)
    for key, value in new.items():
        text = _set(path, text, where, key, value)
    return _checked(path, text, where, expected)


def remove(path, text, where):
    """Without the table and the tables in it. Raises Unusable."""
    expected = copy.deepcopy(_read(path, text))
    inside = expected
    for name in where[:-1]:
        inside = inside[name]
    del inside[where[-1]]
    while spot := next(
        (each for each in _sections(text) if each[0].key[: len(where)] == where), None
    ):
        lines = spot
        end = lines[-1].end
        stop = end - (len(text[:end]) - len(text[:end].rstrip("\r\n")))
        text = tail.cut(text, lines[0].start, stop)
    return _checked(path, text, where, expected)


def _set(path, text, where, key, value):
    lines = next((each for each in _sections(text) if each[0].key == where), None)
    if lines is None:
        raise _odd(path, where)
    pair = next((line for line in lines[1:] if line.key == (key,)), None)
    if value is None:
        if pair is None:
            raise _odd(path, where)
        return text[: pair.start] + text[pair.end :]
    if pair is None:
        at = lines[-1].end
        end = tail.eol(text)
        line = f"{key} = {_value(value)}"
        if text[:at].endswith("\n"):
            return f"{text[:at]}{line}{end}{text[at:]}"
        return f"{text[:at]}{end}{line}{text[at:]}"
    head = re.match(rf"\s*[\"']?{key}[\"']?\s*=\s*", text[pair.start : pair.end])
    if head is None:
        raise _odd(path, where)
    return text[: pair.start] + head[0] + _value(value) + text[pair.value :]


def _checked(path, text, where, expected):
    """The text, if it says what it should and nothing else."""
    if _without_empty(_read(path, text), where) != _without_empty(expected, where):
        raise _odd(path, where)
    return text


def _without_empty(data, where):
    """A table that only our header implied goes with it."""
    return {key: value for key, value in data.items() if key != where[0] or value}


def _odd(path, where):
    name = ".".join(where)
    return Unusable(
        f"{path}: {name} is written in a form that cq does not edit; "
        f"write it as a section [{name}], or delete it, then run this again"
    )


def _read(path, text):
    try:
        # tomllib takes line ends of one form.
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as fault:
        raise Unusable(
            f"{path} is no valid TOML: {fault}. Mend it there, then run this again"
        ) from fault


def _value(value):
    """JSON's strings and lists of them are TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _sections(text):
    """Each header with its pairs."""
    found = []
    for line in _lines(text):
        if line.header:
            found.append([line])
        elif found:
            found[-1].append(line)
    return found


def _lines(text):
    at = 0
    while at < len(text):
        start, depth, value = at, 0, at
        while at < len(text):
            part = _PART.match(text, at)[0]
            at += len(part)
            if part in ("\n", "\r\n"):
                if not depth:
                    break
                continue
            depth += (part in "[{") - (part in "]}")
            if not part.startswith("#") and part.strip():
                value = at
        whole = text[start:value].strip()
        if whole and not whole.startswith("#"):
            header = whole.startswith("[")
            yield Line(header, _key(whole, header), start, value, at)


def _key(text, header):
    said, path = tomllib.loads(text.replace("\r\n", "\n")), []
    while said:
        name, said = next(iter(said.items()))
        path.append(name)
        if not header:
            break
        said = said[0] if isinstance(said, list) else said
    return tuple(path)
