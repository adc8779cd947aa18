"""The store in PostgreSQL, in upstream's tables, for machines that share one. Needs psycopg."""

import sys
import threading
from contextlib import contextmanager

import psycopg
from psycopg.types.json import Jsonb

from cq import VERSION, record
from cq.store.base import Closing, Found, bounds, clean, ranked, statistics
from cq.store.failures import Busy, Closed, Duplicate, Missing, StoreError, Unusable
from cq.store.text import words

WRITER = f"cq/{VERSION} postgres python/{sys.version.split()[0]}"
# Two that open it first at once would make the tables twice; and one drains.
OPENING, DRAINING = 0x6371_0001, 0x6371_0002
TABLES = """
CREATE TABLE IF NOT EXISTS knowledge_units (
    id TEXT PRIMARY KEY, rowid BIGINT GENERATED ALWAYS AS IDENTITY, data JSONB NOT NULL);
CREATE TABLE IF NOT EXISTS knowledge_unit_domains (
    unit_id TEXT NOT NULL REFERENCES knowledge_units(id) ON DELETE CASCADE, domain TEXT NOT NULL,
    PRIMARY KEY (unit_id, domain));
CREATE INDEX IF NOT EXISTS idx_domains_domain ON knowledge_unit_domains(domain);
CREATE TABLE IF NOT EXISTS metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cq_held (
    id TEXT PRIMARY KEY, place BIGINT GENERATED ALWAYS AS IDENTITY, data JSONB NOT NULL,
    why TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cq_notes (key TEXT PRIMARY KEY, value JSONB NOT NULL);
"""
CANDIDATES, MOST_WORDS = 300, 50
BY_DOMAIN = """
    SELECT u.id, u.data FROM (
        SELECT unit_id, count(*) AS shared FROM knowledge_unit_domains
        WHERE domain = ANY(%s) GROUP BY unit_id
    ) d JOIN knowledge_units u ON u.id = d.unit_id ORDER BY d.shared DESC, u.rowid DESC LIMIT %s
"""
SAID = """to_tsvector('simple', concat_ws(' ',
    data #>> '{insight,summary}', data #>> '{insight,detail}', data #>> '{insight,action}'))"""
BY_WORDS = f"""
    SELECT id, data FROM knowledge_units, to_tsquery('simple', %s) asked WHERE {SAID} @@ asked
    ORDER BY ts_rank({SAID}, asked) DESC, rowid DESC LIMIT %s
"""


class PostgresStore(Closing):
    """One connection, one lock; connected anew after it broke. Safe across threads."""

    def __init__(self, url):
        self._url = url
        self._lock = threading.RLock()
        self._closed = False
        self._connection = None
        with self._reading() as connection:
            self.name = f"PostgreSQL at {connection.info.host}, {connection.info.dbname}"

    def close(self):
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    @contextmanager
    def _reading(self):
        """A connection, one transaction. What the driver raises is told without the password."""
        with self._lock:
            if self._closed:
                raise Closed("the store is closed")
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(self._url, autocommit=True)
                    with self._connection.transaction():
                        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [OPENING])
                        self._connection.execute(TABLES)
                with self._connection.transaction():
                    yield self._connection
            except psycopg.Error as fault:
                what = type(fault).__name__
                raise Unusable(
                    f"the store in PostgreSQL cannot be used ({what}): is CQ_LOCAL_DATABASE_URL "
                    "right, and the server running?"
                ) from fault

    @contextmanager
    def _writing(self):
        with self._reading() as connection:
            yield connection
            for pair in (("last_writer", WRITER), ("last_write_at", record.now())):
                connection.execute(
                    "INSERT INTO metadata (key, value) VALUES (%s, %s)"
                    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    pair,
                )

    def get(self, id):
        """The unit, or None. Raises StoreError if what is stored is none."""
        with self._reading() as connection:
            return self._one(connection, "SELECT data FROM knowledge_units WHERE id = %s", id)

    def _one(self, connection, statement, id):
        row = connection.execute(statement, [id]).fetchone()
        try:
            return row and record.complete(row[0])
        except ValueError as fault:
            raise StoreError(f"the row of {id} cannot be read: {fault}") from None

    def all(self):
        """Every unit in order of insertion; rows that cannot be read are left out."""
        with self._reading() as connection:
            rows = connection.execute("SELECT id, data FROM knowledge_units ORDER BY rowid")
            return _read(rows.fetchall(), [])

    def add(self, unit):
        self.add_all([unit])

    def add_all(self, units):
        """Add these in one transaction: all, or none. Raises Duplicate."""
        units = [clean(unit) for unit in units]
        with self._writing() as connection:
            for unit in units:
                done = connection.execute(
                    "INSERT INTO knowledge_units (id, data) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    [unit["id"], Jsonb(unit)],
                )
                if not done.rowcount:
                    raise Duplicate(f"{unit['id']} is there already")
                self._tag(connection, unit)

    def _tag(self, connection, unit):
        connection.execute("DELETE FROM knowledge_unit_domains WHERE unit_id = %s", [unit["id"]])
        for domain in unit["domains"]:
            connection.execute(
                "INSERT INTO knowledge_unit_domains (unit_id, domain) VALUES (%s, %s)",
                [unit["id"], domain],
            )

    def update(self, unit):
        """Put the unit in the place of the one of its id. Raises Missing."""
        self.change(unit["id"], lambda _: unit)

    def change(self, id, function):
        """The unit as `function` makes it of what it was, in one transaction. Raises Missing."""
        with self._writing() as connection:
            locked = "SELECT data FROM knowledge_units WHERE id = %s FOR UPDATE"
            before = self._one(connection, locked, id)
            if before is None:
                raise Missing(f"{id} is not in this store")
            unit = clean(function(before))
            connection.execute(
                "UPDATE knowledge_units SET data = %s WHERE id = %s", [Jsonb(unit), id]
            )
            self._tag(connection, unit)
            return unit

    def delete(self, id):
        self._drop("DELETE FROM knowledge_units WHERE id = %s", id, "is not in this store")

    def _drop(self, statement, id, told):
        with self._writing() as connection:
            if not connection.execute(statement, [id]).rowcount:
                raise Missing(f"{id} {told}")

    def find(self, asked, question="", limit=5):
        """`Found`: units by tags, and by the words of a question; see `base.ranked`."""
        limit, warnings = bounds(asked, limit), []
        wanted = " | ".join(f"'{word}'" for word in words(question)[:20])
        with self._reading() as connection:
            rows = {}
            if asked.domains:
                tags = [list(asked.domains), max(CANDIDATES, limit)]
                rows = dict(connection.execute(BY_DOMAIN, tags).fetchall())
            by_words = []
            if wanted:
                found = connection.execute(BY_WORDS, [wanted, MOST_WORDS]).fetchall()
                by_words = [id for id, _ in found]
                rows |= dict(found)
        return Found(ranked(_read(rows.items(), warnings), asked, limit, by_words), warnings)

    def stats(self, recent=5):
        """The statistics of the store as JSON; `recent` units, newest first."""
        if recent < 0:
            raise ValueError("recent must not be negative")
        warnings = []
        with self._reading() as connection:
            rows = connection.execute("SELECT id, data FROM knowledge_units ORDER BY rowid DESC")
            units = _read(rows.fetchall(), warnings)
            domains = connection.execute(
                "SELECT domain, count(*) FROM knowledge_unit_domains GROUP BY domain"
            ).fetchall()
        confidences = [unit["evidence"]["confidence"] for unit in units]
        told = statistics(len(units), domains, units[:recent], confidences)
        return {**told, "warnings": warnings}

    def hold(self, unit, why):
        """Keep a candidate, with a reason, apart from the units."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO cq_held (id, data, why, at) VALUES (%s, %s, %s, %s) ON CONFLICT (id)"
                " DO UPDATE SET data = excluded.data, why = excluded.why, at = excluded.at",
                [unit["id"], Jsonb(record.complete(unit)), why, record.now()],
            )

    def held(self):
        """[(unit, why, at)], oldest first."""
        with self._reading() as connection:
            rows = connection.execute("SELECT data, why, at FROM cq_held ORDER BY at, place")
            return [(record.complete(data), why, at) for data, why, at in rows.fetchall()]

    def release(self, id):
        self._drop("DELETE FROM cq_held WHERE id = %s", id, "is not held")

    def note(self, key, value):
        """Remember a value of JSON under a key."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO cq_notes (key, value) VALUES (%s, %s)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [key, Jsonb(value)],
            )

    def noted(self, key):
        """That value, or None."""
        with self._reading() as connection:
            row = connection.execute("SELECT value FROM cq_notes WHERE key = %s", [key]).fetchone()
            return row and row[0]

    @contextmanager
    def draining(self):
        """Hold the right to drain, which ends with the connection. Raises Busy."""
        with self._reading():
            own = psycopg.connect(self._url, autocommit=True)
            (took,) = own.execute("SELECT pg_try_advisory_lock(%s)", [DRAINING]).fetchone()
        try:
            if not took:
                raise Busy("another process drains this store; it will be done soon")
            yield
        finally:
            own.close()


def _read(rows, warnings):
    units = []
    for id, data in rows:
        try:
            units.append(record.complete(data))
        except (ValueError, TypeError) as fault:
            warnings.append(f"the row of {id} cannot be read: {fault}")
    return units
