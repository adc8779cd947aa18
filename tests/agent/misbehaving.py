"""A node that misbehaves on order: a listening server whose answers are bytes of the test's choice."""

import contextlib
import json
import re
import socket
import ssl
import struct
import threading
import time

# A certificate of 127.0.0.1 and localhost that signs itself, and its key, which protects nothing.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0/OMeNOrP486B6/m
FaEnEdUFcvH3MOnzvsitZf/KwcShRANCAASwFTTAuR9H5ZGvIRT0hOAzVvYNb6KA
qCf8X4xdXISP5x075w65EHETEmU95GNZK/9DNb5s8/mKvdCIn8uVetq8
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUbTA+Ha5aKeg2oASiW+3ocSR7Qp0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTIwMTAxNDYyOFoYDzIxMjYxMTA3
MDE0NjI4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASwFTTAuR9H5ZGvIRT0hOAzVvYNb6KAqCf8X4xdXISP5x075w65EHET
EmU95GNZK/9DNb5s8/mKvdCIn8uVetq8o28wbTAdBgNVHQ4EFgQUFegRVhQPXeKJ
cw5ZzLCuds5jiTMwHwYDVR0jBBgwFoAUFegRVhQPXeKJcw5ZzLCuds5jiTMwGgYD
VR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
zj0EAwIDSAAwRQIhAL/P1NoK6C58SFWDZuCHUc4eZLP0I/hIM/yoGX6TqhNwAiAg
rqqw0quNkXZLe7Id40O30WjnvC0VaOxPx69ZRIBuBw==
-----END CERTIFICATE-----
"""
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
    """Answers the question where the API is with `probe`, all else with `usual`: bytes, or what makes
    them of the node. `seen` are the requests' heads, `bodies` their bodies.

    `tls` is a file with CERTIFICATE: it speaks https then.
    """

    def __init__(self, usual, probe=None, tls=None):
        self.usual, self.probe = usual, http(404) if probe is None else probe
        self.seen, self.bodies, self.ended = [], [], threading.Event()
        self.line = socket.create_server(("127.0.0.1", 0))
        self.port = self.line.getsockname()[1]
        self.addr = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
        if tls:
            self.secured.load_cert_chain(tls)
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
                if self.secured:
                    connection = self.secured.wrap_socket(connection, server_side=True)
                with connection:
                    self._answer(connection)
            except OSError:
                return

    def _answer(self, connection):
        raw = b""
        while b"\r\n\r\n" not in raw:
            got = connection.recv(65536)
            if not got:
                return
            raw += got
        head, _, body = raw.partition(b"\r\n\r\n")
        head = head.decode("latin-1")
        length = re.search(r"(?i)\r\ncontent-length: (\d+)", head)
        while length and len(body) < int(length[1]):
            got = connection.recv(65536)
            if not got:
                return
            body += got
        self.seen.append(f"{head}\r\n\r\n")
        self.bodies.append(body)
        answer = self.probe if DISCOVERY in head.split("\r\n")[0] else self.usual
        self._send(connection, answer(self) if callable(answer) else answer)

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
        # Closing alone would let the accept that waits have one more.
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)
        self.line.close()
        self._accepting.join(5)
        for thread in self.threads:
            thread.join(5)
