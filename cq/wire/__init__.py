"""The JSON that agents and a node exchange, as marshmallow schemas; lengths stand here once.

A schema never asks the database or who is calling. No HTTP, no SQL.
"""

from marshmallow import EXCLUDE, Schema, ValidationError, validates_schema

from cq import unit
from cq.wire.fields import (
    Choice,
    Extensions,
    Many,
    Number,
    Part,
    Switch,
    Tags,
    Text,
    UnitId,
    UnitText,
    Whole,
)
from cq.wire.problems import MISSING, NOT_OBJECT, Problem, check_text, parse_json, problems

__all__ = [
    "MISSING",
    "NOT_OBJECT",
    "NO_DOMAIN",
    "Choice",
    "Context",
    "Extensions",
    "Flag",
    "Insight",
    "Many",
    "Number",
    "Part",
    "Problem",
    "Propose",
    "Query",
    "Switch",
    "Tags",
    "Text",
    "UnitId",
    "UnitText",
    "Whole",
    "Wire",
    "check_text",
    "parse_json",
    "problems",
]

NO_DOMAIN = Problem("value_error", "Value error, at least one non-empty domain is required")


class Wire(Schema):
    """The base of every schema: unknown keys are ignored, a body that is no object is told so."""

    error_messages = {"type": NOT_OBJECT}

    class Meta:
        unknown = EXCLUDE


class Insight(Wire):
    summary = UnitText(unit.SUMMARY, blank=False, required=True)
    detail = UnitText(unit.DETAIL, blank=False, required=True)
    action = UnitText(unit.ACTION, blank=False, required=True)


class Context(Wire):
    languages = Tags(load_default=list)
    frameworks = Tags(load_default=list)
    pattern = UnitText(unit.PATTERN, load_default="")


class Propose(Wire):
    """A proposal. `created_by` is accepted and dropped: the author is the owner of the API key."""

    domains = Tags(folded=True, low=1, required=True)
    insight = Part(Insight, required=True)
    context = Part(Context, load_default=lambda: Context().load({}))
    extensions = Extensions(load_default=None, allow_none=True)
    created_by = Text(load_only=True)

    @validates_schema(skip_on_field_errors=False)
    def named(self, data, **_):
        if "domains" in data and not data["domains"]:
            raise ValidationError(NO_DOMAIN, "domains")


class Flag(Wire):
    """Why a unit is wrong. A duplicate names the unit it repeats."""

    reason = Choice(unit.FLAG_REASONS, required=True)
    detail = UnitText(unit.FLAG_DETAIL, load_default=None, allow_none=True)
    duplicate_of = UnitId(load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def referred(self, data, original, **_):
        if data.get("reason") == "duplicate" and original.get("duplicate_of") is None:
            raise ValidationError(
                Problem("missing", "A duplicate flag names the other unit in duplicate_of"),
                "duplicate_of",
            )


class Query(Wire):
    """What an agent asks: tags, a question in its own words, or both."""

    domains = Tags(folded=True, load_default=None)
    q = Text(unit.QUESTION, load_default=None)
    languages = Tags(folded=True, load_default=list)
    frameworks = Tags(folded=True, load_default=list)
    pattern = Text(unit.PATTERN, load_default="")
    limit = Whole(1, 50, clamp=True, load_default=5)
    explain = Switch(load_default=False)

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def asked(self, data, original, **_):
        given = isinstance(original, dict) and ("domains" in original or original.get("q"))
        if not given:
            raise ValidationError(MISSING, "domains")
