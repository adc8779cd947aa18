"""What can be wrong with JSON that came in: each problem a text with a machine's word for it."""

import json
import sys
from functools import partial

from marshmallow import ValidationError

from cq import unit


class Problem(str):
    """The text of one validation problem, with the machine's word for it in `type`."""

    def __new__(cls, type, text):
        problem = super().__new__(cls, text)
        problem.type = type
        return problem

    def __getnewargs__(self):
        return self.type, str(self)


MISSING = Problem("missing", "Field required")
NOT_OBJECT = Problem(
    "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"
)
NOT_TEXT = Problem("string_type", "Input should be a valid string")
NOT_LIST = Problem("list_type", "Input should be a valid list")
NOT_WHOLE = Problem(
    "int_parsing", "Input should be a valid integer, unable to parse string as an integer"
)
NOT_NUMBER = Problem(
    "float_parsing", "Input should be a valid number, unable to parse string as a number"
)
NOT_SWITCH = Problem("bool_type", "Input should be a valid boolean")


def problems(messages, place=()):
    """Flatten marshmallow's nested messages to {"type", "loc", "msg"} each, without the input."""
    if isinstance(messages, dict):
        found = []
        for key, below in messages.items():
            found += problems(below, place if key == "_schema" else (*place, key))
        return found
    if isinstance(messages, str):
        messages = [messages]
    return [
        {"type": getattr(text, "type", "value_error"), "loc": list(place), "msg": str(text)}
        for text in messages
    ]


def _not_json(text):
    raise ValueError(f"{text} is not JSON")


def _finite(text):
    number = float(text)
    if not unit.finite(number):
        raise ValueError("a number is out of range")
    return number


def _whole(text):
    number = int(text)
    if abs(number) > MOST:
        raise ValueError("a number is out of range")
    return number


# Beyond this, readers that hold numbers as doubles take them for infinite.
MOST = int(sys.float_info.max)
_decode = partial(json.loads, parse_constant=_not_json, parse_float=_finite, parse_int=_whole)


def parse_json(raw):
    """Bytes of one JSON document to Python; NaN, infinities and bottomless nesting are none.

    Raises UnicodeDecodeError (not UTF-8) and ValidationError (not JSON).
    """
    text = raw.decode("utf-8-sig")
    try:
        return _decode(text)
    except json.JSONDecodeError as fault:
        raise ValidationError({fault.pos: [Problem("json_invalid", "JSON decode error")]}) from None
    except (ValueError, RecursionError):
        raise ValidationError({0: [Problem("json_invalid", "JSON decode error")]}) from None


def check_text(text):
    """Refuse what no database or terminal stores faithfully: NUL and half surrogate pairs."""
    if "\x00" in text:
        raise ValidationError(
            Problem("value_error", "Value error, must not contain NUL characters")
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationError(
            Problem("value_error", "Value error, must not contain unpaired surrogates")
        ) from None
