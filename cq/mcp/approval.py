"""A proposal that a person sees first: the question to them, and what each answer means."""

from mcp import MCPError, types

from cq import safety
from cq.failures import Unsafe

ASK, HEADLESS = "ask", "headless"
# The name of the question in the protocol's newer form, where the host asks and calls again.
QUESTION = "approval"
FIELDS = ("summary", "detail", "action")
NOBODY = "nobody could be asked"


async def propose(backend, run, context, asked, given, headless):
    """(outcome, unit, warnings, findings) of a proposal, or the protocol's question to the host.

    Accepted, edited or not, it is sent; declined, it is dropped; in all other cases it is held,
    but for `headless`: then it is sent if nothing in it is for a person to weigh. Raises CqError.
    """
    unit = await run(lambda: backend.candidate(**given))
    findings = _safe(unit)
    said = (asked.input_responses or {}).get(QUESTION)
    if said is None and _can_ask(context):
        question = _question(unit, findings)
        if not context.session.can_send_request:
            return types.InputRequiredResult(input_requests={QUESTION: question})
        said = await _asked(context, question)
    action = getattr(said, "action", None)
    if action == "decline":
        return "declined", unit, ["The person declined: do not propose this again."], findings
    if action == "accept":
        given = {**given, **_edited(said.content or {})}
        _safe(await run(lambda: backend.candidate(**given)))
    elif action == "cancel" or findings or not headless:
        why = "the question was put away" if action == "cancel" else NOBODY
        await run(lambda: backend.hold(unit, why))
        told = f"{why}, so it is held until a person decides: `cq held review`"
        return "held", unit, [told], findings
    done = await run(lambda: backend.propose(**given))
    return "kept" if done.kept else "sent", done.unit, done.warnings, done.findings


def _safe(unit):
    """The findings for a person. Raises Unsafe for the others."""
    findings = safety.check(unit)
    if refusals := safety.refusals(findings):
        raise Unsafe(refusals)
    return findings


def _can_ask(context):
    able = context.session.client_capabilities
    able = able and able.elicitation
    # A host that names no kind of question has the only kind that there was at first: a form.
    return able is not None and (able.form is not None or able.url is None)


async def _asked(context, question):
    """The answer; None from a host that cannot ask after all."""
    try:
        return await context.session.elicit_form(
            question.params.message, question.params.requested_schema, context.request_id
        )
    except MCPError:
        return None


def _question(unit, findings):
    fields = {
        name: {"type": "string", "title": name.capitalize(), "default": unit["insight"][name]}
        for name in FIELDS
    }
    fields["domains"] = {
        "type": "string",
        "title": "Domains",
        "description": "Tags, with commas between them.",
        "default": ", ".join(unit["domains"]),
    }
    context = unit["context"]
    more = [*context["languages"], *context["frameworks"], context["pattern"]]
    lines = ["Share this with other agents? You may edit it first.", ""]
    lines += [unit["insight"][name] for name in FIELDS]
    lines += ["", f"Tags: {', '.join([*unit['domains'], *filter(None, more)])}"]
    lines += [f"{name}: {value}" for name, value in (unit.get("extensions") or {}).items()]
    lines += [f"To weigh, in {each.field}: {each.text}" for each in findings]
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message="\n".join(lines),
            requested_schema={"type": "object", "properties": fields, "required": []},
        )
    )


def _edited(content):
    """The fields that the person sent along."""
    found = {name: content[name] for name in FIELDS if isinstance(content.get(name), str)}
    if isinstance(content.get("domains"), str):
        found["domains"] = [tag.strip() for tag in content["domains"].split(",") if tag.strip()]
    return found
