"""Whatever fits our own OpenAPI document, and much that does not, gets a documented answer.

From everybody: of each role, by an agent's key, from nobody. `make fuzz` takes its time.
"""

import os
import time
from collections import Counter
from itertools import count

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import auth
from cq import unit as rules
from models import User
from tests.cast import PASSWORD

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# For all callers together; each asks every operation once at least.
SECONDS = float(os.environ.get("FUZZ_SECONDS") or 60)
# Whose session, and of how many operations at least a request of the first turn is done.
CALLERS = {
    "an admin": ("ada", 18),
    "a reviewer": ("rita", 15),
    "a contributor": ("cleo", 7),
    "a key": (None, 5),
    "nobody": (None, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("who", CALLERS)
def test_every_operation_answers_everybody_as_documented(call, serve, who):
    """In turns, until the time is over: what somebody may not do is refused as documented, too."""
    caller = Caller(call, who)
    url = serve(CQ_READ_RATE="off", CQ_WRITE_RATE="off").url
    document = schemathesis.openapi.from_url(f"{url}/api/openapi.json")
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) > 30
    end = time.monotonic() + SECONDS / len(CALLERS)
    with requests.Session() as session:
        for turn in count():
            caller.prepare(turn)
            for operation in operations:
                if turn and time.monotonic() > end:
                    return
                for mode in GenerationMode:
                    caller.probe(operation, mode, turn, session)
            if turn == 0:
                done = {label for label, status in caller.answers if 200 <= status < 300}
                assert len(done) >= CALLERS[who][1], caller.answers


def calm(value):
    """The same with plain words, which pass where the document cannot say what is refused."""
    if isinstance(value, str):
        return "".join(char for char in value if char.isalnum() or char in "_-") or "word"
    if isinstance(value, list):
        return [calm(each) for each in value] or ["word"]
    if isinstance(value, dict):
        return {name: calm(each) for name, each in value.items() if name != "extensions"}
    return value


class Caller:
    """Whoever asks, what is there for them to ask about, and what they were answered."""

    def __init__(self, call, who):
        self.call, self.who, self.name = call, who, CALLERS[who][0]
        self.answers = Counter()
        self.there = {}
        # Somebody to whom an admin may do anything.
        victim = {"username": "vic", "password": PASSWORD}
        assert call("POST", "/users", victim, user="ada").status_code == 201

    def token(self, name):
        """A session's, of now: an earlier one may have been ended by what was asked."""
        with self.call.app.app_context():
            return auth.token_for(User.find(name))

    def headers(self):
        if self.who == "nobody":
            return {}
        token = self.token(self.name) if self.name else self.call.keys["carl"]
        return {"Authorization": f"Bearer {token}"}

    def prepare(self, turn):
        """Units in several states and keys, for what was there before may be decided or revoked."""
        pending = [self.call.propose(f"pending {turn} {number}", ["fuzz"]) for number in range(3)]
        approved = [
            self.call.approve(f"approved {turn} {number}", ["fuzz"], tier="public")
            for number in range(5)
        ]
        self.call("POST", f"/knowledge/{approved[0]['id']}/flags", {"reason": "stale"}, key="rita")
        self.there = {
            "unit_id": [unit["id"] for unit in (*pending, *approved)],
            "username": ["vic"],
        }
        self.there["key_id"] = [self._key(name) for name in ("vic", self.name) if name]

    def _key(self, name):
        """The id of an API key of theirs, made anew if they may have one."""
        headers = {"Authorization": f"Bearer {self.token(name)}"}
        wish = {"name": "spare", "ttl": "1d"}
        made = self.call("POST", "/users/me/api-keys", wish, headers=headers)
        return made.json["id"] if made.status_code == 201 else rules.new_id()

    def probe(self, operation, mode, turn, session):
        """Some requests of one operation, most of them about what is there, each answer checked."""
        headers = self.headers()

        @seed(turn)
        @settings(
            max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
        def run(case, data):
            for name in case.path_parameters:
                if name in self.there and data.draw(st.integers(0, 3)):
                    case.path_parameters[name] = data.draw(st.sampled_from(self.there[name]))
            if data.draw(st.booleans()):
                case.body = calm(case.body)
            answer = case.call_and_validate(headers=headers, checks=CHECKS, session=session)
            self.answers[operation.label, answer.status_code] += 1

        try:
            run()
        except Unsatisfiable:
            # Nothing of an operation without input can be wrong.
            assert mode is GenerationMode.NEGATIVE
            assert not operation.body
            assert not operation.query
