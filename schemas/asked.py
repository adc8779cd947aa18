"""What only the server reads: accounts, keys, reviews, lists."""

import base64
import json

from marshmallow import ValidationError, validates_schema

from cq import unit, wire

OFFSET = 2**63 - 1
BULK = 200


class Name(wire.Text):
    """A name that people read: trimmed, something visible, one line."""

    def __init__(self, **kwargs):
        super().__init__(64, 1, blank=False, **kwargs)

    def _deserialize(self, value, attr, data, **kwargs):
        text = super()._deserialize(value.strip() if isinstance(value, str) else value, attr, data)
        if not text.isprintable():
            raise ValidationError(
                wire.Problem("value_error", "Value error, must not contain control characters")
            )
        return text


class Username(Name):
    """A name that can stand in an address: no slash, and not `me`, which is whoever asks."""

    def _deserialize(self, value, attr, data, **kwargs):
        text = super()._deserialize(value, attr, data, **kwargs)
        if "/" in text or text in ("me", ".", ".."):
            raise ValidationError(
                wire.Problem("value_error", "Value error, must not be me, . or .. or have a slash")
            )
        return text


class Cursor(wire.Text):
    """An opaque place in a list: the time and id of the last row that was seen."""

    def _deserialize(self, value, attr, data, **kwargs):
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            place = json.loads(base64.urlsafe_b64decode(text.encode()))
            time, id = place
            wire.check_text(f"{time}{id}")
        except (ValueError, TypeError, RecursionError):
            place = None
        if not place or not isinstance(time, str) or not isinstance(id, str):
            raise ValidationError(wire.Problem("value_error", "Value error, not a cursor"))
        return time, id


def cursor(place):
    """The other way round: what `Cursor` reads, or None where a list ends."""
    return place and base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


class Login(wire.Wire):
    """`session`: true keeps the token out of the answer, in a cookie that scripts cannot read."""

    username = wire.Text(required=True)
    password = wire.Text(required=True)
    session = wire.Switch(load_default=False)


class SignOut(wire.Wire):
    all_devices = wire.Switch(load_default=False)


class NewUser(wire.Wire):
    username = Username(required=True)
    password = wire.Text(required=True)
    role = wire.Choice(unit.ROLES, load_default="contributor")


class ChangeUser(wire.Wire):
    role = wire.Choice(unit.ROLES)
    disabled = wire.Switch()
    password = wire.Text()


class ChangePassword(wire.Wire):
    password = wire.Text(required=True)
    new_password = wire.Text(required=True)


class NewKey(wire.Wire):
    name = Name(required=True)
    ttl = wire.Text(16, 1, required=True)
    labels = wire.Many(wire.Text(64), 16, load_default=list)


class People(wire.Wire):
    limit = wire.Whole(0, 1000, load_default=1000)
    offset = wire.Whole(0, OFFSET, load_default=0)


class Listing(wire.Wire):
    limit = wire.Whole(0, 100, load_default=20)
    offset = wire.Whole(0, OFFSET, load_default=0)
    cursor = Cursor(load_default=None)


class Rows(wire.Wire):
    limit = wire.Whole(0, 100, load_default=20)
    offset = wire.Whole(0, OFFSET, load_default=0)


class Uses(Rows):
    never = wire.Switch(load_default=False)


class Units(Listing):
    limit = wire.Whole(0, 100, load_default=100)
    domain = wire.Text(load_default="")
    status = wire.Choice(("", *unit.STATUSES), load_default="")
    author = wire.Text(load_default="")
    disputed = wire.Switch(load_default=False)
    stale = wire.Switch(load_default=False)
    confidence_min = wire.Number(load_default=None)
    confidence_max = wire.Number(load_default=None)


class Few(wire.Wire):
    limit = wire.Whole(1, 20, load_default=5)


class Decision(wire.Wire):
    """`revision` is the one that was read: a decision about an older text is refused."""

    tier = wire.Choice(unit.TIERS, load_default=None, allow_none=True)
    reason = wire.Text(unit.REASON, load_default=None, allow_none=True)
    revision = wire.Whole(1, OFFSET, load_default=None, allow_none=True)


class Reason(wire.Wire):
    reason = wire.Text(unit.REASON, load_default=None, allow_none=True)


class Supersede(Reason):
    replacement = wire.UnitId(required=True)


class Bulk(Reason):
    decision = wire.Choice(("approve", "reject", "reopen"), required=True)
    ids = wire.Many(wire.UnitId(), BULK, low=1, required=True)
    tier = wire.Choice(unit.TIERS, load_default=None, allow_none=True)


class EditInsight(wire.Wire):
    summary = wire.UnitText(unit.SUMMARY, blank=False)
    detail = wire.UnitText(unit.DETAIL, blank=False)
    action = wire.UnitText(unit.ACTION, blank=False)


class EditContext(wire.Wire):
    languages = wire.Tags()
    frameworks = wire.Tags()
    pattern = wire.UnitText(unit.PATTERN)


class Edit(wire.Wire):
    """What is left out stays as it is."""

    domains = wire.Tags(folded=True, low=1)
    insight = wire.Part(EditInsight)
    context = wire.Part(EditContext)
    revision = wire.Whole(1, OFFSET, load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def named(self, data, original, **_):
        names = ("domains", "insight", "context")
        if isinstance(original, dict) and not any(original.get(name, {}) != {} for name in names):
            raise ValidationError(
                wire.Problem("missing", "Name what to change: domains, insight or context")
            )
        if data.get("domains") == []:
            raise ValidationError(wire.NO_DOMAIN, "domains")


# Answers
