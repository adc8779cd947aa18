"""`flask import-upstream`: accounts, API keys and units out of an upstream server's SQLite file.

Knows upstream's tables. The file is only read.
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import click
from flask.cli import with_appcontext
from marshmallow import ValidationError
from sqlalchemy import exists, select
from sqlalchemy.exc import OperationalError

import schemas
from admin import Refused, progress
from cq import unit, wire
from errors import Failure, Unavailable
from models import PEOPLE, ApiKey, User, db, write
from transfer import adopting, shape

# Of a greater cost, a login would keep a thread for minutes.
BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
KEY_ID, KEY_HASH = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{64}")
# What tiers were called before.
TIERS = {"team": "private", "global": "public"}
BATCH = 100
# What a column that an older file lacks stands for.
COLUMNS = {
    "users": {"id": None, "username": None, "password_hash": None, "created_at": "NULL"},
    "api_keys": {
        "id": None,
        "user_id": None,
        "name": None,
        "labels": "'[]'",
        "key_prefix": None,
        "key_hash": None,
        "ttl": None,
        "expires_at": None,
        "created_at": None,
        "last_used_at": "NULL",
        "revoked_at": "NULL",
    },
    "knowledge_units": {
        "id": None,
        "data": None,
        "status": "'pending'",
        "reviewed_by": "NULL",
        "reviewed_at": "NULL",
        "created_at": "NULL",
        "tier": "'private'",
    },
}


def init_app(app):
    app.cli.add_command(import_upstream)


@click.command("import-upstream")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--role",
    type=click.Choice(["reviewer", "contributor", "admin"]),
    default="reviewer",
    show_default=True,
    help="The role of new accounts: upstream has none, and everybody reviews there.",
)
@with_appcontext
def import_upstream(file, role):
    """Take in accounts, API keys and units of an upstream server's database FILE.

    Passwords go on working, and keys where CQ_API_KEY_PEPPER is upstream's. An account that is here
    by name stays as it is, and so do keys and units that are here. FILE is not changed.
    """
    try:
        with closing(_opened(file)) as source:
            tables = _tables(source, file)
            taken = Taken(source, tables, role)
            for table in ("users", "api_keys", "knowledge_units"):
                if table in tables:
                    taken.all_of(table)
    except sqlite3.Error as fault:
        raise Refused(f"{file} cannot be read to its end: {fault}.") from None
    except Unavailable as fault:
        raise Refused(f"{fault.detail}; what was told is in.") from None
    except OperationalError as fault:
        raise Refused(
            f"The database cannot be written ({fault.orig}); run it again to go on."
        ) from None
    taken.end()


def _opened(file):
    """A connection that writes nothing, not even a log beside the file."""
    # Where there is a log, a server has the file open or did not end well: it is read, too.
    log = Path(f"{file}-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    source = sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True)
    source.text_factory = bytes
    source.row_factory = sqlite3.Row
    return source


def _tables(source, file):
    """{table of upstream: the columns that it has}."""
    try:
        names = {row[0].decode() for row in source.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as fault:
        raise Refused(f"{file} is no whole SQLite database: {fault}.") from None
    if "units" in names:
        raise Refused(f"{file} is a database of this cq: take flask restore, or export and import.")
    if "knowledge_units" not in names:
        raise Refused(f"{file} is no database of upstream's server: it has no knowledge_units.")
    return {
        table: {row["name"].decode() for row in source.execute(f"PRAGMA table_info({table})")}
        for table in COLUMNS
        if table in names
    }


class Taken:
    """What became of the rows of each table, and whose number in the file is whose here."""

    def __init__(self, source, tables, role):
        self.source, self.tables, self.role = source, tables, role
        self.people = {}
        self.made = dict.fromkeys(COLUMNS, 0)
        self.there = dict.fromkeys(COLUMNS, 0)
        self.bad = 0

    def all_of(self, table):
        take = {"users": self._user, "api_keys": self._key, "knowledge_units": self._unit}[table]
        asked = ", ".join(
            name if name in self.tables[table] or default is None else f"{default} AS {name}"
            for name, default in COLUMNS[table].items()
        )
        order = "id" if table == "users" else "created_at, id"
        length = self.source.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        rows = self.source.execute(f"SELECT {asked} FROM {table} ORDER BY {order}")
        with progress(length, table) as bar:
            while batch := rows.fetchmany(BATCH):
                for row in batch:
                    self._one(table, take, row)
                db.session.commit()
                db.session.expunge_all()
                bar.update(len(batch))

    def _one(self, table, take, row):
        """Take in one row; one that cannot be is told and left out."""
        name = row["username" if table == "users" else "id"]
        try:
            values = {key: _text(row[key]) for key in row.keys()}  # noqa: SIM118
            made = take(**values)
        except Unavailable:
            raise
        except Failure as fault:
            self.bad += 1
            shown = name.decode(errors="replace") if isinstance(name, bytes) else name
            click.echo(f"{table} {shown!r:.80}: {fault.detail}", err=True)
        else:
            self.made[table] += made
            self.there[table] += not made

    def _user(self, id, username, password_hash, created_at):
        account = _loaded(UserRow(), {"username": username, "created_at": created_at})
        if account["username"] != username:
            raise adopting.Bad("username: has white space around it, which no name here has")
        user = User.named(username)
        made = user is None
        if made:
            if not BCRYPT.fullmatch(str(password_hash)):
                raise adopting.Bad("password_hash: no bcrypt hash that a login can check")
            user = User.add(username, password_hash, self.role)
            user.created_at = account["created_at"] or user.created_at
            db.session.flush()
            if user.role != self.role:
                click.echo(f"{username} is {user.role}, as the first account of all is.")
        self.people[id] = user.id
        return made

    def _key(self, id, user_id, key_hash, **values):
        if not (KEY_ID.fullmatch(str(id)) and KEY_HASH.fullmatch(str(key_hash))):
            raise adopting.Bad("id or key_hash: not such as upstream makes")
        if user_id not in self.people:
            raise adopting.Bad("user_id: belongs to no account that was taken in")
        known = db.session.get(ApiKey, id)
        if known is None:
            write(PEOPLE)
            known = db.session.get(ApiKey, id)
        if known is not None:
            if (known.user_id, known.key_hash) != (self.people[user_id], key_hash):
                raise adopting.Bad("id: is here already, as another key")
            return False
        if db.session.scalar(select(exists().where(ApiKey.key_hash == key_hash))):
            raise adopting.Bad("key_hash: is here already, as another key")
        key = _loaded(KeyRow(), {**values, "labels": _labels(values["labels"])})
        db.session.add(ApiKey(id=id, user_id=self.people[user_id], key_hash=key_hash, **key))
        db.session.flush()
        return True

    def _unit(self, data, **columns):
        """The columns win over what the JSON says, as they do upstream."""
        try:
            told = wire.parse_json(str(data).encode())
        except ValidationError:
            raise adopting.Bad("data: is not JSON") from None
        if not isinstance(told, dict):
            raise adopting.Bad("data: is no knowledge unit")
        columns["tier"] = TIERS.get(columns["tier"], columns["tier"])
        return adopting.adopt(adopting.load({**told, **columns}), trust=True)

    def end(self):
        for table, what in (
            ("users", "accounts"),
            ("api_keys", "API keys"),
            ("knowledge_units", "units"),
        ):
            click.echo(f"{self.made[table]} new {what}, {self.there[table]} were here already.")
        if self.made["api_keys"]:
            click.echo(
                "The keys work where CQ_API_KEY_PEPPER or CQ_API_KEY_PEPPERS_OLD has upstream's."
            )
        if self.bad:
            raise Refused(f"{self.bad} rows could not be taken in; see above.")


class UserRow(wire.Wire):
    username = schemas.Username(required=True)
    created_at = shape.Moment(load_default=None, allow_none=True)


class KeyRow(wire.Wire):
    """What else a key's row has."""

    name = wire.Text(64, required=True)
    labels = wire.Tags(load_default=list)
    key_prefix = wire.Text(8, required=True)
    ttl = wire.Text(16, required=True)
    expires_at = shape.Moment(required=True)
    created_at = shape.Moment(required=True)
    last_used_at = shape.Moment(allow_none=True)
    revoked_at = shape.Moment(allow_none=True)


def _labels(text):
    """A key without its labels is better than no key."""
    try:
        labels = wire.parse_json((text or "[]").encode())
    except ValidationError:
        return []
    labels = labels if isinstance(labels, list) else []
    return [label[: unit.TAG] for label in labels if isinstance(label, str)][: unit.TAGS]


def _loaded(schema, values):
    try:
        return schema.load(values)
    except ValidationError as fault:
        raise adopting.Bad(adopting.told(fault)) from None


def _text(value):
    """SQLite keeps any bytes as text."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise adopting.Bad("is not UTF-8 text") from None
