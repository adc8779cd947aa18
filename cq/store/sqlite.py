"""The store in an SQLite file, in upstream's tables, so that its SDKs go on working on it.

Whatever they wrote is read. Tables of ours, which they do not see, begin with `cq_`.
"""

import json
import os
import sqlite3
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from cq import VERSION, record
from cq.store.aside import Aside
from cq.store.base import Closing, Found, bounds, clean, ranked, statistics
from cq.store.failures import Closed, Duplicate, Missing, StoreError, Unusable
from cq.store.text import expression, words

# Seconds that a writer waits for another process.
PATIENCE = 5
WRITER = f"cq/{VERSION} python/{sys.version.split()[0]}"
TABLES = """
CREATE TABLE IF NOT EXISTS knowledge_units (id TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS knowledge_unit_domains (
    unit_id TEXT NOT NULL, domain TEXT NOT NULL, PRIMARY KEY (unit_id, domain),
    FOREIGN KEY (unit_id) REFERENCES knowledge_units(id) ON DELETE CASCADE);
CREATE INDEX IF NOT EXISTS idx_domains_domain ON knowledge_unit_domains(domain);
CREATE VIRTUAL TABLE IF NOT EXISTS knowledge_units_fts USING fts5(
    id UNINDEXED, summary, detail, action);
CREATE TABLE IF NOT EXISTS metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cq_held (
    id TEXT PRIMARY KEY, data TEXT NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cq_notes (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
# A full text that has not one row a unit is made anew; a unit that cannot be read has an empty one.
FILL = """
DELETE FROM knowledge_units_fts;
INSERT INTO knowledge_units_fts (rowid, id, summary, detail, action)
    SELECT rowid, id, said ->> '$.summary', said ->> '$.detail', said ->> '$.action' FROM (
        SELECT rowid, id, CASE WHEN json_valid(data) THEN data -> '$.insight' END AS said
        FROM knowledge_units);
"""
# The second table is the full text's own, and counts it without reading it.
FULL = """SELECT (SELECT count(*) FROM knowledge_units) =
    (SELECT count(*) FROM knowledge_units_fts_docsize)"""
OURS = "SELECT count(*) FROM sqlite_master WHERE name IN ('knowledge_units_fts', 'cq_notes')"
FTS = "INSERT INTO knowledge_units_fts (rowid, id, summary, detail, action) VALUES (?, ?, ?, ?, ?)"
DOMAINS = "INSERT OR IGNORE INTO knowledge_unit_domains (unit_id, domain) VALUES (?, ?)"
# Codes of a file, or of its side files, that this process cannot write or make.
UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
# More ids than this in one statement some builds of SQLite refuse.
AT_ONCE = 500
# So many units are ranked: those that share the most tags, the newest first.
CANDIDATES = 300
# So many are found by the words of a question.
MOST_WORDS = 50
BY_DOMAIN = """
    SELECT u.id, u.data FROM (
        SELECT unit_id, count(*) AS shared FROM knowledge_unit_domains
        WHERE domain IN ({marks}) GROUP BY unit_id
    ) d JOIN knowledge_units u ON u.id = d.unit_id ORDER BY d.shared DESC, u.rowid DESC LIMIT {most}
"""
BY_WORDS = (
    "SELECT id FROM knowledge_units_fts WHERE knowledge_units_fts MATCH ? ORDER BY rank LIMIT ?"
)


class SqliteStore(Closing, Aside):
    """One connection, one lock. Safe across threads, and across processes by the file's locks."""

    def __init__(self, path):
        self.name = str(path)
        self._path = Path(path)
        self._lock = threading.RLock()
        with self._told():
            self._connection = self._connect()

    def close(self):
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connect(self):
        # Another process may be at its first opening too.
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._path.exists():
            # Nobody else's to read from its first byte on.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            return self._prepared(self._path)
        except sqlite3.OperationalError as fault:
            file = self._path.resolve()
            wal = file.with_name(f"{file.name}-wal")
            pending = wal.exists() and wal.stat().st_size
            if fault.sqlite_errorcode & 0xFF not in UNWRITABLE or pending:
                raise
            # As on read-only media: where WAL's side files cannot be made, nobody writes.
            return self._prepared(f"{file.as_uri()}?mode=ro&immutable=1", fixed=True)

    def _prepared(self, where, fixed=False):
        """A connection; `where` is a URI of a file that is `fixed`, else a path."""
        connection = sqlite3.connect(
            where, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=fixed
        )
        try:
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA synchronous=NORMAL")
            if fixed:
                connection.execute("SELECT 1 FROM knowledge_units LIMIT 1")
                return connection
            if connection.execute(OURS).fetchone() != (2,):
                _patiently(connection, "PRAGMA journal_mode=WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {TABLES} COMMIT;")
            if connection.execute(FULL).fetchone() == (False,):
                connection.executescript(f"BEGIN IMMEDIATE; {FILL} COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _told(self):
        """Failures of the database and of the file, as what somebody can mend."""
        try:
            yield
        except sqlite3.Error as fault:
            raise Unusable(f"the store {self._path} cannot be used: {fault}") from fault
        except OSError as fault:
            what = fault.strerror or fault
            raise Unusable(
                f"the store {self._path} cannot be used: {what}; CQ_LOCAL_DB_PATH sets another"
            ) from fault

    @contextmanager
    def _reading(self):
        with self._lock, self._told():
            if self._connection is None:
                raise Closed("the store is closed")
            yield self._connection

    @contextmanager
    def _writing(self):
        """A transaction that has the right to write from its start on."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.executemany(
                    "INSERT OR REPLACE INTO metadata (key, value) VALUES (?, ?)",
                    [("last_writer", WRITER), ("last_write_at", record.now())],
                )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def get(self, id):
        """The unit, or None. Raises StoreError if what is stored is none."""
        with self._reading() as connection:
            return self._one(connection, id)

    def _one(self, connection, id):
        statement = "SELECT data FROM knowledge_units WHERE id = ?"
        row = connection.execute(statement, (id,)).fetchone()
        if row is None:
            return None
        try:
            return record.complete(json.loads(row[0]))
        except ValueError as fault:
            raise StoreError(f"the row of {id} cannot be read: {fault}") from None

    def all(self):
        """Every unit in order of insertion; rows that cannot be read are left out."""
        with self._reading() as connection:
            rows = connection.execute("SELECT id, data FROM knowledge_units ORDER BY rowid")
            return _read(rows, [])

    def add(self, unit):
        self.add_all([unit])

    def add_all(self, units):
        """Add these in one transaction: all, or none. Raises Duplicate."""
        units = [clean(unit) for unit in units]
        with self._writing() as connection:
            for unit in units:
                try:
                    added = connection.execute(
                        "INSERT INTO knowledge_units (id, data) VALUES (?, ?)",
                        (unit["id"], _json(unit)),
                    )
                except sqlite3.IntegrityError:
                    raise Duplicate(f"{unit['id']} is there already") from None
                self._index(connection, unit, added.lastrowid)

    def _index(self, connection, unit, rowid):
        insight = unit["insight"]
        connection.executemany(DOMAINS, [(unit["id"], domain) for domain in unit["domains"]])
        said = (unit["id"], insight["summary"], insight["detail"], insight["action"])
        taken = "SELECT 1 FROM knowledge_units_fts WHERE rowid = ?"
        # Upstream's rows have numbers of their own.
        free = connection.execute(taken, (rowid,)).fetchone() is None
        connection.execute(FTS, (rowid if free else None, *said))

    def _unindex(self, connection, id):
        """Rows of the full text are found by number where it is ours, else by reading them all."""
        connection.execute("DELETE FROM knowledge_unit_domains WHERE unit_id = ?", (id,))
        mine = """DELETE FROM knowledge_units_fts WHERE id = :id AND rowid =
            (SELECT rowid FROM knowledge_units WHERE id = :id)"""
        if not connection.execute(mine, {"id": id}).rowcount:
            connection.execute("DELETE FROM knowledge_units_fts WHERE id = ?", (id,))

    def update(self, unit):
        """Put the unit in the place of the one of its id. Raises Missing."""
        self.change(unit["id"], lambda _: unit)

    def change(self, id, function):
        """The unit as `function` makes it of what it was, in one transaction. Raises Missing."""
        with self._writing() as connection:
            before = self._one(connection, id)
            if before is None:
                raise Missing(f"{id} is not in this store")
            unit = clean(function(before))
            connection.execute(
                "UPDATE knowledge_units SET data = ? WHERE id = ?", (_json(unit), id)
            )
            if any(unit[name] != before[name] for name in ("insight", "domains")):
                self._unindex(connection, id)
                (rowid,) = connection.execute(
                    "SELECT rowid FROM knowledge_units WHERE id = ?", (id,)
                ).fetchone()
                self._index(connection, unit, rowid)
            return unit

    def delete(self, id):
        with self._writing() as connection:
            self._unindex(connection, id)
            if not connection.execute("DELETE FROM knowledge_units WHERE id = ?", (id,)).rowcount:
                raise Missing(f"{id} is not in this store")

    def find(self, asked, question="", limit=5):
        """`Found`: units by tags, and by the words of tags or a question; see `base.ranked`.

        Raises ValueError for bounds; a row that cannot be read is a warning.
        """
        limit, warnings = bounds(asked, limit), []
        with self._reading() as connection:
            tags = expression(asked.domains)
            by_tags = self._by_words(connection, tags, limit, warnings)
            said = expression(words(question))
            by_words = self._by_words(connection, said, MOST_WORDS, warnings)
            rows = []
            if asked.domains:
                marks = ",".join("?" * len(asked.domains))
                statement = BY_DOMAIN.format(marks=marks, most=max(CANDIDATES, limit))
                rows = connection.execute(statement, asked.domains).fetchall()
            missing = list({*by_tags, *by_words} - {id for id, _ in rows})
            for start in range(0, len(missing), AT_ONCE):
                some = missing[start : start + AT_ONCE]
                marks = ",".join("?" * len(some))
                statement = f"SELECT id, data FROM knowledge_units WHERE id IN ({marks})"
                rows += connection.execute(statement, some).fetchall()
        return Found(ranked(_read(rows, warnings), asked, limit, by_words), warnings)

    def _by_words(self, connection, asked, limit, warnings):
        """Ids by the full text; a full text that fails costs a warning, not the answer."""
        if not asked:
            return []
        try:
            return [id for (id,) in connection.execute(BY_WORDS, (asked, limit))]
        except sqlite3.Error as fault:
            warnings.append(f"the full text of the local store failed ({fault}): by tags only")
            return []

    def stats(self, recent=5):
        """The statistics of the store as JSON; `recent` units, newest first."""
        if recent < 0:
            raise ValueError("recent must not be negative")
        warnings = []
        with self._reading() as connection:
            rows = connection.execute("SELECT id, data FROM knowledge_units ORDER BY rowid DESC")
            units = _read(rows, warnings)
            counted = "SELECT domain, count(*) FROM knowledge_unit_domains GROUP BY domain"
            domains = connection.execute(counted).fetchall()
        confidences = [unit["evidence"]["confidence"] for unit in units]
        return {
            **statistics(len(units), domains, units[:recent], confidences),
            "warnings": warnings,
        }


def _patiently(connection, statement):
    """Changing to WAL does not wait for others by itself."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as fault:
            if "locked" not in str(fault) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _read(rows, warnings):
    units = []
    for id, data in rows:
        try:
            units.append(record.complete(json.loads(data)))
        except (ValueError, TypeError, RecursionError) as fault:
            warnings.append(f"the row of {id} cannot be read: {fault}")
    return units


def _json(unit):
    return json.dumps(unit, ensure_ascii=False, separators=(",", ":"))
