"""The encoder alone, in a process of its own: what an answer by meaning is compared with.

One thread, as in the server; many texts go in batches of 8, which is what the server has before it
when 8 clients wait.
"""

import json
import os
import random
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np

import embeddings
from bench import texts
from bench.load import Run, Unanswered

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = 8


class Alone:
    """A process with this encoder and nothing else. Raises Unanswered if it ends early."""

    def __init__(self, name, log):
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bench.encoder", name],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.log = log
        said = self._answer()
        self.model, self.middles = said["model"], np.array(said["middles"], np.float32)

    def run(self, together, seconds):
        """Encode new short texts, so many at once, for so many seconds; each text counts."""
        print(together, seconds, file=self.process.stdin, flush=True)
        said = self._answer()
        self.resident = said["resident"]
        return Run(said["took"], said["lasted"])

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            why = self.log.read_text().strip().splitlines()
            raise Unanswered(f"the encoder ended: {why[-1] if why else self.process.returncode}")
        return json.loads(line)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def resident(pid="self", field="VmRSS"):
    """The memory a process holds, in MB; VmHWM is the most it ever held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def timed(encoder, fresh, together, seconds):
    """The milliseconds from giving a text to having its vector, and all seconds."""
    took, began = [], time.perf_counter()
    while (start := time.perf_counter()) < began + seconds:
        encoder.encode([next(fresh) for _ in range(together)])
        took += together * [1000 * (time.perf_counter() - start)]
    return {"took": took, "lasted": time.perf_counter() - began, "resident": resident()}


def serve(name):
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    encoder = embeddings.load(name)
    middles = encoder.encode([" ".join(words) for words in texts.TOPIC])
    print(
        json.dumps({"model": encoder.model, "middles": middles.tolist()}), file=answers, flush=True
    )
    rng, numbers = random.Random("encoder"), count(1)
    fresh = (f"{texts.question(rng)} {number}" for number in numbers)
    for line in sys.stdin:
        together, seconds = line.split()
        made = timed(encoder, fresh, int(together), float(seconds))
        print(json.dumps(made), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
