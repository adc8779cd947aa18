"""A light load on an HTTP server: prebuilt requests, kept-alive sockets, one thread a client."""

import gc
import socket
import threading
import time
from statistics import median, quantiles
from typing import NamedTuple

HOST = "127.0.0.1"
PATIENCE = 30
# So many turns make a figure.
TURNS = 4


class Unanswered(Exception):
    """An answer that is no 2xx, or none at all. What was measured beside it counts for nothing."""


class Run(NamedTuple):
    """The milliseconds that each request took, and the seconds that all of them lasted."""

    took: list
    lasted: float

    @property
    def rate(self):
        """Requests a second."""
        return len(self.took) / self.lasted

    def within(self, percent):
        """The milliseconds that so many of a hundred requests stayed under."""
        return quantiles(self.took, n=100, method="inclusive")[percent - 1]


class Row(NamedTuple):
    """What was measured over how many units; its figure as a part of that of something else."""

    size: int
    clients: int
    what: str
    run: Run
    ratio: float | None = None


def together(runs):
    """One run that stands for them all."""
    runs = list(runs)
    return Run([each for run in runs for each in run.took], sum(run.lasted for run in runs))


def in_turns(it, bar, part, bars=()):
    """(runs of `it`, runs of `bar`, median of the parts).

    Machines drift: each run of `it` is compared with the two of `bar` right before and after, by
    `part`. The last of earlier `bars` serves as the first.
    """
    runs, bars, parts = [], list(bars) or [bar()], []
    for _ in range(TURNS):
        runs.append(it())
        bars.append(bar())
        parts.append(part(runs[-1], *bars[-2:]))
    return runs, bars, median(parts)


def request(method, path, token=None, body=b""):
    """The bytes of a request below /api/v1; a body is JSON."""
    lines = [f"{method} /api/v1{path} HTTP/1.1", f"Host: {HOST}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    elif method == "POST":
        lines.append("Content-Length: 0")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def run(port, streams, seconds, needed=b""):
    """Let one client for each of the endless `streams` of requests ask for so many seconds.

    Only whole 2xx answers count whose head has what is `needed`. Raises Unanswered at the first
    other one.
    """
    start = threading.Barrier(len(streams) + 1)
    stop = threading.Event()
    kept, failures = [[] for _ in streams], []

    def client(stream, took):
        try:
            with socket.create_connection((HOST, port), PATIENCE) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                start.wait(PATIENCE)
                end = time.perf_counter() + seconds
                for request in stream:
                    asked = time.perf_counter()
                    if asked > end or stop.is_set():
                        break
                    connection.sendall(request)
                    take(connection, needed)
                    took.append(time.perf_counter() - asked)
        except (OSError, Unanswered, threading.BrokenBarrierError) as fault:
            failures.append(fault)
            stop.set()
            start.abort()

    threads = [
        threading.Thread(target=client, args=pair) for pair in zip(streams, kept, strict=True)
    ]
    gc.disable()
    try:
        for thread in threads:
            thread.start()
        try:
            start.wait(PATIENCE)
        except threading.BrokenBarrierError:
            stop.set()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        lasted = time.perf_counter() - began
    finally:
        stop.set()
        gc.enable()
    if failures:
        raise Unanswered(f"{failures[0]}")
    took = [1000 * each for client in kept for each in client]
    if len(took) < 2:
        raise Unanswered(f"{len(took)} answers in {seconds} s are too few to measure")
    return Run(took, lasted)


def ask(port, request, needed=b""):
    """The body of the answer to one request, as for `run`. Raises Unanswered."""
    try:
        with socket.create_connection((HOST, port), PATIENCE) as connection:
            connection.sendall(request)
            return take(connection, needed)
    except OSError as fault:
        raise Unanswered(f"{fault}") from None


def take(connection, needed=b""):
    """The body of one whole answer. Raises Unanswered if it is no 2xx or its head is not right."""
    head = _some(connection)
    while (end := head.find(b"\r\n\r\n")) < 0:
        head += _some(connection)
    place = head.find(b"Content-Length: ", 0, end)
    if place < 0:
        raise Unanswered(f"an answer without Content-Length: {_line(head)}")
    body = head[end + 4 :]
    missing = int(head[place + 16 : head.find(b"\r", place)]) - len(body)
    while missing > 0:
        more = _some(connection)
        missing -= len(more)
        body += more
    if not head.startswith(b"HTTP/1.1 2"):
        raise Unanswered(f"{_line(head)}: {body[:500].decode(errors='replace')}")
    if needed not in head[:end]:
        raise Unanswered(f"an answer without {needed.decode()}")
    return body


def _some(connection):
    data = connection.recv(65536)
    if not data:
        raise Unanswered("the server closed the connection")
    return data


def _line(head):
    return head.partition(b"\r\n")[0].decode(errors="replace")
