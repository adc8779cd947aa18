"""What clients were told was done: one JSON line each, appended once the 2xx has come.

Knows nothing of the server. An entry that is not `sure` is of a call whose answer was lost and
whose repeat came too late to tell: it may have been done.
"""

import json
import threading
from collections import Counter


class Ledger:
    def __init__(self, path):
        self._file = path.open("w", buffering=1)
        self._lock = threading.Lock()
        self.written = 0
        self.done = Counter()
        self.repeated = Counter()
        self.refused = Counter()
        self.busy = Counter()
        self.maybe = Counter()
        self.faults = []

    def add(self, did, sure=True, **entry):
        with self._lock:
            self._file.write(json.dumps({"did": did, "sure": sure, **entry}) + "\n")
            self.written += 1
            (self.done if sure else self.maybe)[did] += 1

    def count(self, counter, did):
        with self._lock:
            counter[did] += 1

    def fault(self, text):
        """Something that must never happen."""
        with self._lock:
            self.faults.append(text)

    def close(self):
        self._file.close()


def read(path):
    """All entries, in the order of their answers."""
    with path.open() as file:
        return [json.loads(line) for line in file]
