"""How often somebody may call: fixed windows counted in this process.

The rules and strategies are those of `limits`; its own storage in memory starts a thread every ten
milliseconds under load, so the counters stand here.
"""

import threading
import time

from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

KEPT = 100_000


class Counters(Storage):
    """(count, end of window) by key, by a clock that nobody sets; ended ones go in the end."""

    STORAGE_SCHEME = None
    base_exceptions = ()

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.windows = {}

    def incr(self, key, expiry, amount=1):
        now = time.monotonic()
        with self.lock:
            count, end = self.windows.get(key, (0, 0))
            if end <= now:
                count, end = 0, now + expiry
            self.windows[key] = count + amount, end
            if len(self.windows) > KEPT:
                # Ended ones go; if all go on, those that began first.
                going = {name: each for name, each in self.windows.items() if each[1] > now}
                self.windows = dict(list(going.items())[-KEPT // 2 :])
            return count + amount

    def get(self, key):
        count, end = self.windows.get(key, (0, 0))
        return count if end > time.monotonic() else 0

    def get_expiry(self, key):
        return self.windows.get(key, (0, time.monotonic()))[1]

    def check(self):
        return True

    def reset(self):
        with self.lock:
            self.windows = {}

    def clear(self, key):
        with self.lock:
            self.windows.pop(key, None)


class Rates:
    """Whether another call fits a rate such as 10/minute, by any key of strings."""

    def __init__(self):
        self.limiter = FixedWindowRateLimiter(Counters())

    def hit(self, rate, *key):
        """Count one; False if it is one too many."""
        return self.limiter.hit(rate, *key)

    def full(self, rate, *key):
        return not self.limiter.test(rate, *key)

    def wait(self, rate, *key):
        """Whole seconds until the window ends."""
        end = self.limiter.get_window_stats(rate, *key).reset_time
        return max(1, int(end - time.monotonic()) + 1)
