"""One HTTP exchange within a deadline and a bound of bytes. Follows no redirect, reads no proxy.

The deadline holds for the connection, TLS, headers and every read, however slowly they drip. Only
the look-up of a host's name is the system's, and may take longer.
"""

import http.client
import socket
import ssl
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from cq import VERSION

FAULTS = 64 * 1024
DATA = 8 * 1024 * 1024
AGENT = f"cq/{VERSION}"


class Unreachable(Exception):
    """Nothing, or nothing whole, came back; `kind` is a word for it, such as refused or timeout."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class _Deadline:
    """Reads and writes of a socket end at a deadline, not some seconds after the last byte."""

    deadline = None

    def due(self):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.settimeout(left)

    def recv_into(self, *args, **kwargs):
        self.due()
        return super().recv_into(*args, **kwargs)

    def sendall(self, *args, **kwargs):
        self.due()
        return super().sendall(*args, **kwargs)


class _Plain(_Deadline, socket.socket):
    pass


class _Secured(_Deadline, ssl.SSLSocket):
    pass


def _connected(place, deadline):
    """A socket to a place of a URL, with TLS for https."""
    port = place.port or (443 if place.scheme == "https" else 80)
    fault = OSError("no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(
        place.hostname, port, type=socket.SOCK_STREAM
    ):
        line = _Plain(family, kind, protocol)
        line.deadline = deadline
        try:
            line.due()
            line.connect(address)
            if place.scheme == "https":
                context = ssl.create_default_context()
                context.sslsocket_class = _Secured
                line.due()
                line = context.wrap_socket(line, server_hostname=place.hostname)
                line.deadline = deadline
            return line
        except OSError as failed:
            line.close()
            fault = failed
            if isinstance(failed, TimeoutError | ssl.SSLError):
                break
    raise fault


def send(method, url, headers, body, deadline, limit=DATA):
    """`Answer`. `deadline` is a time of the monotonic clock. Raises Unreachable."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port)
    try:
        connection.sock = _connected(place, deadline)
        path = f"{place.path or '/'}{f'?{place.query}' if place.query else ''}"
        connection.request(
            method, path, body, {"User-Agent": AGENT, "Host": place.netloc, **headers}
        )
        answer = connection.getresponse()
        read = answer.read(limit + 1)
        if len(read) > limit:
            raise Unreachable("huge", f"the answer is longer than {limit // 1024} KiB")
        return Answer(answer.status, answer.headers, read)
    except (OSError, http.client.HTTPException, UnicodeError, ValueError) as fault:
        raise _unreachable(fault, place) from fault
    finally:
        connection.close()


def _unreachable(fault, place):
    where = place.netloc.rpartition("@")[2]
    if isinstance(fault, TimeoutError):
        return Unreachable("timeout", f"{where} did not answer in time")
    if isinstance(fault, ConnectionRefusedError):
        return Unreachable("refused", f"nothing listens at {where}")
    if isinstance(fault, socket.gaierror):
        return Unreachable("dns", f"the name {place.hostname} is not known")
    if isinstance(fault, ssl.SSLCertVerificationError):
        return Unreachable(
            "tls", f"the certificate of {where} is not valid: {fault.verify_message}"
        )
    if isinstance(fault, ssl.SSLError):
        return Unreachable("tls", f"{where} speaks no TLS that is understood ({fault.reason})")
    if isinstance(fault, http.client.IncompleteRead):
        return Unreachable("truncated", f"{where} broke off in the middle of its answer")
    if isinstance(fault, http.client.RemoteDisconnected | ConnectionError):
        return Unreachable("reset", f"{where} closed the connection without an answer")
    if isinstance(fault, http.client.HTTPException):
        return Unreachable("protocol", f"what {where} answers is no HTTP")
    return Unreachable("network", f"{where} cannot be reached: {fault}")
