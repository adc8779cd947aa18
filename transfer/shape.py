"""A unit as one line of an export: what the wire has of it, and what only its server knows beside.

Knows how a line is made and what one must keep to; no file and no row that is changed.
"""

from datetime import datetime

from marshmallow import ValidationError, fields, validates_schema

from cq import record, unit, wire
from models.base import iso

# More than any server of ours has written for one unit.
MANY = 1_000_000
WHOLE = 2**31 - 1


def line(row, votes, events, revisions):
    """The members of a line, in their order. Who confirmed is left out: it is nobody's business."""
    wired = row.wire()
    flags = [
        {
            **flag.wire(True),
            "by": flag.by,
            "answered_by": flag.answered_by,
            "answered_at": flag.answered_at,
        }
        for flag in row.flags
    ]
    return {
        **wired,
        "flags": flags,
        "status": row.status,
        "created_at": row.created_at,
        "reviewed_by": row.reviewed_by,
        "reviewed_at": row.reviewed_at,
        "reason": row.reason,
        "revision": row.revision,
        "open_flags": row.open_flags,
        "idempotency_key": row.idempotency_key,
        "votes": [{"kind": vote.kind, "at": vote.at} for vote in votes],
        "events": [
            {
                "type": event.type,
                "by": event.by,
                "channel": event.channel,
                "at": event.at,
                "reason": event.reason,
                "self_reviewed": event.self_reviewed,
                "details": event.details,
            }
            for event in events
        ],
        "revisions": [
            {"number": each.number, "by": each.by, "at": each.at, "content": each.content}
            for each in revisions
        ],
    }


class Moment(wire.Text):
    """A time with an offset, or one without, which is UTC; as the database keeps it."""

    def _deserialize(self, value, attr, data, **kwargs):
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            moment = datetime.fromisoformat(record.moment(text))
            # The text of an earlier year would be shorter, and sort wrongly.
            if moment.year >= 1000:
                return iso(moment)
        except ValueError:
            pass
        raise ValidationError(
            wire.Problem("value_error", "Value error, not a time such as 2026-03-01T10:00:00Z")
        )


class Share(wire.Number):
    """A number from 0 to 1, rounded as votes round it."""

    def _deserialize(self, value, attr, data, **kwargs):
        number = super()._deserialize(value, attr, data, **kwargs)
        if not 0 <= number <= 1:
            raise ValidationError(wire.Problem("value_error", "Value error, must be from 0 to 1"))
        return round(number, unit.DECIMALS)


class Evidence(wire.Wire):
    confidence = Share(load_default=unit.START)
    confirmations = wire.Whole(0, WHOLE, load_default=1)
    first_observed = Moment(load_default=None, allow_none=True)
    last_confirmed = Moment(load_default=None, allow_none=True)


class Name(wire.Text):
    """Whoever did something, as text: people may be gone, or never have been here."""

    def __init__(self, **kwargs):
        super().__init__(256, allow_none=True, **{"load_default": None, **kwargs})


class FlagLine(wire.Wire):
    reason = wire.Choice(unit.FLAG_REASONS, required=True)
    timestamp = Moment(load_default=None, allow_none=True)
    detail = wire.Text(unit.FLAG_DETAIL, load_default=None, allow_none=True)
    duplicate_of = wire.UnitId(load_default=None, allow_none=True)
    by = Name()
    answered_by = Name()
    answered_at = Moment(load_default=None, allow_none=True)


class VoteLine(wire.Wire):
    kind = wire.Choice(("confirm", *unit.FLAG_REASONS), required=True)
    at = Moment(required=True)


class EventLine(wire.Wire):
    type = wire.Text(32, 1, required=True)
    by = wire.Text(256, required=True)
    channel = wire.Text(16, required=True)
    at = Moment(required=True)
    reason = wire.Text(unit.REASON, load_default=None, allow_none=True)
    self_reviewed = wire.Switch(load_default=False)
    details = fields.Dict(load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def storable(self, data, **_):
        # Held to the bounds of other free JSON, under a key of its kind.
        wire.Extensions().deserialize({"event:details": data["details"]})


class Content(wire.Propose):
    """The words of a revision."""

    class Meta(wire.Wire.Meta):
        exclude = ("extensions", "created_by")


class RevisionLine(wire.Wire):
    number = wire.Whole(1, WHOLE, required=True)
    by = wire.Text(256, required=True)
    at = Moment(required=True)
    content = wire.Part(Content, required=True)


class Line(wire.Propose):
    """A proposal with all that became of it; each of our own members may be missing."""

    id = wire.UnitId(load_default=None, allow_none=True)
    version = wire.Whole(1, WHOLE, load_default=1)
    evidence = wire.Part(Evidence, load_default=lambda: Evidence().load({}))
    # `local` is what an agent's machine says.
    tier = wire.Choice((*unit.TIERS, "local"), load_default="private")
    created_by = Name(load_default="")
    superseded_by = wire.UnitId(load_default=None, allow_none=True)
    flags = wire.Many(wire.Part(FlagLine), MANY, load_default=list)
    status = wire.Choice(unit.STATUSES, load_default="pending")
    created_at = Moment(load_default=None, allow_none=True)
    reviewed_by = Name()
    reviewed_at = Moment(load_default=None, allow_none=True)
    reason = wire.Text(unit.REASON, load_default=None, allow_none=True)
    revision = wire.Whole(1, WHOLE, load_default=1)
    open_flags = wire.Whole(0, WHOLE, load_default=None, allow_none=True)
    idempotency_key = wire.Text(255, 1, load_default=None, allow_none=True)
    votes = wire.Many(wire.Part(VoteLine), MANY, load_default=None, allow_none=True)
    events = wire.Many(wire.Part(EventLine), MANY, load_default=None, allow_none=True)
    revisions = wire.Many(wire.Part(RevisionLine), MANY, load_default=list)

    @validates_schema(skip_on_field_errors=True)
    def numbered(self, data, **_):
        numbers = [each["number"] for each in data["revisions"]]
        if len(set(numbers)) < len(numbers):
            raise ValidationError(
                wire.Problem("value_error", "Value error, has two of one number"), "revisions"
            )


LINE = Line()
