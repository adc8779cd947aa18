"""The shapes of what the server answers. They describe; the rows say what leaves, key by key."""

from marshmallow import Schema, fields

from cq import wire


class Flagged(Schema):
    reason = fields.String()
    timestamp = fields.String()
    detail = fields.String(allow_none=True)
    duplicate_of = fields.String(allow_none=True)


class Told(Flagged):
    by = fields.String()
    answered_by = fields.String(allow_none=True)
    answered_at = fields.String(allow_none=True)


class Finding(Schema):
    """What the safety check found: in which member, of which kind, and in words."""

    field = fields.String()
    kind = fields.String()
    text = fields.String()


class Evidence(Schema):
    confidence = fields.Float()
    confirmations = fields.Integer()
    first_observed = fields.String()
    last_confirmed = fields.String()


class KnowledgeUnit(Schema):
    """`created_by` is left out of what agents read."""

    id = fields.String()
    version = fields.Integer()
    domains = fields.List(fields.String())
    insight = fields.Nested(wire.Insight)
    context = fields.Nested(wire.Context)
    evidence = fields.Nested(Evidence)
    tier = fields.String()
    created_by = fields.String()
    superseded_by = fields.String(allow_none=True)
    extensions = fields.Dict(allow_none=True)
    flags = fields.List(fields.Nested(Flagged))


class Parts(Schema):
    """What a unit's score is made of: how well its tags fit, its words, its meaning, 0..1 each.

    For tags alone in domain mode it is only `domain` (with the confidence in it) and `score`.
    """

    domain = fields.Float()
    text = fields.Float()
    meaning = fields.Float(metadata={"description": "in semantic mode: the cosine, -1..1"})
    confidence = fields.Float()
    score = fields.Float()


class Found(Schema):
    data = fields.List(fields.Nested(KnowledgeUnit))
    explain = fields.List(fields.Nested(Parts), metadata={"description": "with explain=1 only"})


class AgentStats(Schema):
    total_count = fields.Integer()
    tier_counts = fields.Dict(values=fields.Integer())
    domain_counts = fields.Dict(values=fields.Integer())
    confidence_distribution = fields.Dict(values=fields.Integer())


class Item(Schema):
    knowledge_unit = fields.Nested(KnowledgeUnit)
    status = fields.String()
    reviewed_by = fields.String(allow_none=True)
    reviewed_at = fields.String(allow_none=True)
    reason = fields.String(allow_none=True)
    revision = fields.Integer()
    created_at = fields.String()
    disputed = fields.Boolean()
    stale = fields.Boolean()
    flags = fields.List(fields.Nested(Told))
    findings = fields.List(fields.Nested(Finding))


class Page(Schema):
    items = fields.List(fields.Nested(Item))
    total = fields.Integer()
    offset = fields.Integer()
    limit = fields.Integer()
    next_cursor = fields.String(allow_none=True)


class Alike(Item):
    similarity = fields.Float(
        metadata={"description": "of meaning in semantic mode, else of rare words; 0..1"}
    )


class Similar(Schema):
    mode = fields.String()
    data = fields.List(fields.Nested(Alike))


class Decided(Schema):
    unit_id = fields.String()
    status = fields.String()
    reviewed_by = fields.String(allow_none=True)
    reviewed_at = fields.String(allow_none=True)


class BulkDecided(Decided):
    error = fields.Integer(metadata={"description": "the status this id would have had alone"})
    detail = fields.String()


class BulkAnswer(Schema):
    data = fields.List(fields.Nested(BulkDecided))


class Gap(Schema):
    """Tags that were asked for together; none of a question without tags."""

    tags = fields.List(fields.String())
    missed = fields.Integer(metadata={"description": "how often nothing was found"})
    asked = fields.Integer(metadata={"description": "how often it was asked"})
    last = fields.String(metadata={"description": "the last day on which nothing was found"})
    known = fields.Boolean(metadata={"description": "an approved unit has one of the tags now"})


class Gaps(Schema):
    items = fields.List(fields.Nested(Gap))
    total = fields.Integer()
    offset = fields.Integer()
    limit = fields.Integer()
    counting = fields.Boolean(metadata={"description": "false with CQ_QUERY_LOG=0"})


class Use(Schema):
    unit_id = fields.String()
    summary = fields.String()
    status = fields.String()
    served = fields.Integer()
    confirmed = fields.Integer()
    flagged = fields.Integer()
    last = fields.String(allow_none=True, metadata={"description": "the last day it was served"})


class UsePage(Gaps):
    items = fields.List(fields.Nested(Use))


class Served(Schema):
    served = fields.Integer()
    last = fields.String(allow_none=True)


class History(Schema):
    events = fields.List(fields.Dict())
    revisions = fields.List(fields.Dict())
    flags = fields.List(fields.Dict())
    votes = fields.Dict(values=fields.Integer())
    use = fields.Nested(Served)


class ReviewStats(Schema):
    counts = fields.Dict(values=fields.Integer())
    domains = fields.Dict(values=fields.Integer())
    confidence_distribution = fields.Dict(values=fields.Integer())
    recent_activity = fields.List(fields.Dict())
    trends = fields.Dict()


class Token(Schema):
    token = fields.String()
    username = fields.String()
    role = fields.String()


class Account(Schema):
    username = fields.String()
    role = fields.String()
    disabled = fields.Boolean()
    created_at = fields.String()


class Accounts(Schema):
    data = fields.List(fields.Nested(Account))


class Key(Schema):
    id = fields.String()
    name = fields.String()
    labels = fields.List(fields.String())
    prefix = fields.String()
    key_prefix = fields.String()
    ttl = fields.String()
    expires_at = fields.String()
    created_at = fields.String()
    last_used_at = fields.String(allow_none=True)
    revoked_at = fields.String(allow_none=True)
    is_expired = fields.Boolean()
    is_active = fields.Boolean()


class MadeKey(Key):
    """The token is shown this once."""

    token = fields.String()
    api_key = fields.String()


class Keys(Schema):
    data = fields.List(fields.Nested(Key))


class Message(Schema):
    message = fields.String()


class Health(Schema):
    status = fields.String()


class Error(Schema):
    """One sentence, or for a 422 a list of {"type", "loc", "msg"}."""

    detail = fields.Raw(
        metadata={"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}
    )
