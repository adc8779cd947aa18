"""A node that misbehaves on order: a listening server whose answers are bytes of the test's choice."""

import json
import socket
import struct
import threading
import time

DISCOVERY = "/.well-known/cq-node.json"


def http(status, body=b"", kind="application/json", **headers):
    """A whole answer."""
    head = [
        f"HTTP/1.1 {status} X",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*head, "", ""]).encode() + body


def said(status, detail):
    return http(status, json.dumps({"detail": detail}).encode())


class Hang(bytes):
    """Send these bytes, and then nothing more, for as long as the server lives."""


class Reset(bytes):
    """Send these bytes, and break the connection."""


class Drip(bytes):
    """Send these bytes one by one, slowly."""


class Misbehaving:
    """Answers each request with `answers[path's start]`, else with `usual`; `seen` are the requests."""

    def __init__(self, usual, **answers):
        self.usual, self.probe = usual, answers.get("probe", http(404))
        self.seen, self.ended = [], threading.Event()
        self.line = socket.create_server(("127.0.0.1", 0))
        self.addr = f"http://127.0.0.1:{self.line.getsockname()[1]}"
        self.threads = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.line.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[connection], daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, connection):
        with connection:
            try:
                raw = b""
                while b"\r\n\r\n" not in raw:
                    got = connection.recv(65536)
                    if not got:
                        return
                    raw += got
                head = raw.decode("latin-1")
                self.seen.append(head)
                answer = self.probe if DISCOVERY in head.split("\r\n")[0] else self.usual
                self._send(connection, answer(self) if callable(answer) else answer)
            except OSError:
                return

    def _send(self, connection, answer):
        if isinstance(answer, Drip):
            for byte in answer:
                connection.sendall(bytes([byte]))
                if self.ended.wait(0.1):
                    return
            return
        connection.sendall(answer)
        if isinstance(answer, Hang):
            self.ended.wait(60)
        if isinstance(answer, Reset):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        # What the client still sends is read, or the kernel would break the connection.
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(1)
        end = time.monotonic() + 1
        while time.monotonic() < end and connection.recv(65536):
            pass

    def stop(self):
        self.ended.set()
        self.line.close()
        for thread in self.threads:
            thread.join(5)
