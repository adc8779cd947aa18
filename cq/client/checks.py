"""What callers give, held against the schemas of the wire."""

from cq import record
from cq.failures import Invalid


def check(schema, given):
    """What a schema of the wire, by its name, makes of it. Raises Invalid."""
    from marshmallow import ValidationError

    from cq import wire

    try:
        return getattr(wire, schema)().load(given)
    except ValidationError as fault:
        raise Invalid([_line(each) for each in wire.problems(fault.messages)]) from None


def candidate(
    summary,
    detail,
    action,
    domains,
    languages=(),
    frameworks=(),
    pattern="",
    extensions=None,
    created_by="",
):
    """The unit that would be proposed. Raises Invalid with every rule that it breaks."""
    context = {
        "languages": listed(languages),
        "frameworks": listed(frameworks),
        "pattern": pattern,
    }
    more = {"extensions": extensions, "created_by": created_by}
    insight = {"summary": summary, "detail": detail, "action": action}
    said = {"domains": listed(domains), "insight": insight, "context": context, **more}
    domains = check("Propose", said)["domains"]
    return record.make(**insight, domains=domains, **context, **more)


def _line(problem):
    text = problem["msg"].removeprefix("Value error, ")
    where = ".".join(str(step) for step in problem["loc"] if step not in ("insight", "context"))
    return text if text.startswith(where) else f"{where}: {text}"


def listed(tags):
    """A bare string is a list of one."""
    return [tags] if isinstance(tags, str) else list(tags)
