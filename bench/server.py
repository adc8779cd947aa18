"""`python app.py` as it is measured: over a database, on a free port."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from bench import load
from bench.encoder import resident

ROOT = Path(__file__).resolve().parent.parent
# Counted at every request, never reached.
RATE = "1000000/second"
PATIENCE = 600
# A process that takes less than this part of a processor has nothing to do.
IDLE = 0.05


class Server:
    """A server with its defaults in all that costs time. `Unanswered` if it does not start."""

    def __init__(self, path, embedder="off", **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        asked = {
            "CQ_DB_PATH": str(path),
            "CQ_PORT": "0",
            "CQ_READ_RATE": RATE,
            "CQ_WRITE_RATE": RATE,
            "CQ_VOTE_WINDOW": "0",
            "CQ_EMBEDDER": embedder,
            **more,
        }
        self.log = path.with_name(f"server-{embedder}.log")
        self.began = time.perf_counter()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "app.py"],
                cwd=ROOT,
                env={**kept, **asked},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        for line in self.process.stdout:
            if line.startswith("cq listens on "):
                self.port = int(line.rsplit(":", 1)[1])
                self.started = self.age()
                return
        self.stop()
        raise load.Unanswered(f"the server does not start: {self.log.read_text()[-2000:]}")

    def age(self):
        """Seconds since its process was begun."""
        return time.perf_counter() - self.began

    def resident(self, field="VmRSS"):
        """The memory it holds, in MB."""
        return resident(self.process.pid, field)

    def meaning(self):
        """Wait until queries are answered by meaning; its age then."""
        while self.age() < PATIENCE:
            said = self._ready()
            if said["search"] == "semantic":
                return self.age()
            if said["embedder"]["state"] in ("off", "failed"):
                raise load.Unanswered(f"no answers by meaning: {said['embedder']['reason']}")
            time.sleep(0.02)
        raise load.Unanswered(f"no answers by meaning within {PATIENCE} s: {said['embedder']}")

    def _ready(self):
        try:
            with urllib.request.urlopen(
                f"http://{load.HOST}:{self.port}/ready", timeout=PATIENCE
            ) as got:
                return json.load(got)
        except OSError as fault:
            raise load.Unanswered(f"/ready: {fault}") from None

    def rest(self):
        """Wait until it does nothing in the background."""
        used = self._used()
        while self.age() < PATIENCE:
            time.sleep(1)
            before, used = used, self._used()
            if used - before < IDLE:
                return
        raise load.Unanswered(f"the server is busy by itself after {PATIENCE} s")

    def _used(self):
        """Seconds of a processor that it took."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()
