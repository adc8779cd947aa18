"""The kinds of field that the wire knows; each refuses what no node may store."""

import json
import re

from marshmallow import ValidationError, fields, validate

from cq import unit
from cq.wire.problems import (
    MISSING,
    NOT_LIST,
    NOT_NUMBER,
    NOT_OBJECT,
    NOT_SWITCH,
    NOT_TEXT,
    NOT_WHOLE,
    Problem,
    check_text,
)

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")


class _Typed:
    """A field whose built-in problems carry their types; `told` maps marshmallow's error keys."""

    told = {}

    def make_error(self, key, **_):
        known = {"required": MISSING, **self.told}
        return ValidationError(known.get(key) or known["invalid"])


class Text(_Typed, fields.String):
    """A string of `low` to `high` code points; `blank=False` wants something visible in it."""

    told = {"invalid": NOT_TEXT, "null": NOT_TEXT}

    def __init__(self, high=None, low=0, blank=True, **kwargs):
        kwargs["metadata"] = {
            "minLength": max(low, 0 if blank else 1),
            **({"maxLength": high} if high else {}),
            **kwargs.get("metadata", {}),
        }
        super().__init__(**kwargs)
        self.low, self.high, self.blank = low, high, blank

    def _deserialize(self, value, attr, data, **kwargs):
        if not isinstance(value, str):
            raise self.make_error("invalid")
        check_text(value)
        if len(value) < self.low:
            raise ValidationError(
                Problem(
                    "string_too_short",
                    f"String should have at least {_count(self.low, 'character')}",
                )
            )
        if self.high and len(value) > self.high:
            raise ValidationError(self.too_long(len(value)))
        if not self.blank and unit.is_blank(value):
            raise ValidationError(Problem("value_error", "Value error, must not be blank"))
        return value

    def too_long(self, _):
        return Problem(
            "string_too_long", f"String should have at most {_count(self.high, 'character')}"
        )


class UnitText(Text):
    """A text of a knowledge unit; its ceiling is told with its name and the length that came."""

    def too_long(self, got):
        return Problem(
            "value_error",
            f"Value error, {self.name} must be at most {self.high} characters, got {got}",
        )


class Many(_Typed, fields.List):
    """A list of at most `high` items."""

    told = {"invalid": NOT_LIST, "null": NOT_LIST}

    def __init__(self, item, high, low=0, **kwargs):
        kwargs["metadata"] = {"minItems": low, "maxItems": high, **kwargs.get("metadata", {})}
        super().__init__(item, **kwargs)
        self.low, self.high = low, high

    def _deserialize(self, value, attr, data, **kwargs):
        if not isinstance(value, list):
            raise self.make_error("invalid")
        if len(value) < self.low:
            raise ValidationError(
                Problem(
                    "too_short",
                    (
                        f"List should have at least {_count(self.low, 'item')} after validation, "
                        f"not {len(value)}"
                    ),
                )
            )
        if len(value) > self.high:
            raise ValidationError(
                Problem(
                    "too_long",
                    (
                        f"List should have at most {_count(self.high, 'item')} after validation, "
                        f"not {len(value)}"
                    ),
                )
            )
        return super()._deserialize(value, attr, data, **kwargs)


class Tags(Many):
    """A list of tags, each at most 64 code points; `folded` brings them to their normal form."""

    def __init__(self, folded=False, **kwargs):
        super().__init__(UnitText(unit.TAG), unit.TAGS, **kwargs)
        self.folded = folded

    def _deserialize(self, value, attr, data, **kwargs):
        tags = super()._deserialize(value, attr, data, **kwargs)
        if not self.folded:
            return tags
        tags = unit.normalise(tags)
        long = [tag for tag in tags if len(tag) > unit.TAG]
        if long:
            raise ValidationError(
                Problem(
                    "value_error",
                    (
                        f"Value error, {self.name} must be at most {unit.TAG} characters, "
                        f"got {len(long[0])}"
                    ),
                )
            )
        return tags


class Whole(_Typed, fields.Integer):
    """A whole number of a query string, `low` to `high`; `clamp` lowers a larger one to `high`."""

    told = {"invalid": NOT_WHOLE, "null": NOT_WHOLE}

    def __init__(self, low, high, clamp=False, **kwargs):
        top = {} if clamp else {"maximum": high}
        kwargs["metadata"] = {"minimum": low, **top, **kwargs.get("metadata", {})}
        super().__init__(**kwargs)
        self.low, self.high, self.clamp = low, high, clamp

    def _deserialize(self, value, attr, data, **kwargs):
        if isinstance(value, bool) or not _WHOLE.fullmatch(str(value).strip()):
            raise self.make_error("invalid")
        number = int(str(value).strip().partition(".")[0])
        if self.clamp and number < self.low == 1:
            raise ValidationError(Problem("greater_than", "Input should be greater than 0"))
        if number < self.low:
            text = f"Input should be greater than or equal to {self.low}"
            raise ValidationError(Problem("greater_than_equal", text))
        if number > self.high and not self.clamp:
            raise ValidationError(
                Problem("less_than_equal", f"Input should be less than or equal to {self.high}")
            )
        return min(number, self.high)


class Number(_Typed, fields.Float):
    """A finite number of a query string."""

    told = {"invalid": NOT_NUMBER, "null": NOT_NUMBER}

    def _deserialize(self, value, attr, data, **kwargs):
        if not _NUMBER.fullmatch(str(value).strip()) or not unit.finite(float(value)):
            raise self.make_error("invalid")
        return float(value)


class Switch(_Typed, fields.Boolean):
    told = {"invalid": NOT_SWITCH, "null": NOT_SWITCH}


class Choice(Text):
    """One of a few words."""

    def __init__(self, choices, **kwargs):
        super().__init__(validate=validate.OneOf(choices, error=_expected(choices)), **kwargs)


class Part(_Typed, fields.Nested):
    """An object within an object."""

    told = {"invalid": NOT_OBJECT, "null": NOT_OBJECT, "type": NOT_OBJECT}


class UnitId(Text):
    """`ku_` and 32 hexadecimal digits."""

    def _deserialize(self, value, attr, data, **kwargs):
        text = super()._deserialize(value, attr, data, **kwargs)
        if not unit.is_id(text):
            raise ValidationError(Problem("value_error", "Value error, not a knowledge unit id"))
        return text


class Extensions(_Typed, fields.Dict):
    """Up to 20 keys `namespace:key` with any JSON below, 32 KiB in all."""

    told = {"invalid": NOT_OBJECT}

    def _deserialize(self, value, attr, data, **kwargs):
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        if len(value) > unit.EXTENSIONS:
            raise ValidationError(Problem("too_long", f"at most {unit.EXTENSIONS} extension keys"))
        for key, below in value.items():
            check_text(key)
            if not unit.is_extension_key(key):
                raise ValidationError(
                    Problem("value_error", "Value error, extension keys look like namespace:key")
                )
            _check_value(below, unit.EXTENSION_DEPTH)
        if len(json.dumps(value).encode()) > unit.EXTENSION_BYTES:
            raise ValidationError(
                Problem("too_long", f"extensions take at most {unit.EXTENSION_BYTES} bytes")
            )
        return value


def _check_value(value, depth):
    if depth < 0:
        raise ValidationError(Problem("value_error", "Value error, extensions are nested too deep"))
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, list):
        for item in value:
            _check_value(item, depth - 1)
    elif isinstance(value, dict):
        for key, below in value.items():
            check_text(key)
            _check_value(below, depth - 1)


def _count(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _expected(choices):
    quoted = [f"'{choice}'" for choice in choices]
    return Problem("enum", f"Input should be {', '.join(quoted[:-1])} or {quoted[-1]}")
