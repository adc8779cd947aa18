"""Coding agents that cq installs itself into, and out of. Knows files, and nothing of a node."""

from typing import NamedTuple

from cq.failures import CqError
from cq.hosts.files import Files
from cq.hosts.run import Outcome, Run
from cq.hosts.tables import HOSTS, Given

TARGETS = tuple(sorted(HOSTS))


class Report(NamedTuple):
    """What became of a target: each file, or why all of them are as they were; notes to tell."""

    target: str
    outcomes: list[Outcome]
    failure: str = ""
    notes: tuple = ()


def install(targets, place, given, dry_run=False):
    """A `Report` for each target: all of its files, or none. With `dry_run` nothing is written."""
    return _each(targets, place, given, dry_run, "install")


def uninstall(targets, place, dry_run=False):
    """The same the other way: what cq wrote goes, what it was put into is as before."""
    return _each(targets, place, Given(), dry_run, "uninstall")


def installed(place, *givens):
    """[(target, what)] of the targets that hold cq: `what` an install would change, by paths, or
    why it would fail; of several `givens` by the one that changes least.
    """
    found = []
    for target in TARGETS:
        tried = [_one(target, place, given, Files(True), "install") for given in givens]
        own = [each for each in tried[0].outcomes if not each.path.is_relative_to(place.skills)]
        if tried[0].failure:
            found.append((target, [tried[0].failure]))
        elif any(each.how != "created" for each in own):
            found.append((target, min(map(_changes, tried), key=len)))
    return found


def _changes(report):
    return [str(each.path) for each in report.outcomes if each.how in ("created", "updated")]


def _each(targets, place, given, dry_run, verb):
    files = Files(dry_run)
    return [_one(target, place, given, files, verb) for target in sorted(targets)]


def _one(target, place, given, files, verb):
    host = HOSTS[target](place, given)
    if host is None:
        return Report(target, [], f"{target} reads no files of a project; leave --project out")
    run = Run(target, place, files)
    try:
        for step in host.steps:
            getattr(step, verb)(run)
        run.finish(installed=verb == "install")
        files.commit()
    except CqError as fault:
        files.forget()
        return Report(target, [], str(fault))
    notes = host.notes
    if place.project and verb == "install":
        notes = (*notes, f"the files name {given.program}: whoever shares them needs cq there")
    if given.endpoint and host.key:
        notes = (*notes, f"the key is not written; put {host.key}, and set CQ_API_KEY")
    return Report(target, run.outcomes, "", notes)
