"""`cq install`: put cq into coding agents, or take it out again."""

import os
from pathlib import Path

import click

from cq import cli, hosts
from cq.cli.shared import JSON, safe, show, warn
from cq.hosts import binary, paths, tables

MARKS = {"created": "+", "updated": "~", "unchanged": "=", "removed": "-", "skipped": "!"}
COMMANDS = ("query", "propose", "confirm", "flag", "status")


def _targets(ctx, param, given):
    names = [name.strip().lower() for each in given for name in each.split(",") if name.strip()]
    known = ", ".join(hosts.TARGETS)
    if not names:
        raise click.UsageError(f"select at least one --target: {known}, or all")
    for name in names:
        if name not in (*hosts.TARGETS, "all"):
            raise click.BadParameter(f"{name!r} is none of: {known}, or all")
    return dict.fromkeys(names)


@click.command()
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="NAME",
    help=f"{', '.join(hosts.TARGETS)}, or all; may be repeated, or a list with commas.",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Into the files of the project in this folder, not for all you do.",
)
@click.option(
    "--remote",
    metavar="ADDRESS",
    help="Let the hosts speak MCP with the node at this address over HTTP, not with this command.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and touch nothing.")
@click.option("--uninstall", is_flag=True, help="Take cq out again.")
@JSON
@click.pass_context
def install(ctx, targets, project, remote, dry_run, uninstall, whole):
    """Put cq into coding agents: MCP server, skill, commands and hooks.

    A target is changed wholly or not at all; what you changed yourself is left as it is.
    """
    if uninstall and remote is not None:
        raise click.UsageError("--remote goes with an install, not with --uninstall")
    try:
        place = paths.here(project and Path(os.path.abspath(project)))
    except RuntimeError as fault:
        raise click.UsageError("your home folder is not known; set HOME") from fault
    chosen = [
        name
        for name in hosts.TARGETS
        # All means all that can be: a project has no files for some.
        if name in targets or ("all" in targets and tables.HOSTS[name](place, tables.Given()))
    ]
    if uninstall:
        reports = hosts.uninstall(chosen, place, dry_run)
    else:
        program, warning = binary.find()
        warn([warning] if warning else [])
        endpoint = tables.endpoint(remote) if remote is not None else ""
        given = tables.Given(program, endpoint, usages(ctx))
        reports = hosts.install(chosen, place, given, dry_run)
    _show(reports, dry_run, whole)
    if any(report.failure for report in reports):
        ctx.exit(1)


def _show(reports, dry_run, whole):
    if whole:
        show([_plain(report, dry_run) for report in reports])
        return
    for report in reports:
        click.echo(f"[{report.target}]")
        for how, path, detail in report.outcomes:
            why = f"  ({detail})" if detail else ""
            click.echo(f"  {MARKS[how]} {safe(str(path))}{safe(why)}")
        for note in report.notes:
            click.echo(f"  note: {safe(note)}")
        if report.failure:
            click.echo(f"Error: {report.target}: {safe(report.failure)}", err=True)
    if dry_run:
        click.echo("Nothing was touched: this was a dry run.", err=True)


def _plain(report, dry_run):
    steps = [
        {"outcome": how, "path": str(path), "detail": detail}
        for how, path, detail in report.outcomes
    ]
    said = {"target": report.target, "dry_run": dry_run, "steps": steps}
    return {**said, "notes": list(report.notes), "error": report.failure or None}


def usages(ctx):
    """{command: (its arguments, its options as text)} for hosts that run the commands."""
    found = {}
    for name in COMMANDS:
        command = cli.cq.get_command(ctx, name)
        inner = click.Context(command, info_name=name, parent=ctx.find_root())
        arguments = " ".join(
            f"<{param.name}>" if param.required else f"[{param.name}]"
            for param in command.params
            if isinstance(param, click.Argument)
        )
        options = [param for param in command.params if isinstance(param, click.Option)]
        records = [option.get_help_record(inner) for option in options]
        formatter = click.HelpFormatter(width=100)
        formatter.write_dl([record for record in records if record])
        found[name] = (arguments, formatter.getvalue())
    return found
