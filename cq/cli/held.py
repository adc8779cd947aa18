"""`cq held`: candidates that wait for a person."""

import click

from cq.cli.shared import JSON, connected, line, percent, safe, show, warn
from cq.failures import CqError


@click.group(invoke_without_command=True)
@JSON
@click.pass_context
def held(ctx, whole):
    """Candidates that wait for your decision; list them, review them, drop one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(_list, whole=whole)


@click.command("list")
@JSON
@connected
def _list(client, whole):
    """What waits, oldest first."""
    waiting = client.held()
    if whole:
        return show([each._asdict() for each in waiting])
    for each in waiting:
        click.echo(f"[{each.unit['id']}] {line(each.unit['insight']['summary'])}")
        click.echo(f"  held since {each.at}: {line(each.why)}")
    if not waiting:
        click.echo("Nothing is held.")
    return None


@click.command()
@connected
def review(client):
    """Decide on each: propose, edit, drop, or leave it for later."""
    for each in client.held():
        _decide(client, each)
    left = len(client.held())
    click.echo(f"{left} still held." if left else "Nothing is held.")


def _decide(client, each):
    unit = each.unit
    while True:
        _tell(unit, each.why)
        said = click.prompt(
            "propose, edit, drop, later",
            type=click.Choice(["p", "e", "d", "l"]),
            default="l",
        )
        if said == "l":
            return
        if said == "d":
            client.release(unit["id"])
            return
        if said == "e":
            unit = {
                **unit,
                "insight": {name: _edited(name, text) for name, text in unit["insight"].items()},
            }
            client.hold(unit, each.why)
            continue
        try:
            proposed = client.send(unit["id"])
        except CqError as failure:
            click.echo(f"Not proposed: {failure}", err=True)
            continue
        warn(proposed.warnings)
        click.echo(f"Proposed: {proposed.unit['id']}")
        return


def _tell(unit, why):
    insight, context = unit["insight"], unit["context"]
    click.echo(f"\n{click.style(line(insight['summary']), bold=True)} ({percent(unit)})")
    click.echo(f"  {safe(insight['detail'])}\n  Action: {safe(insight['action'])}")
    tags = [*unit["domains"], *context["languages"], *context["frameworks"], context["pattern"]]
    click.echo(f"  Tags: {line(', '.join(filter(None, tags)))}\n  Held: {line(why)}")


def _edited(name, text):
    return click.prompt(name, default=text)


@click.command()
@click.argument("unit_id")
@connected
def drop(client, unit_id):
    """Drop a candidate for good."""
    client.release(unit_id.strip())
    click.echo(f"Dropped {unit_id.strip()}")


held.add_command(_list)
held.add_command(review)
held.add_command(drop)
