"""A server that is killed and started again, and how much memory each of its lives takes."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60
# Seconds of a life in which the process is still growing into its work.
WARM = 5


class Life(NamedTuple):
    """Seconds until it listened, seconds that it lasted, and (second, MB) samples of its memory."""

    start: float
    lasted: float
    samples: list

    @property
    def slope(self):
        """MiB a minute by least squares, once it was warm; None for too few samples."""
        rows = [(at, size) for at, size in self.samples if at >= WARM]
        if len(rows) < 2:
            return None
        middle = sum(at for at, _ in rows) / len(rows)
        size = sum(size for _, size in rows) / len(rows)
        over = sum((at - middle) * (each - size) for at, each in rows)
        return 60 * over / sum((at - middle) ** 2 for at, _ in rows)


class Node:
    """`python app.py` with these variables and no others, on a port of its own in each life."""

    def __init__(self, folder, environ):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        self.environ = {**kept, "CQ_PORT": "0", "CQ_LOG_LEVEL": "WARNING", **environ}
        self.log = folder / "server.log"
        self.port = None
        self.lives = []
        self._process = None

    def start(self):
        self._began = time.monotonic()
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "app.py"],
                cwd=ROOT,
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        for line in self._process.stdout:
            if line.startswith("cq listens on "):
                self.port = int(line.rsplit(":", 1)[1])
                break
        else:
            self._process.stdout.close()
            self._process.wait(PATIENCE)
            raise RuntimeError(f"The server does not start: {self.log.read_text()[-2000:]}")
        self._listened = time.monotonic()
        self._samples = []
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def _sample(self):
        while not self._over.wait(1):
            try:
                status = Path(f"/proc/{self._process.pid}/status").read_text()
            except OSError:
                return
            size = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
            if size:
                self._samples.append((time.monotonic() - self._listened, int(size[0]) / 1024))

    def kill(self):
        """End it as a loss of power does, whatever it is about to do."""
        self._end(self._process.kill)

    def stop(self):
        """End it as an operator does; nothing if it does not run."""
        if self._process is not None and self._process.poll() is None:
            self._end(self._process.terminate)

    def _end(self, how):
        self.port = None
        how()
        self._process.wait(PATIENCE)
        self._over.set()
        self._sampler.join()
        self._process.stdout.close()
        now = time.monotonic()
        life = Life(self._listened - self._began, now - self._listened, self._samples)
        self.lives.append(life)

    def age(self):
        """Seconds since it listened."""
        return time.monotonic() - self._listened

    def runs(self):
        return self._process.poll() is None

    def flask(self, *command, typed=""):
        """Run an operator's command on the same database. Raises RuntimeError if it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "flask", "--app", "app", *map(str, command)],
            cwd=ROOT,
            env=self.environ,
            input=typed,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"flask {command[0]}: {done.stderr.strip()}")
        return done.stdout
