"""What the safety check finds, and what it leaves alone."""

import subprocess
import sys

import pytest

from cq import record, safety
from tests.agent.safety_cases import FALSE, TRUE
from tests.cast import ROOT


def cases(table):
    return [
        pytest.param(kind, text, id=f"{kind}-{n}")
        for kind in table
        for n, text in enumerate(table[kind])
    ]


@pytest.mark.parametrize(("kind", "text"), cases(TRUE))
def test_what_must_not_travel_is_found(kind, text):
    assert kind in {finding.kind for finding in safety.check_text("detail", text)}


@pytest.mark.parametrize(("kind", "text"), cases(FALSE))
def test_plain_words_are_left_alone(kind, text):
    assert kind not in {finding.kind for finding in safety.check_text("detail", text)}


@pytest.mark.parametrize("text", [text for texts in FALSE.values() for text in texts])
def test_nothing_is_refused_for_what_only_looks_so(text):
    assert safety.refusals(safety.check_text("detail", text)) == []


def test_each_field_is_looked_at_and_named():
    secret = TRUE["secret"][0]
    unit = record.make("s", "d", "a", ["x"])
    for field, spoilt in {
        "summary": {**unit, "insight": {**unit["insight"], "summary": secret}},
        "action": {**unit, "insight": {**unit["insight"], "action": secret}},
        "domains": {**unit, "domains": ["x", secret]},
        "languages": {**unit, "context": {**unit["context"], "languages": [secret]}},
        "pattern": {**unit, "context": {**unit["context"], "pattern": secret}},
        "extensions": {**unit, "extensions": {"a:b": [{"deep": [secret]}]}},
    }.items():
        assert [finding.field for finding in safety.check(spoilt)] == [field]


def test_a_finding_never_repeats_the_secret():
    for text in TRUE["secret"]:
        told = " ".join(finding.text for finding in safety.check_text("detail", text))
        assert not any(word in told for word in text.split() if len(word) > 12)


def test_only_secrets_and_hidden_characters_are_hard():
    kinds = {
        kind: {f.hard for t in texts for f in safety.check_text("x", t) if f.kind == kind}
        for kind, texts in TRUE.items()
    }
    assert kinds == {
        "secret": {True},
        "hidden": {True},
        "personal": {False},
        "internal": {False},
        "directive": {False},
    }


@pytest.mark.parametrize(
    "text",
    [
        "a" * 8000,
        "a." * 4000,
        "-" * 8000,
        "+1 " * 2600,
        "eyJ" * 2600,
        "password" * 1000,
        "x@" * 4000,
        "10." * 2600,
        "ignore " * 1100,
        "://" * 2600,
        "4111" * 2000,
        "a:" * 4000,
        "\u200d" * 8000,
    ],
)
def test_a_long_text_is_read_in_bounded_time(text):
    code = (
        "import sys; from cq import safety; [safety.check_text('x', sys.argv[1]) for _ in range(3)]"
    )
    subprocess.run([sys.executable, "-c", code, text], cwd=ROOT, check=True, timeout=10)
