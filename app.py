"""The server: config, extensions, errors, routes. `python app.py` serves it by waitress."""

import os

# Before numpy is there: its products are small, and threads that wait for the next one would spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import signal
import sys
import threading
from functools import partial

import waitress
from flask import Flask, request
from flask.json.provider import DefaultJSONProvider

import admin
import auth
import backups
import config
import embeddings
import errors
import logs
import migrations
import proxies
import search
import tally
import transfer
import upstream
from models import User, connection, db
from routes import auth as auth_routes
from routes import docs, gaps, knowledge, mcp, metrics, node, page, review, stats, users

BODY = 256 * 1024
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Json(DefaultJSONProvider):
    """Compact, in the order given, as UTF-8, without a line end."""

    sort_keys = False
    ensure_ascii = False

    def response(self, *args, **kwargs):
        body = self.dumps(self._prepare_response_obj(args, kwargs), separators=(",", ":"))
        return self._app.response_class(body, mimetype=self.mimetype)


def create_app(settings=None, encoder=embeddings.load):
    """The WSGI app over `settings` as `config.from_env` gives them, its database up to date.

    `encoder` makes the encoder of a name, in the background. Raises ConfigError.
    """
    settings = settings or config.from_env()
    app = Flask(__name__, static_folder=None)
    app.config.from_mapping(
        settings,
        SQLALCHEMY_DATABASE_URI=settings["CQ_DATABASE"],
        SQLALCHEMY_ENGINE_OPTIONS=connection.options(
            settings["CQ_DATABASE"], settings["CQ_THREADS"]
        ),
        MAX_CONTENT_LENGTH=BODY,
    )
    app.json = Json(app)
    app.url_map.merge_slashes = False
    logs.init_app(app)
    proxies.init_app(app)
    metrics.init_app(app)
    errors.register(app)
    db.init_app(app)
    migrations.init_app(app)
    auth.init_app(app)
    tally.init_app(app)
    app.before_request(_path)
    app.before_request(_size)
    app.after_request(_headers)
    resources = [each.bp for each in (knowledge, stats, gaps, review, auth_routes, users, node)]
    for resource in resources:
        app.register_blueprint(resource)
    node.init_app(app)
    mcp.init_app(app)
    docs.init_app(app, resources)
    page.init_app(app)
    admin.init_app(app)
    backups.init_app(app)
    transfer.init_app(app)
    upstream.init_app(app)
    try:
        migrations.apply(app)
    except config.ConfigError as fault:
        if not backups.leaves_restore(app, fault):
            raise
    named = settings["CQ_EMBEDDER"]
    search.init_app(app, None if named == "off" else partial(encoder, named))
    return app


def _path():
    """No name of anything has NUL in it, and PostgreSQL would not even be asked for one."""
    if "\0" in request.path:
        raise errors.NotFound("Not Found")


def _size():
    """Refuse a large body before it is read, whether the route would read it or not."""
    if (request.content_length or 0) > BODY:
        raise errors.TooLarge("The body is larger than 256 KiB")


def _headers(response):
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _warm(app):
    """Read the index before the first query asks for it, then begin to load the model."""
    with app.app_context():
        search.index()
        search.meaning()


def _listen(app, host, port):
    """A waitress server that is bound to host and port. Raises ConfigError."""
    try:
        server = waitress.create_server(
            app,
            host=host,
            port=port,
            threads=app.config["CQ_THREADS"],
            ident=None,
            connection_limit=1000,
            backlog=1024,
            max_request_body_size=8 * 1024 * 1024,
            # Whose headers count is decided in `proxies`, which has to see them.
            clear_untrusted_proxy_headers=False,
        )
    except (OSError, ValueError) as fault:
        raise config.ConfigError(
            f"CQ_HOST, CQ_PORT: cannot listen on {host} port {port} "
            f"({getattr(fault, 'strerror', fault)}); end what listens there, or set others."
        ) from None
    if port == 0 and hasattr(server, "effective_listen"):
        # A host of several addresses got a free port for each: one for all instead.
        server.close()
        return _listen(app, host, _port(server))
    return server


def _port(server):
    """The real port, also where a host has several addresses."""
    listens = getattr(server, "effective_listen", None)
    return listens[0][1] if listens else server.effective_port


def serve():
    """Serve until a signal ends it. What cannot be served is one line on stderr and exit code 2."""
    try:
        settings = config.from_env()
        logs.start(settings["CQ_LOG_LEVEL"], settings["CQ_LOG"])
        app = create_app(settings)
        server = _listen(app, settings["CQ_HOST"], settings["CQ_PORT"])
    except config.ConfigError as fault:
        fault.show()
        sys.exit(fault.exit_code)
    for made in settings["CQ_MADE"]:
        print(f"cq made {made}")
    with app.app_context():
        if not User.page(1, 0):
            print(
                "Nobody can sign in yet. Make the first admin, in this folder:\n"
                "  .venv/bin/flask --app app user add NAME --role admin"
            )
    threading.Thread(target=_warm, args=[app], daemon=True).start()
    host = settings["CQ_HOST"]
    shown = f"[{host}]" if ":" in host else host
    print(f"cq listens on http://{shown}:{_port(server)}", flush=True)
    # The model's steps, few or many, have to get their turns among the requests.
    sys.setswitchinterval(0.0005)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server.run()
    finally:
        search.stop(app)
        tally.stop(app)


if __name__ == "__main__":
    serve()
