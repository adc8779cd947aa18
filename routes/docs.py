"""The OpenAPI document at /api/openapi.json, completed by what routes ask; /api/docs."""

import threading
from functools import cache
from importlib.resources import files

import flask_smorest
from flask import Flask, Response, request, send_from_directory

import auth
import schemas

ASSETS = str(files("flask_swagger_ui") / "dist")
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>cq API</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</html>
"""
START = 'SwaggerUIBundle({url: "openapi.json", dom_id: "#page", deepLinking: true})'
# The viewer sets styles inline and holds its icons as data; no other page is let do so.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class Api(flask_smorest.Api):
    ERROR_SCHEMA = schemas.Error


def init_app(app, resources):
    """Serve the document of these blueprints, and its page."""

    def show(body, mimetype):
        return Response(body, mimetype=mimetype, headers={"Content-Security-Policy": POLICY})

    for path, view in (
        ("/api/openapi.json", lambda: _here(document(tuple(resources)))),
        ("/api/docs", lambda: show(PAGE, "text/html")),
        ("/api/docs/start.js", lambda: show(START, "text/javascript")),
        ("/api/docs/<path:name>", lambda name: send_from_directory(ASSETS, name)),
    ):
        app.add_url_rule(path, path, auth.anybody(view))


def _here(described):
    """The document, with the path that a proxy serves us under, so that it can be tried there."""
    below = request.script_root
    return {**described, "servers": [{"url": below}]} if below else described


def document(resources):
    """The OpenAPI document, made when somebody first asks, by one thread at a time.

    Two that compile routes at once can upset Python 3.11's compiler.
    """
    with _making:
        return _document(resources)


_making = threading.Lock()


@cache
def _document(resources):
    """Made on an app that serves nothing else."""
    app = Flask("cq")
    app.config.update(API_TITLE="cq", API_VERSION="v1", OPENAPI_VERSION="3.0.3")
    api = Api(app)
    for resource in resources:
        api.register_blueprint(resource)
    describe(app, api)
    return api.spec.to_dict()


def describe(app, api):
    """Add to each operation who may call it, and the refusals that brings."""
    spec = api.spec
    spec.components.security_scheme(
        "key", {"type": "http", "scheme": "bearer", "description": "an agent's API key"}
    )
    spec.components.security_scheme(
        "session", {"type": "http", "scheme": "bearer", "description": "a token from /auth/login"}
    )
    views = {
        (rule.rule, method.lower()): app.view_functions[rule.endpoint]
        for rule in app.url_map.iter_rules()
        for method in rule.methods
    }
    for rule in app.url_map.iter_rules():
        path = spec._paths.get(rule.rule.replace("<", "{").replace(">", "}"), {})
        for method, operation in path.items():
            view = views.get((rule.rule, method))
            if view is not None and isinstance(operation, dict):
                _complete(operation, *view.asks)


def _complete(operation, who, role):
    statuses = {
        "anybody": [429, 503],
        "reader": [429, 503],
        "key": [401, 503],
        "session": [401, 403, 503],
    }[who]
    operation["security"] = {
        "key": [{"key": []}],
        "session": [{"session": []}],
        "reader": [{"key": []}, {"session": []}, {}],
    }.get(who, [])
    if "requestBody" in operation:
        statuses = [*statuses, 413]
    if role:
        operation["description"] = f"{operation.get('description', '')}\n\nRole: {role}.".strip()
    operation["responses"].pop("default", None)
    for status in statuses:
        operation["responses"].setdefault(
            str(status),
            {
                "description": "refused",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        )
