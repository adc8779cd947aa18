"""`cq status` and `cq drain`."""

import sys

import click

from cq.cli.shared import FORMAT, JSON, connected, line, show, warn
from cq.failures import NoNode

DOMAINS = 8


@click.command()
@FORMAT
@JSON
@connected
def status(client, shape, whole):
    """Count what is known, on this machine and on the node."""
    stats = client.status()
    warn(stats["warnings"])
    if whole or shape == "json":
        return show(stats)
    click.echo(f"Knowledge units: {stats['total_count']}\n")
    tiers = [(tier, stats["tier_counts"].get(tier, 0)) for tier in ("local", "private", "public")]
    if any(count for _, count in tiers):
        click.echo("By tier:")
        for tier, count in tiers:
            if count:
                click.echo(f"  {tier:<20} {count}")
        click.echo()
    if stats["recent"]:
        click.echo("Recent:")
        for unit in stats["recent"]:
            click.echo(f"  [{unit['id']}] {line(unit['insight']['summary'])}")
        click.echo()
    click.echo("Confidence distribution (without the public commons):")
    for label, count in stats["confidence_distribution"].items():
        click.echo(f"  {label:<10} {count}")
    if stats["held"]:
        click.echo(f"\nHeld for you: {stats['held']} (`cq held review`)")
    if drained := stats["drain"]:
        click.echo(
            f"\nLast drain, {drained['at']}: {drained['pushed']} sent, {drained['refused']} "
            f"refused, {drained['waiting']} still waiting"
        )
    if stats["domain_counts"]:
        click.echo(f"\n{_domains(stats['domain_counts'])}")
    return None


def _domains(counts):
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    told = ", ".join(f"{line(name)} ({count})" for name, count in ranked[:DOMAINS])
    more = f" ... +{len(ranked) - DOMAINS} more" if len(ranked) > DOMAINS else ""
    return f"Domains: {len(ranked)} total\n  {told}{more}"


@click.command()
@click.option("--dry-run", is_flag=True, help="Say how many would be sent, and send nothing.")
@FORMAT
@JSON
@connected
def drain(client, dry_run, shape, whole):
    """Send the units that wait on this machine to the node."""
    whole = whole or shape == "json"
    if dry_run:
        if not client.addr:
            raise NoNode("no node to send to: set CQ_ADDR or give --addr")
        waiting = len(client.waiting())
        if whole:
            return show({"dry_run": True, "pending": waiting})
        return click.echo(f"Would push {waiting} unit(s)")
    drained = client.drain(_progress if sys.stderr.isatty() else lambda done, total: None)
    if whole:
        told = drained._asdict()
        return show(
            told if drained.warnings else {k: v for k, v in told.items() if k != "warnings"}
        )
    click.echo(f"Pushed {drained.pushed} unit(s)")
    for warning in drained.warnings:
        click.echo(f"  warning: {line(warning)}")
    if drained.waiting:
        click.echo(f"{drained.waiting} still waiting; run `cq drain` again when the node answers.")
    return None


def _progress(done, total):
    end = "\n" if done == total else ""
    click.echo(f"\r{done} of {total}{end}", err=True, nl=False)
