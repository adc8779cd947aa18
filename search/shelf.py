"""What was made lately and can be served again: the JSON of units, and ranked answers."""

import json
import threading
from collections import OrderedDict

from models import Unit

BYTES = 32 * 1024 * 1024


class Answers:
    """Ranked answers by what was asked and the state it was asked of, the latest thousand.

    Safe across threads.
    """

    MOST = 1000

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = OrderedDict()

    def get(self, key, make):
        """The answer under this key, made if it is not there."""
        with self.lock:
            answer = self.kept.get(key)
        if answer is None:
            answer = make()
            with self.lock:
                self.kept[key] = answer
                if len(self.kept) > self.MOST:
                    self.kept.popitem(last=False)
        return answer


class Shelf:
    """JSON by row number and change, within a budget of bytes. Safe across threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = OrderedDict()
        self.bytes = 0

    def get(self, key):
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
            return self.kept.get(key)

    def put(self, key, value):
        with self.lock:
            self.bytes += len(value) - len(self.kept.pop(key, b""))
            self.kept[key] = value
            while self.bytes > BYTES:
                self.bytes -= len(self.kept.popitem(last=False)[1])

    def render(self, changes, private):
        """{row number: JSON} of approved units as agents read them, of {row number: number of its
        last change}. A unit that was taken back meanwhile is left out.
        """
        ready = {pk: self.get(key) for pk, key in zip(changes, changes.items(), strict=True)}
        missing = [pk for pk in changes if ready[pk] is None]
        for pk, unit in (Unit.numbered(missing) if missing else {}).items():
            if unit.shown(private):
                text = json.dumps(
                    unit.wire(author=False), ensure_ascii=False, separators=(",", ":")
                )
                ready[pk] = text.encode()
                self.put((pk, unit.changed), ready[pk])
        return {pk: text for pk, text in ready.items() if text is not None}
