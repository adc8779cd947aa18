"""One HTTP exchange within a deadline and a bound of bytes. Follows no redirect, reads no proxy.

The deadline holds for the connection, TLS, headers, every write and every read, however slowly they
drip. Only the look-up of a host's name is the system's, and may take longer.
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
    """Nothing, or nothing whole, came back. `kind` is refused, reset, timeout, tls, dns, protocol,
    truncated, huge or network. `status` is the answer's, if it came as far as that.
    """

    def __init__(self, kind, text, status=None):
        super().__init__(text)
        self.kind, self.status = kind, status


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

    # `sendall` of TLS calls `send` for each record, and would give each the whole time.
    def send(self, *args, **kwargs):
        self.due()
        return super().send(*args, **kwargs)

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
    addresses = socket.getaddrinfo(place.hostname, port, type=socket.SOCK_STREAM)
    fault = OSError("no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        line = _Plain(family, kind, protocol)
        line.deadline = deadline
        try:
            line.due()
            # An address that swallows everything leaves time for the others.
            line.settimeout(line.gettimeout() / (len(addresses) - number))
            line.connect(address)
            return _secured(line, place, deadline) if place.scheme == "https" else line
        except ssl.SSLError:
            line.close()
            raise
        except OSError as failed:
            line.close()
            fault = failed
        except BaseException:
            line.close()
            raise
    raise fault


def _secured(line, place, deadline):
    context = ssl.create_default_context()
    context.sslsocket_class = _Secured
    line.due()
    secured = context.wrap_socket(line, server_hostname=place.hostname)
    secured.deadline = deadline
    return secured


def send(method, url, headers, body, deadline, limit=DATA):
    """`Answer`. `deadline` is a time of the monotonic clock. Raises Unreachable.

    A body of more than `limit` bytes is a failure; that of a refusal is cut at FAULTS.
    """
    place = urlsplit(url)
    connection, status = http.client.HTTPConnection(place.hostname, place.port), None
    try:
        connection.sock = _connected(place, deadline)
        path = f"{place.path or '/'}{f'?{place.query}' if place.query else ''}"
        connection.request(
            method, path, body, {"User-Agent": AGENT, "Host": place.netloc, **headers}
        )
        answer = connection.getresponse()
        status = answer.status
        if not 200 <= status < 300:
            return Answer(status, answer.headers, answer.read(FAULTS))
        read = answer.read(limit + 1)
        if len(read) > limit:
            raise Unreachable("huge", f"the answer is longer than {limit // 1024} KiB", status)
        # A read of so many bytes does not tell an answer that ends before its length.
        if answer.length:
            raise http.client.IncompleteRead(read, answer.length)
        return Answer(status, answer.headers, read)
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise Unreachable(*_told(fault, place), status) from fault
    finally:
        connection.close()


def _told(fault, place):
    """(kind, text). A text never holds what was sent: the key is in it."""
    where = place.netloc.rpartition("@")[2]
    if isinstance(fault, TimeoutError):
        return "timeout", f"{where} did not answer in time"
    if isinstance(fault, ConnectionRefusedError):
        return "refused", f"nothing listens at {where}"
    if isinstance(fault, socket.gaierror):
        return "dns", f"the name {place.hostname} is not known"
    if isinstance(fault, ssl.SSLCertVerificationError):
        return "tls", f"the certificate of {where} is not valid: {fault.verify_message}"
    if isinstance(fault, ssl.SSLError):
        return "tls", f"{where} speaks no TLS that is understood ({fault.reason})"
    if isinstance(fault, http.client.IncompleteRead):
        return "truncated", f"{where} broke off in the middle of its answer"
    if isinstance(fault, ConnectionError):
        return "reset", f"{where} closed the connection without an answer"
    if isinstance(fault, http.client.HTTPException):
        return "protocol", f"what {where} answers is no HTTP"
    if isinstance(fault, ValueError):
        return "network", f"{where} is no address that can be asked"
    return "network", f"{where} cannot be reached: {fault.strerror or fault}"
