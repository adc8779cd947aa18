"""A unit as the agent's machine keeps it: what is read, what votes make of it, how it is ranked."""

import pytest

from cq import record

ID = "ku_" + "0" * 31 + "1"
BARE = {
    "id": ID,
    "domains": ["testing"],
    "insight": {"summary": "S", "detail": "D", "action": "A"},
}
NULL = {
    "version": None,
    "context": None,
    "evidence": None,
    "tier": None,
    "created_by": None,
    "superseded_by": None,
    "extensions": None,
    "flags": None,
}


def seen(**evidence):
    return record.complete({**BARE, "evidence": evidence})["evidence"]


@pytest.mark.parametrize(
    "raw",
    [
        BARE,
        {**BARE, **NULL},
        {**BARE, "context": {"languages": None, "frameworks": None, "pattern": None}},
        {**BARE, "evidence": {"confidence": None, "confirmations": None, "first_observed": None}},
        {**BARE, "tier": "", "extensions": {}, "flags": []},
    ],
)
def test_what_is_missing_or_null_is_as_the_schema_says(raw):
    assert record.complete(raw) == {
        **BARE,
        "version": 1,
        "context": {"languages": [], "frameworks": [], "pattern": ""},
        "evidence": {"confidence": 0.5, "confirmations": 1},
        "tier": "local",
        "created_by": "",
        "flags": [],
    }


def test_nothing_is_no_default_for_a_number():
    assert seen(confidence=0, confirmations=0) == {"confidence": 0, "confirmations": 0}


def test_a_whole_unit_is_read_as_it_is_with_what_is_unknown_here():
    whole = {
        **BARE,
        "version": 1,
        "context": {"languages": ["Go"], "frameworks": [], "pattern": "p", "newer": [1]},
        "evidence": {"confidence": 0.6, "confirmations": 2, "newer": {"x": None}},
        "tier": "private",
        "created_by": "alice",
        "superseded_by": "ku_" + "2" * 32,
        "extensions": {"acme:x": None},
        "flags": [{"reason": "duplicate", "duplicate_of": "ku_" + "3" * 32, "newer": 1}],
        "newer": None,
    }
    assert record.complete(whole) == whole


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-03-01T12:00:00.123456789+02:00", "2026-03-01T10:00:00.123456Z"),
        ("2026-03-01T10:00:00", "2026-03-01T10:00:00Z"),
        ("2026-03-01t10:00:00z", "2026-03-01T10:00:00Z"),
        ("2026-02-28T23:30:00-00:45", "2026-03-01T00:15:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_times_of_units_and_flags_are_brought_to_utc(written, read):
    assert seen(first_observed=written)["first_observed"] == read
    flags = [{"reason": "stale", "timestamp": written, "detail": None}]
    assert record.complete({**BARE, "flags": flags})["flags"] == [
        {"reason": "stale", "timestamp": read}
    ]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"id": ID + "\n"}, "id"),
        ({"id": ID.upper()}, "id"),
        ({"id": None}, "id"),
        ({"domains": []}, "domains"),
        ({"domains": None}, "domains"),
        ({"domains": "testing"}, "domains"),
        ({"domains": ["a", 1]}, "domains"),
        ({"insight": None}, "insight"),
        ({"insight": {"summary": "S", "detail": "D"}}, "insight"),
        ({"insight": {"summary": "S", "detail": "D", "action": 1}}, "insight"),
        ({"context": []}, None),
        ({"context": [1]}, "context"),
        ({"context": {"pattern": 5}}, "pattern"),
        ({"context": {"frameworks": [None]}}, "frameworks"),
        ({"evidence": [1]}, "evidence"),
        ({"evidence": {"confidence": float("nan")}}, "confidence"),
        ({"evidence": {"confidence": "0.5"}}, "confidence"),
        ({"evidence": {"confidence": True}}, "confidence"),
        ({"evidence": {"confidence": 10**400}}, "confidence"),
        ({"evidence": {"confirmations": float("inf")}}, "confirmations"),
        ({"evidence": {"first_observed": 5}}, "time"),
        ({"evidence": {"first_observed": "yesterday"}}, "YESTERDAY"),
        ({"evidence": {"first_observed": "0001-01-01T00:00:00+05:00"}}, "time"),
        ({"tier": 5}, "tier"),
        ({"created_by": [1]}, "created_by"),
        ({"extensions": [1]}, "extensions"),
        ({"flags": 5}, "flags"),
        ({"flags": {"reason": "stale"}}, "flags"),
        ({"flags": [{"detail": "d"}]}, "flag"),
    ],
)
def test_what_is_no_unit_is_refused_by_name(changed, named):
    if named is None:
        assert record.complete({**BARE, **changed})
        return
    with pytest.raises(ValueError, match=named):
        record.complete({**BARE, **changed})


@pytest.mark.parametrize("raw", [None, [], "{}", 5])
def test_what_is_no_object_is_no_unit(raw):
    with pytest.raises(ValueError, match="id"):
        record.complete(raw)


def test_reading_changes_nothing_of_what_is_read():
    raw = {**BARE, "flags": None, "evidence": {"first_observed": "2026-03-01T10:00:00"}}
    before = repr(raw)
    record.complete(raw)
    assert repr(raw) == before


def test_votes_make_new_units_and_reckon_exactly():
    made = record.make("S", "D", "A", ["api"])
    before = repr(made)
    unit = record.flagged(record.confirmed(made, record.now()), "2026-03-01T10:00:00Z", "stale")
    unit = record.flagged(unit, record.now(), "duplicate", "the same", ID)
    assert repr(made) == before
    # In binary it would be .29999999999999993, and in another bucket.
    assert unit["evidence"]["confidence"] == 0.3
    assert unit["flags"][0] == {"reason": "stale", "timestamp": "2026-03-01T10:00:00Z"}
    assert {**unit["flags"][1], "timestamp": ""} == {
        "reason": "duplicate",
        "timestamp": "",
        "detail": "the same",
        "duplicate_of": ID,
    }
    for _ in range(4):
        unit = record.flagged(unit, record.now(), "stale")
    assert unit["evidence"]["confidence"] == 0.0
    assert unit["evidence"]["first_observed"] == made["evidence"]["first_observed"]


def test_of_equals_the_newer_comes_first_within_a_second_too():
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"]
    units = [record.complete({**BARE, "evidence": {"first_observed": time}}) for time in times]
    units.append(record.complete(BARE))
    expected = [units[2], units[1], units[0], units[3]]
    for order in (units, units[::-1]):
        assert record.rank(order, record.ask(["testing"]), 9) == expected


def test_of_equals_in_time_the_greater_id_comes_first():
    units = [record.complete({**BARE, "id": "ku_" + digit * 32}) for digit in "1a0"]
    ranked = record.rank(units, record.ask(["testing"]), 9)
    assert [unit["id"][3] for unit in ranked] == ["a", "1", "0"]


def test_languages_frameworks_and_pattern_compare_folded_on_both_sides():
    context = {"languages": ["Python"], "frameworks": [" ＨＴＴＰx "], "pattern": "API-Client"}
    unit = record.complete({**BARE, "domains": ["Testing"], "context": context})
    asked = record.ask(["TESTING"], ["pYTHON"], ["HttpX"], "api-client")
    assert record.relevance(unit, asked) == pytest.approx(1)
    assert record.relevance(unit, record.ask(["testing"], ["py"])) == 0.55
    assert record.relevance(record.complete(BARE), record.ask([])) == 0


def test_a_bound_of_confidence_counts_upwards():
    counts = record.buckets([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95])
    assert counts == {"0.0-0.3": 2, "0.3-0.5": 2, "0.5-0.7": 2, "0.7-1.0": 3}
    assert record.buckets([0.5 + 0.1 - 0.15 - 0.15, 0.2999])["0.3-0.5"] == 1
