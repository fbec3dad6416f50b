"""Choice: every operator against values of its own and of other types.

Where a test names no source: [dg:state-choice].
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from .harness import execute, machine, passing


def choose(rule: dict[str, object], value: object, **more: object) -> str:
    states = machine(
        ("Ask", {"Type": "Choice", "Choices": [{**rule, "Next": "Yes"}], "Default": "No"}),
        ("Yes", passing(Result="yes", End=True)),
        ("No", passing(Result="no")),
    )
    return str(execute(states, {"v": value, **more}).output)


@pytest.mark.parametrize(
    ("expected", "operator", "wanted", "value"),
    [
        ("yes", "StringEquals", "a", "a"),
        ("no", "StringEquals", "1", 1),
        ("yes", "StringLessThan", "b", "a"),
        ("no", "StringGreaterThan", "b", "b"),
        ("yes", "StringGreaterThanEquals", "b", "b"),
        # By UTF-16 code units, as Java compares: U+10000 is D800 DC00 there, before U+FFFD.
        ("yes", "StringLessThan", "\ufffd", "\U00010000"),
        ("no", "StringGreaterThan", "\ufffd", "\U00010000"),
        ("yes", "StringEquals", "\U00010000", "\U00010000"),
        ("yes", "NumericEquals", 0, 0.0),
        ("no", "NumericEquals", 1, True),
        ("yes", "NumericLessThanEquals", 3, 3),
        ("yes", "NumericGreaterThan", 3, 3.1),
        ("yes", "BooleanEquals", False, False),
        ("no", "BooleanEquals", False, 0),
        ("yes", "TimestampEquals", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"),
        ("no", "TimestampEquals", "2026-01-01T00:00:00Z", "2026-01-01 00:00:00"),
        ("yes", "TimestampLessThan", "2026-01-01T00:00:00Z", "2025-12-31T23:59:59.999Z"),
        ("yes", "TimestampLessThan", "2026-01-01T00:00:00.000000002Z", "2026-01-01T00:00:00.000000001Z"),
        ("no", "TimestampEquals", "2026-01-01T00:00:00.000000002Z", "2026-01-01T00:00:00.000000001Z"),
        ("yes", "TimestampEquals", "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.100000000Z"),
        ("yes", "TimestampLessThan", "1969-12-31T23:59:59.9Z", "1969-12-31T23:59:59.1Z"),
        ("yes", "StringMatches", "log-*.txt", "log-2026.txt"),
        ("no", "StringMatches", "log-*.txt", "log.txt"),
        ("yes", "StringMatches", r"a\*b", "a*b"),
        ("no", "StringMatches", r"a\*b", "axb"),
        ("yes", "IsNull", True, None),
        ("yes", "IsNull", False, 0),
        ("yes", "IsString", True, ""),
        ("yes", "IsNumeric", True, 1.5),
        ("no", "IsNumeric", True, True),
        ("yes", "IsBoolean", True, False),
        ("yes", "IsTimestamp", True, "2026-01-01T00:00:00Z"),
        ("no", "IsTimestamp", True, "2026-01-01"),
        ("yes", "IsPresent", True, None),
    ],
)
def test_a_comparison_holds_for_its_own_type_only(
    expected: str, operator: str, wanted: object, value: object
) -> None:
    # Recorded on AWS: choice_operators/*.
    assert expected == choose({"Variable": "$.v", operator: wanted}, value)


@pytest.mark.parametrize(
    ("expected", "operator", "value", "other"),
    [
        ("yes", "StringEqualsPath", "a", "a"),
        ("yes", "NumericGreaterThanPath", 2, 1),
        ("no", "NumericEqualsPath", 1, "1"),
        ("yes", "BooleanEqualsPath", True, True),
        ("no", "TimestampGreaterThanPath", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_the_other_side_may_be_a_path(expected: str, operator: str, value: object, other: object) -> None:
    assert expected == choose({"Variable": "$.v", operator: "$.w"}, value, w=other)


def test_rules_combine() -> None:
    number = {"Variable": "$.v", "IsNumeric": True}
    small = {"Variable": "$.v", "NumericLessThan": 10}
    assert "yes" == choose({"And": [number, {"Not": {"Variable": "$.v", "NumericEquals": 3}}, small]}, 4)
    assert "no" == choose({"And": [number, small]}, 11)
    # And stops at the first that is false: what follows is not evaluated.
    assert "no" == choose(
        {"And": [{"Variable": "$.w", "IsPresent": True}, {"Variable": "$.w", "IsNull": True}]}, 1
    )
    assert "yes" == choose({"Or": [small, {"Variable": "$.v", "NumericGreaterThan": 10}]}, 11)


def test_is_present_is_the_one_test_that_a_missing_path_does_not_fail() -> None:
    assert "yes" == choose({"Variable": "$.w", "IsPresent": False}, 1)
    states = machine(
        (
            "Ask",
            {
                "Type": "Choice",
                "Choices": [{"Variable": "$.w", "IsNull": True, "Next": "Ask"}],
                "Default": "End",
            },
        ),
        ("End", {"Type": "Succeed"}),
    )
    ran = execute(states)
    assert ("FAILED", "States.Runtime") == (ran.status, ran.error)
    assert "Invalid path '$.w'" in str(ran.cause)


def test_without_a_default_no_match_fails() -> None:
    rule = {"Variable": "$.v", "IsNull": True, "Next": "End"}
    states = machine(("Ask", {"Type": "Choice", "Choices": [rule]}), ("End", {"Type": "Succeed"}))
    # Measured on AWS, which documents another name: floci-io/floci#3167.
    ran = execute(states, {"v": 1})
    said = "Failed to transition out of the state. The state does not point to a next state."
    assert ("States.Runtime", True) == (ran.error, (ran.cause or "").endswith(said))


@pytest.mark.parametrize(
    ("expected", "pattern", "text"),
    [
        ("yes", "*", ""),
        ("yes", "a*", "a\nb"),
        ("yes", "*a*b*", "xaxbx"),
        ("no", "ab*ba", "aba"),
        ("yes", "ab*ba", "abba"),
        ("no", "*ab*ab", "xab"),
        ("yes", "*ab*c", "abxabc"),
        ("yes", "", ""),
        ("no", "", "a"),
        ("yes", r"\\*", "\\x"),
        ("yes", r"*\*", "ab*"),
        ("no", r"*\*", "ab"),
        ("yes", "a.c", "a.c"),
        ("no", "a.c", "abc"),
    ],
)
def test_a_star_stands_for_any_text(expected: str, pattern: str, text: str) -> None:
    assert expected == choose({"Variable": "$.v", "StringMatches": pattern}, text)


def test_no_rule_holds_up_the_process() -> None:
    pattern, text = "*a" * 40 + "*b", "a" * 200_000
    code = (
        f"from trueup.local.stepfunctions.regexes import wildcards; print(wildcards({pattern!r})({text!r}))"
    )
    # A pattern that goes back on its steps takes longer than the sun: the process is killed by then.
    ran = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, timeout=60, check=False
    )
    assert "False\n" == ran.stdout, ran.stderr


def test_a_backslash_that_escapes_nothing_fails_the_state() -> None:
    # The language's specification, StringMatches; `\\\\` and `\\*` are the only escapes.
    states = machine(
        ("Ask", {"Type": "Choice", "Choices": [{"Variable": "$", "StringMatches": r"a\d", "Next": "Yes"}]}),
        ("Yes", passing()),
    )
    assert "States.Runtime" == execute(states, r"a\d").error
