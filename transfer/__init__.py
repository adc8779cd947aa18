"""`flask export` and `flask import`: units as JSON, one a line."""

import json
import os
import shutil
import tempfile
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from itertools import islice

import click
from flask import current_app
from flask.cli import with_appcontext
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

import files
from admin import Refused, progress
from cq import unit as rules
from errors import Conflict, Unavailable
from models import Event, Revision, Unit, Vote, db
from transfer import adopting, shape
from transfer.reading import Unreadable, documents

# Units that are read, or written in one transaction: a server's writers wait that long.
BATCH = 100


def init_app(app):
    app.cli.add_command(export)
    app.cli.add_command(import_units)


@click.command("export")
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--status",
    type=click.Choice([*rules.STATUSES, "all"]),
    multiple=True,
    default=["approved"],
    show_default=True,
    help="Units of which status; may be given again.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@with_appcontext
def export(file, status, force):
    """Write units to FILE, or to stdout, one a line as JSON, oldest first.

    A line has all that a server knows of the unit but who confirmed it.
    """
    where = [] if "all" in status else [Unit.status.in_(status)]
    try:
        with _output(file, force) as out, progress(Unit.count(*where), "units") as bar:
            done = 0
            for line in _lines(where):
                out.write(line)
                bar.update(1)
                done += 1
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise Refused(f"{file} cannot be written: {fault.strerror}.") from None
    if file != "-":
        click.echo(f"{file} holds {done} units.")


@contextmanager
def _output(file, force):
    if file == "-":
        with click.open_file("-", "wb") as out:
            yield out
            out.flush()
        return
    with files.written(file, force) as draft, open(draft, "wb") as out:
        yield out


def _lines(where):
    """Each unit's line, as of one moment; so many are in memory as are read at once."""
    after = None
    while True:
        units, after = Unit.page(*where, limit=BATCH, after=after)
        pks = [unit.pk for unit in units]
        votes, events, revisions = (
            _beside(Vote, pks, Vote.id),
            _beside(Event, pks, Event.id),
            _beside(Revision, pks, Revision.number),
        )
        for unit in units:
            told = shape.line(unit, votes[unit.pk], events[unit.pk], revisions[unit.pk])
            yield json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        db.session.expunge_all()
        if after is None:
            return


def _beside(table, pks, order):
    """{row number of a unit: its rows in this table}."""
    found = defaultdict(list)
    for row in db.session.scalars(select(table).where(table.unit_pk.in_(pks)).order_by(order)):
        found[row.unit_pk].append(row)
    return found


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--strict", is_flag=True, help="Take in nothing if anything is wrong.")
@click.option("--approve", is_flag=True, help="Approve the units instead of leaving them pending.")
@click.option(
    "--trust", is_flag=True, help="Keep status, tier, votes, flags and history as they were."
)
@with_appcontext
def import_units(file, strict, approve, trust):
    """Read units from FILE, or from stdin: one a line as JSON, as `flask export` writes them.

    Units of the wire and proposals will do, too, also in one JSON list. They are pending, whatever
    they were, unless you say otherwise. What is here already stays as it is.
    """
    if approve and trust:
        raise click.UsageError("--approve and --trust exclude each other.")
    if approve and current_app.config["CQ_HUMAN_REVIEW"]:
        raise Refused("CQ_HUMAN_REVIEW takes decisions from the review page only; leave --approve.")
    taken = Taken(strict, trust, approve)
    with click.open_file(file, "rb") as source, ExitStack() as stack:
        if strict:
            if not source.seekable():
                spool = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(source, spool)
                source = spool
                source.seek(0)
            start = source.tell()
            for _ in taken.good(source):
                pass
            taken.end_if_bad()
            source.seek(start)
        with progress(_left(source), "bytes") as bar:
            taken.all_of(taken.good(source, bar))
    taken.end()


def _left(source):
    """How many bytes are still to be read; 0 of a pipe, which does not tell."""
    if not source.seekable():
        return 0
    start = source.tell()
    end = source.seek(0, os.SEEK_END)
    source.seek(start)
    return end - start


class Taken:
    """What became of each unit: committed in batches, or with `strict` all or none."""

    def __init__(self, strict, trust, approve):
        self.strict, self.how = strict, {"trust": trust, "approve": approve}
        self.made = self.there = self.bad = 0

    def good(self, source, bar=None):
        """(place, unit) of those that can be taken in by what stands in them."""
        for place, document, read in documents(source):
            if bar:
                bar.update(read)
            id = document.get("id") if isinstance(document, dict) else None
            place = f"{place} ({id})" if rules.is_id(id) else place
            try:
                if isinstance(document, Unreadable):
                    raise adopting.Bad(str(document))
                yield place, adopting.load(document)
            except adopting.Bad as fault:
                self.refuse(place, fault)

    def refuse(self, place, fault):
        self.bad += 1
        click.echo(f"{place}: {fault.detail}", err=True)

    def all_of(self, units):
        """Write them. Nobody waits for the database while a batch is read from the file."""
        while batch := list(islice(units, BATCH)):
            try:
                for place, unit in batch:
                    self._one(place, unit)
                db.session.flush()
                if not self.strict:
                    db.session.commit()
            except Unavailable as fault:
                raise Refused(f"{fault.detail}: {self.made} units are in.") from None
            except OperationalError as fault:
                raise Refused(
                    f"The database cannot be written ({fault.orig}); run it again to go on."
                ) from None
            db.session.expunge_all()

    def _one(self, place, unit):
        try:
            made = adopting.adopt(unit, **self.how)
        except Conflict as fault:
            self.refuse(place, fault)
        else:
            self.made += made
            self.there += not made

    def end_if_bad(self):
        if self.strict and self.bad:
            db.session.rollback()
            raise Refused(f"{self.bad} cannot be imported; with --strict nothing was.")

    def end(self):
        self.end_if_bad()
        db.session.commit()
        click.echo(f"Imported {self.made} units; {self.there} were here already.")
        if self.bad:
            raise Refused(f"{self.bad} could not be imported; see above.")
