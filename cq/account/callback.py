"""Where a provider's page sends the browser back to after a sign-in. Knows no node."""

import base64
import secrets
import threading
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from urllib.parse import parse_qs, urlsplit


def secret(size):
    """So many random bytes as text that may stand in a URL."""
    return encoded(secrets.token_bytes(size))


def encoded(raw):
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Callback(ThreadingTCPServer):
    """A secret path on loopback, `url`, that hears one end of a sign-in."""

    daemon_threads = True

    def __init__(self):
        self.place, self._said = f"/cb/{secret(16)}", None
        self._one, self.heard = threading.Lock(), threading.Event()
        super().__init__(("127.0.0.1", 0), _Hearing)
        self.url = f"http://127.0.0.1:{self.server_address[1]}{self.place}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def take(self, said):
        """Whether this is the first that is said."""
        with self._one:
            first, self._said = self._said is None, self._said or said
            return first

    def told(self, patience):
        """What was said in so many seconds; nothing if nobody came."""
        self.heard.wait(patience)
        return self._said or {}

    def handle_error(self, request, client_address):
        """A browser that goes away is nobody's fault."""


class _Hearing(BaseHTTPRequestHandler):
    timeout = 5

    def do_GET(self):
        place = urlsplit(self.path)
        said = {name: values[0] for name, values in parse_qs(place.query).items()}
        if place.path != self.server.place:
            self._answer(404, "There is nothing here.")
        elif not said.keys() & {"exchange_code", "error"}:
            # A preview of the link, or a guess: whoever signs in is still to come.
            self._answer(400, "This is not the end of a sign-in.")
        elif not self.server.take(said):
            self._answer(410, "This sign-in is over.")
        else:
            try:
                if "exchange_code" in said:
                    self._answer(200, "Signed in. You may close this page.")
                else:
                    self._answer(400, "You are not signed in. The terminal tells why.")
            finally:
                self.server.heard.set()

    def _answer(self, status, text):
        raw = f"<!doctype html><title>cq</title><p>{text}</p>".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        """The path is a secret."""
