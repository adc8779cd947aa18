"""Whatever fits our own OpenAPI document, and much that does not, gets a documented answer."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_operation_answers_as_documented(make_call, mode):
    call = make_call(CQ_READ_RATE="off", CQ_WRITE_RATE="off")
    for number in range(3):
        call.approve(f"approved {number}", ["fuzz"], tier="public")
        call.propose(f"pending {number}", ["fuzz"])
    document = schemathesis.openapi.from_wsgi("/api/openapi.json", call.app)
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:
        probe(operation, mode, call)


def probe(operation, mode, call):
    """Twenty requests of one operation, as a caller whom it lets in, each answer checked."""
    asked = {scheme for need in operation.definition.raw["security"] for scheme in need}
    token = call.keys["carl"] if "key" in asked else call.tokens["ada"]
    headers = {"Authorization": f"Bearer {token}"} if asked else {}

    @settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        case.call_and_validate(headers=headers, checks=CHECKS)

    try:
        run()
    except Unsatisfiable:
        # Nothing of an operation without input can be wrong.
        assert mode is GenerationMode.NEGATIVE
        assert not operation.body
        assert not operation.query
