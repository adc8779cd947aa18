"""What an SQLite store keeps beside units: held candidates, notes, and the right to drain."""

import json
import os
from contextlib import contextmanager

from cq import record
from cq.store.failures import Busy, Missing


class Aside:
    """The part of a store that upstream's programs do not see."""

    def hold(self, unit, why):
        """Keep a candidate, with a reason, apart from the units."""
        unit = record.complete(unit)
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO cq_held (id, data, why, at) VALUES (?, ?, ?, ?)",
                (unit["id"], json.dumps(unit, ensure_ascii=False), why, record.now()),
            )

    def held(self):
        """[(unit, why, at)], oldest first."""
        with self._reading() as connection:
            rows = connection.execute("SELECT data, why, at FROM cq_held ORDER BY at, rowid")
            return [(record.complete(json.loads(data)), why, at) for data, why, at in rows]

    def release(self, id):
        with self._writing() as connection:
            if not connection.execute("DELETE FROM cq_held WHERE id = ?", (id,)).rowcount:
                raise Missing(f"{id} is not held")

    def note(self, key, value):
        """Remember a value of JSON under a key."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO cq_notes (key, value) VALUES (?, ?)",
                (key, json.dumps(value)),
            )

    def noted(self, key):
        """That value, or None."""
        with self._reading() as connection:
            statement = "SELECT value FROM cq_notes WHERE key = ?"
            row = connection.execute(statement, (key,)).fetchone()
            return None if row is None else json.loads(row[0])

    @contextmanager
    def draining(self):
        """Hold the right to drain, which ends with the process whatever ends it. Raises Busy."""
        path = self._path.with_name(f"{self._path.name}.drain")
        with self._told():
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                _lock(file)
            except OSError:
                raise Busy("another process drains this store; it will be done soon") from None
            yield
        finally:
            os.close(file)


def _lock(file):
    """Lock an open file until it is closed. Raises OSError if another process has it."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
