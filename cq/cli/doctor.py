"""`cq doctor`: what is wrong on this machine or with its node, and what mends it."""

import os
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from cq import discovery, hosts, store
from cq.cli.install import usages
from cq.cli.shared import CONNECTION, JSON, client, line, show
from cq.failures import AppliedUnreadable, BadAddress, CqError, DiscoveryFailed, NoAnswer
from cq.hosts import binary, paths, tables

OK, HINT, FAULT = "ok", "hint", "fault"
SIGNS = {OK: ("ok   ", "green"), HINT: ("hint ", "yellow"), FAULT: ("FAULT", "red")}


class Line(NamedTuple):
    """What was looked at, how it is, what was seen, and what mends it."""

    what: str
    how: str
    seen: str
    remedy: str = ""


@click.command()
@JSON
@click.pass_context
def doctor(ctx, whole):
    """Look at the store, the node, the key and the hosts; say what to do. Changes nothing."""
    options = ctx.find_root().obj or {}
    found = list(_look({name: options.get(name) for name in CONNECTION}))
    found += _hosts(ctx)
    if whole:
        show([each._asdict() for each in found])
    else:
        for each in found:
            sign, colour = SIGNS[each.how]
            click.echo(f"{click.style(sign, fg=colour)} {each.what}: {line(each.seen)}")
            if each.remedy:
                click.echo(f"      {each.remedy}")
    if any(each.how == FAULT for each in found):
        ctx.exit(1)


def _look(options):
    try:
        made = client(**{**options, "refresh": False})
    except click.UsageError as fault:
        yield Line("settings", FAULT, fault.format_message(), "Unset CQ_TIMEOUT, or set it to 30.")
        return
    with made:
        yield from _store(made, options["db_path"])
        yield from _node(made)


def _store(made, given):
    try:
        path = store.place(given)
        new = isinstance(path, Path) and not path.exists()
        stats = made.store.stats()
    except store.StoreError as fault:
        yield Line("store", FAULT, str(fault), _store_remedy(fault))
        return
    holds = "made now" if new else f"{stats['total_count']} units"
    yield Line("store", OK, f"{made.store.name}, {holds}")
    if isinstance(path, Path):
        yield from _file(path)
    for warning in stats["warnings"]:
        yield Line("store", FAULT, warning, "Delete that row, or restore the store from a backup.")
    waiting, held = len(made.waiting()), len(made.held())
    if waiting and made.addr:
        yield Line("waiting", HINT, f"{waiting} units wait to be sent", "Run: cq drain")
    if held:
        yield Line("held", HINT, f"{held} candidates wait for you", "Run: cq held review")


def _file(path):
    if not os.access(path, os.W_OK):
        yield Line("store", FAULT, f"{path} cannot be written", f"Run: chmod u+w {path}")
    elif stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Line("store", HINT, f"others may read {path}", f"Run: chmod 600 {path}")


def _store_remedy(fault):
    if "not a database" in str(fault) or "malformed" in str(fault):
        return "Move the file away; cq makes a new one. Or restore it from a backup."
    return "Mend its folder's rights, or set CQ_LOCAL_DB_PATH to a file that you may write."


def _node(made):
    if not made.addr:
        yield Line(
            "node", HINT, "none: units stay on this machine", "Set CQ_ADDR to share with a team."
        )
        return
    try:
        node = made.remote.node()
    except BadAddress as fault:
        yield Line("node", FAULT, str(fault), "Set CQ_ADDR to the address the node's page has.")
        return
    except DiscoveryFailed as fault:
        yield Line("node", FAULT, str(fault), _remedy(fault))
        return
    try:
        made.remote.stats()
    except CqError as fault:
        yield Line("node", FAULT, f"{node.api}: {fault}", _remedy(fault))
        return
    yield Line("node", OK, f"{node.name or made.addr} at {node.api}")
    place = urlsplit(node.api)
    if place.scheme == "http" and place.hostname not in discovery.LOOPBACK:
        yield Line("node", HINT, "the API key travels unprotected", "Put the node behind https.")
    folder = discovery.cache_folder()
    if folder and not _writable(folder):
        yield Line("cache", HINT, f"{folder} cannot be written", "Each command asks the node anew.")
    yield from _key(made)


def _writable(folder):
    """Whether it, or the first folder above it that is there, may be written."""
    while not folder.exists():
        folder = folder.parent
    return os.access(Path(folder), os.W_OK) and folder.is_dir()


def _key(made):
    if not made.has_key:
        yield Line(
            "key", FAULT, "none: proposals stay on this machine",
            "Make one on the node's page under API keys, and set CQ_API_KEY.",
        )  # fmt: skip
        return
    try:
        known = made.remote.knows_key()
    except AppliedUnreadable:
        known = True
    except NoAnswer as fault:
        yield Line("key", FAULT, f"it could not be tried: {fault}", _remedy(fault))
        return
    if known:
        yield Line("key", OK, "the node accepts it")
    else:
        yield Line(
            "key", FAULT, "the node does not accept it",
            "It may be expired or revoked: make a new one on the node's page, set CQ_API_KEY.",
        )  # fmt: skip


def _hosts(ctx):
    """The coding agents that cq was put into: is what it wrote there still so?"""
    try:
        place, (program, passing) = paths.here(), binary.find()
    except (RuntimeError, CqError) as fault:
        yield Line("hosts", HINT, str(fault), "Hosts could not be looked at; see `cq install`.")
        return
    given = tables.Given(program, "", usages(ctx))
    addr = os.environ.get("CQ_ADDR", "").strip()
    try:
        remote = [given._replace(endpoint=tables.endpoint(addr))] if addr else []
    except CqError:
        remote = []
    found = hosts.installed(place, given, *remote)
    for target, changed in found:
        if changed:
            seen = f"{target} is not as this cq writes it: {', '.join(changed)}"
            yield Line("hosts", HINT, seen, f"Run: cq install --target {target}")
    sound = [target for target, changed in found if not changed]
    if sound:
        yield Line("hosts", OK, ", ".join(sound))
    if passing and found:
        yield Line("hosts", HINT, passing, "Hosts start cq from there.")
    if not found:
        remedy = "Run: cq install --target NAME; `cq install --help` names them."
        yield Line("hosts", HINT, "no coding agent holds cq", remedy)


def _remedy(fault):
    if fault.status and fault.status >= 500:
        return "The node is in trouble: ask whoever runs it to look at its log."
    if isinstance(fault, DiscoveryFailed) and "cannot be reached" not in str(fault):
        return "Is CQ_ADDR the address of a cq node? Ask whoever runs it."
    return "Is the node running, and can this machine reach it? Try its address in a browser."
