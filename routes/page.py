"""The review page: the files of `frontend/`, read and compressed once, known by their content."""

import gzip
import hashlib
import mimetypes
from functools import partial
from pathlib import Path
from typing import NamedTuple

from flask import Response, request

import auth

FOLDER = Path(__file__).resolve().parent.parent / "frontend"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


class File(NamedTuple):
    """A file as it is sent."""

    body: bytes
    packed: bytes
    mimetype: str
    etag: str


def init_app(app):
    """Serve the page at `/` and each file that it loads at its own path, no others."""
    for path in sorted(FOLDER.rglob("*.*")):
        name = path.relative_to(FOLDER).as_posix()
        rule = "/" if name == "index.html" else f"/{name}"
        app.add_url_rule(rule, rule, auth.anybody(partial(_response, _read(path))))


def _read(path):
    body = path.read_bytes()
    mimetype = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    # No time in it: the same file packs to the same bytes.
    return File(body, gzip.compress(body, mtime=0), mimetype, hashlib.sha256(body).hexdigest()[:16])


def _response(file):
    """The file, or a 304 to who has it. A browser asks each time: a new version is seen at once."""
    packed = request.accept_encodings["gzip"] > 0
    response = Response(file.packed if packed else file.body, mimetype=file.mimetype)
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Cache-Control"] = "no-cache"
    response.vary.add("Accept-Encoding")
    response.set_etag(f"{file.etag}{'-gzip' if packed else ''}")
    return response.make_conditional(request)
