"""How every route reads its input and describes itself; one resource a file below."""

import json
from functools import wraps

import flask_smorest
from flask import Response, jsonify
from marshmallow import ValidationError
from marshmallow.fields import List
from webargs.flaskparser import FlaskParser

import schemas
from cq import wire
from errors import Failure, Invalid


class Parser(FlaskParser):
    """JSON bodies and query strings by the rules of the wire, every problem in one 422."""

    def load_json(self, req, schema):
        kind = req.mimetype
        if kind != "application/json" and not (
            kind.startswith("application/") and kind.endswith("+json")
        ):
            raise ValidationError(wire.NOT_OBJECT if req.get_data() else wire.MISSING)
        raw = req.get_data()
        if not raw:
            raise ValidationError(wire.MISSING)
        try:
            return wire.parse_json(raw)
        except UnicodeDecodeError:
            raise Failure("There was an error parsing the body") from None

    def load_querystring(self, req, schema):
        """The last one of a repeated name counts; a list takes them all."""
        args = req.args
        return {
            name: args.getlist(name) if isinstance(field, List) else args.getlist(name)[-1]
            for name, field in schema.fields.items()
            if name in args
        }

    load_query = load_querystring

    def handle_error(self, error, req, schema, *, error_status_code, error_headers):
        messages = error.messages
        if isinstance(messages, dict):
            found = [
                problem
                for place, below in messages.items()
                for problem in wire.problems(below, ("body" if place == "json" else place,))
            ]
        else:
            found = wire.problems(messages, ("body",))
        raise Invalid(found)


class OptionalParser(Parser):
    """The same for routes that may be called without a body, as U's reviewers' page does."""

    def load_json(self, req, schema):
        return super().load_json(req, schema) if req.get_data() else {}


class Blueprint(flask_smorest.Blueprint):
    """A resource below /api/v1, read by `Parser`."""

    ARGUMENTS_PARSER = Parser()

    def __init__(self, name, prefix):
        super().__init__(name, name, url_prefix=f"/api/v1{prefix}")

    def verbs(self, *verbs):
        """POST /<unit_id>/<verb> for each of them; the view is told which."""

        def decorate(view):
            for verb in verbs:
                route = self.post(f"/<unit_id>/{verb}", endpoint=verb, defaults={"verb": verb})
                route(view)
            return view

        return decorate

    def query(self, schema):
        return self.arguments(schema(), location="query", as_kwargs=True)

    def body(self, schema, optional=False):
        """The body's fields as keyword arguments; `optional` takes none at all for an empty one."""
        schema = schema()
        described = self.arguments(schema, required=not optional, as_kwargs=True)
        if not optional:
            return described

        def decorate(view):
            wrapper = described(view)
            reading = OptionalParser().use_kwargs(schema, location="json")(view)
            reading._apidoc = wrapper._apidoc
            return reading

        return decorate

    def answers(self, status, schema, **described):
        """What a view returns, as JSON with this status; the schema only describes it."""

        def decorate(view):
            @wraps(view)
            def wrapper(*args, **kwargs):
                answer = view(*args, **kwargs)
                if not isinstance(answer, Response):
                    answer = jsonify(answer)
                    answer.status_code = status
                return answer

            return self.response(status, schema, **described)(wrapper)

        return decorate

    def refuses(self, *statuses):
        """Describe the refusals of a route beside those that its caller's rights bring."""

        def decorate(view):
            for status in statuses:
                view = self.alt_response(status, schema=schemas.Error)(view)
            return view

        return decorate


def raw(parts, explain=None):
    """{"data": [...]} of units that are JSON already."""
    body = b'{"data":[' + b",".join(parts) + b"]"
    if explain is not None:
        body += b',"explain":' + json.dumps(explain, separators=(",", ":")).encode()
    return Response(body + b"}", mimetype="application/json")
