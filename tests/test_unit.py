"""The rules of a unit by themselves: ids, tags, blank text, confidence, buckets, relevance."""

import math
import unicodedata

import numpy as np
import pytest

from cq import unit

CONFIRM, FLAG = unit.CONFIRM, unit.FLAG


def test_the_limits_are_those_of_the_wire():
    assert (unit.SUMMARY, unit.DETAIL, unit.ACTION, unit.PATTERN) == (500, 8000, 2000, 200)
    assert (unit.TAGS, unit.TAG) == (16, 64)
    assert (unit.FLAG_DETAIL, unit.REASON, unit.QUESTION) == (1000, 1000, 2000)
    assert unit.EXTENSIONS == 20
    assert unit.FLAG_REASONS == ("stale", "incorrect", "duplicate")
    assert unit.TIERS == ("private", "public")


# Ids


def test_a_new_id_is_one_and_never_the_same():
    ids = {unit.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(unit.is_id(id) for id in ids)
    assert {id[15] for id in ids} == {"4"}


def test_an_id_is_ku_and_32_lower_case_hexadecimal_digits():
    digits = "0123456789abcdef" * 2
    assert unit.is_id(f"ku_{digits}")
    for wrong in (
        "",
        "ku_",
        digits,
        f"ku_{digits[:-1]}",
        f"ku_{digits}0",
        f"ku_{digits.upper()}",
        f"KU_{digits}",
        f"ku-{digits}",
        f"ku_{digits[:-1]}g",
        f" ku_{digits}",
        f"ku_{digits}\n",
        f"ku_{digits[:-1]}\n",
        f"x ku_{digits}",
        "ku_01234567-89ab-cdef-0123-456789abcdef",
        f"ku_{digits[:-1]}\N{FULLWIDTH DIGIT ONE}",
        f"ku_{digits[:-1]}\N{ARABIC-INDIC DIGIT ONE}",
        None,
        7,
        [f"ku_{digits}"],
        f"ku_{digits}".encode(),
    ):
        assert not unit.is_id(wrong), wrong


# Extension keys: the vectors of the agent specification, section 10.3


@pytest.mark.parametrize(
    "key",
    [
        "cq:severity",
        "a:b",
        "x0:flag",
        "abc_def:ghi",
        "impl:key/with/slashes",
        "ns:UPPER-value",
        "0:0",
        "a-b:c",
        "a:b:c",
        "a::",
        "ns:é",
        "ns:\N{PILE OF POO}",
    ],
)
def test_a_key_in_a_namespace_is_an_extension_key(key):
    assert unit.is_extension_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "no-namespace",
        ":x",
        "UPPER:key",
        "Mixed:key",
        "-a:b",
        "_a:b",
        "impl:",
        "impl: x",
        "impl:has space",
        "impl:has\ttab",
        "impl:has\nnewline",
        "\t",
        "\n",
        "impl:x\n",
        "impl:x\r\n",
        "impl:\n",
        "impl:x\u00a0y",
        "impl:x\u2028",
        "\nimpl:x",
        " impl:x",
        "im pl:x",
        "impl :x",
        "é:x",
        "\N{FULLWIDTH LATIN SMALL LETTER A}:x",
        "impl\N{FULLWIDTH COLON}x",
        "a.b:c",
        "a/b:c",
    ],
)
def test_anything_else_is_no_extension_key(key):
    assert not unit.is_extension_key(key)


# Tags


@pytest.mark.parametrize(
    ("spellings", "tag"),
    [
        (
            ["http", "HTTP", "Http", " http ", "http\n", "\u00a0http\u3000", "ＨＴＴＰ", "ｈttp"],
            "http",
        ),
        (["réseau", "re\u0301seau", "RÉSEAU", "RE\u0301SEAU"], "réseau"),
        (["école", "ÉCOLE", "E\u0301COLE"], "école"),
        (["straße", "STRASSE", "strasse", "STRAẞE"], "strasse"),
        (["İzmir", "I\u0307zmir", "i\u0307zmir"], "i\u0307zmir"),
        (["Σίσυφος", "ΣΊΣΥΦΟΣ", "σίσυφοσ"], "σίσυφοσ"),
        (["ﬁle", "file", "FILE"], "file"),
        (["한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"], "한국"),
        (["ガイド", "カ\u3099イト\u3099", "ｶﾞｲﾄﾞ"], "ガイド"),
        (["Å", "\u212b", "A\u030a", "å"], "å"),
        (["c++", "C++", "Ｃ＋＋"], "c++"),
        (["node 22.4", "Node 22.4", " NODE\u00a022.4"], "node 22.4"),
    ],
)
def test_spellings_of_one_tag_are_one(spellings, tag):
    assert {unit.fold(spelling) for spelling in spellings} == {tag}
    assert unit.normalise(spellings) == [tag]


def test_tags_that_mean_something_else_stay_apart():
    tags = [
        "go",
        "mongo",
        "c",
        "c++",
        "c#",
        "%",
        "_",
        "g%",
        "node 22",
        "node22",
        "reseau",
        "réseau",
    ]
    assert unit.normalise(tags) == tags


def test_folding_what_is_folded_changes_nothing_whatever_the_characters():
    for number in (*range(0xD800), *range(0xE000, 0x20000)):
        for text in (chr(number), f"a{chr(number)}\u0301"):
            folded = unit.fold(text)
            assert unit.fold(folded) == folded, hex(number)


def test_composed_and_decomposed_text_folds_to_the_same():
    for number in (*range(0xD800), *range(0xE000, 0x20000)):
        text = chr(number)
        apart = unicodedata.normalize("NFD", text)
        if apart != text:
            assert unit.fold(apart) == unit.fold(text), hex(number)


def test_tags_keep_the_order_of_their_first_appearance():
    tags = ["State", "terraform", "STATE", "  ", "Terraform ", "aws", "state"]
    assert unit.normalise(tags) == ["state", "terraform", "aws"]
    assert unit.normalise([]) == []


@pytest.mark.parametrize(
    "blank", ["", " ", "\t\n", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u2060"]
)
def test_a_tag_that_nobody_can_see_is_none(blank):
    assert unit.normalise([blank, "http"]) == ["http"]


# Blank text


@pytest.mark.parametrize("text", ["", " ", "\u00a0\n", "\t\r\n\x0b\x0c", "\u2003\u3000\u2028"])
def test_white_space_is_blank(text):
    assert unit.is_blank(text)


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "\x07",
        "\x1b",
        "\x7f",
        "\x85",
        "\u200b\u200d",
        "\u202e\u2066",
        "\ufeff",
        "\u00ad",
        "\U000e0041",
    ],
)
def test_controls_and_formats_are_blank(text):
    assert unit.is_blank(text)
    assert unit.is_blank(f" {text} ")


@pytest.mark.parametrize(
    "text",
    [
        "\u3164",
        "\u115f\u1160",
        "\uffa0",
        "\u2800",
        "\u034f",
        "\ufe0f",
        "\u180b",
        "\u17b4\u17b5",
        "\U000e0100",
    ],
)
def test_letters_and_marks_that_show_nothing_are_blank(text):
    """Fillers, the empty Braille cell, variation selectors: they count as text, nobody sees them."""
    assert unit.is_blank(text)
    assert unit.is_blank(f" {text}\u200b")


@pytest.mark.parametrize(
    "text",
    [
        "a",
        ".",
        "0",
        "\u00a0x\n",
        "é",
        "e\u0301",
        "汉",
        "한",
        "\N{GRINNING FACE}",
        "☠\ufe0f",
        "\u200bx",
        "\u28ff",
    ],
)
def test_text_with_anything_to_see_is_not_blank(text):
    assert not unit.is_blank(text)


# Confidence


@pytest.mark.parametrize(
    ("start", "steps", "expected"),
    [
        (0.5, [CONFIRM] * 7, [0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0]),
        (0.5, [FLAG] * 5, [0.35, 0.2, 0.05, 0.0, 0.0]),
        (0.5, [CONFIRM, FLAG, CONFIRM, FLAG], [0.6, 0.45, 0.55, 0.4]),
        (0.0, [CONFIRM] * 3, [0.1, 0.2, 0.3]),
        (1.0, [FLAG] * 7, [0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.0]),
        (0.95, [CONFIRM, FLAG], [1.0, 0.85]),
        (0.05, [FLAG, CONFIRM], [0.0, 0.1]),
    ],
)
def test_votes_move_confidence_by_exact_steps_within_its_bounds(start, steps, expected):
    reached = []
    for step in steps:
        start = unit.shift(start, step)
        reached.append(start)
    assert reached == expected


def test_no_votes_in_any_order_leave_the_twentieths():
    reached, fresh = set(), {unit.START}
    while fresh:
        reached |= fresh
        fresh = {unit.shift(value, step) for value in fresh for step in (CONFIRM, FLAG)} - reached
    assert reached == {number / 20 for number in range(21)}


def test_any_confidence_is_rounded_to_four_decimals():
    assert unit.shift(0.123449, 0.0) == 0.1234
    assert unit.shift(0.7999999999999999, 0.0) == 0.8
    assert unit.shift(0.19999999999999998, FLAG) == 0.05


def test_the_buckets_are_named_by_their_bounds():
    assert unit.bucket_labels(unit.AGENT_BUCKETS) == ["0.0-0.3", "0.3-0.5", "0.5-0.7", "0.7-1.0"]
    assert unit.bucket_labels(unit.REVIEW_BUCKETS) == ["0.0-0.3", "0.3-0.6", "0.6-0.8", "0.8-1.0"]


# Relevance


@pytest.mark.parametrize(
    ("shared", "either", "lifts", "expected"),
    [
        (2, 2, (True, True, True), 1.0),
        (2, 2, (True, True, False), 0.85),
        (2, 2, (False, False, False), 0.55),
        (2, 3, (False, False, False), 0.55 * 2 / 3),
        (1, 2, (True, False, False), 0.425),
        (1, 4, (False, False, False), 0.1375),
        (0, 3, (True, True, True), 0.45),
        (0, 3, (False, False, False), 0.0),
        (1, 1, (False, True, False), 0.7),
        (1, 1, (False, False, True), 0.7),
    ],
)
def test_relevance_is_the_overlap_of_tags_and_three_lifts(shared, either, lifts, expected):
    assert unit.relevance(shared, either, *lifts) == pytest.approx(expected, abs=1e-12)


def test_relevance_never_leaves_its_bounds():
    for either in range(1, 33):
        for shared in range(either + 1):
            for lifts in range(8):
                found = unit.relevance(shared, either, lifts & 1, lifts >> 1 & 1, lifts >> 2)
                assert 0 <= found <= 1


def test_relevance_of_arrays_is_that_of_their_elements():
    shared, either = np.array([2, 1, 0]), np.array([2, 4, 3])
    language, pattern = np.array([True, False, True]), np.array([0, 1, 0])
    found = unit.relevance(shared, either, language=language, pattern=pattern)
    one_by_one = [
        unit.relevance(*row[:2], language=row[2], pattern=row[3])
        for row in zip(shared, either, language, pattern, strict=True)
    ]
    assert found.tolist() == one_by_one


# Numbers


def test_what_json_cannot_write_is_not_finite():
    for number in (math.nan, math.inf, -math.inf):
        assert not unit.finite(number)
    for number in (0, 0.0, -1.5, 1e308, 10**308, True):
        assert unit.finite(number)
