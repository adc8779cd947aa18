"""`cq query`, `propose`, `confirm` and `flag`."""

import click

from cq.cli.shared import FORMAT, JSON, connected, line, percent, safe, show, warn
from cq.unit import FLAG_REASONS

TAGS = {"multiple": True, "metavar": "TAG"}


@click.command()
@click.argument("question", required=False, default="")
@click.option("--domain", "domains", help="A subject; may be repeated.", **TAGS)
@click.option("--language", "languages", help="A programming language; may be repeated.", **TAGS)
@click.option("--framework", "frameworks", help="A framework; may be repeated.", **TAGS)
@click.option("--pattern", default="", help="A concern across subjects, such as api-client.")
@click.option("--limit", default=5, show_default=True, help="At most so many units, up to 50.")
@FORMAT
@JSON
@connected
def query(client, question, shape, whole, **asked):
    """Ask what is known: by subjects, or by a QUESTION in your own words.

    The best units come first, each with its id, confidence and what to do.
    """
    if not (question.strip() or asked["domains"]):
        raise click.UsageError("give --domain, or a question in quotes, or both")
    found = client.query(q=question, **asked)
    warn(found.warnings)
    if whole:
        return show(found._asdict())
    if shape == "json":
        return show(found.units)
    for unit in found.units:
        insight = unit["insight"]
        head = click.style(f"[{unit['id']}] ({percent(unit)})", dim=True)
        click.echo(f"{head} {click.style(line(insight['summary']), bold=True)}")
        click.echo(f"  {safe(insight['detail'])}")
        click.echo(f"  Action: {safe(insight['action'])}\n")
    if not found.units:
        click.echo("No matching knowledge units.")
    return None


@click.command()
@click.option("--summary", required=True, help="What was learned, in a line; at most 500 signs.")
@click.option("--detail", required=True, help="When and why it holds; at most 8000.")
@click.option("--action", required=True, help="What to do, a verb first; at most 2000.")
@click.option("--domain", "domains", required=True, help="A subject; may be repeated.", **TAGS)
@click.option("--language", "languages", help="A programming language; may be repeated.", **TAGS)
@click.option("--framework", "frameworks", help="A framework; may be repeated.", **TAGS)
@click.option("--pattern", default="", help="A concern across subjects, such as api-client.")
@click.option("--hold", is_flag=True, help="Keep it for `cq held review` and send nothing.")
@FORMAT
@JSON
@connected
def propose(client, shape, whole, hold, **said):
    """Share what you learned. A node's reviewer decides before others see it.

    Without a node, or while it does not answer, the unit is kept on this machine.
    """
    if hold:
        unit = client.candidate(**said)
        client.hold(unit, "asked for")
        return click.echo(f"Held: {unit['id']}")
    proposed = client.propose(**said)
    findings = [f"{each.field}: {each.text}" for each in proposed.findings]
    warn([*proposed.warnings, *findings])
    if whole:
        return show({**proposed._asdict(), "findings": findings})
    return (
        show(proposed.unit) if shape == "json" else click.echo(f"Proposed: {proposed.unit['id']}")
    )


@click.command()
@click.argument("unit_id")
@JSON
@connected
def confirm(client, unit_id, whole):
    """Say that a unit proved right."""
    unit = client.confirm(unit_id.strip())
    if whole:
        return show(unit)
    return click.echo(f"Confirmed {unit['id']} (confidence: {percent(unit)})")


@click.command()
@click.argument("unit_id")
@click.option(
    "--reason",
    required=True,
    type=click.Choice(sorted(FLAG_REASONS), case_sensitive=False),
    help="What is wrong with it.",
)
@click.option("--detail", help="In your own words, for the reviewers.")
@click.option("--duplicate-of", help="The id of the unit that it repeats.")
@JSON
@connected
def flag(client, unit_id, reason, detail, duplicate_of, whole):
    """Say that a unit is stale, incorrect, or a duplicate of another."""
    if reason == "duplicate" and not duplicate_of:
        raise click.UsageError("a duplicate needs --duplicate-of, the id of the unit it repeats")
    unit = client.flag(unit_id.strip(), reason, detail, duplicate_of)
    if whole:
        return show(unit)
    return click.echo(f"Flagged {unit['id']} as {reason} (confidence: {percent(unit)})")
