"""Intrinsic functions ([dg:intrinsic-functions])."""

from __future__ import annotations

import uuid

import pytest

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.errors import EvaluationError
from trueup.local.stepfunctions.intrinsics import parse_call
from trueup.local.stepfunctions.scope import Scope, Variables

DATA = {"name": "Ada", "list": [1, 2, 2, 3], "object": {"a": 1}, "text": '{"x": [1]}', "nothing": None}


def evaluate(text: str) -> object:
    return parse_call(text).evaluate(Scope(DATA, dict, Variables(), Chance(1)))


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (
            "Hello Ada of null and [1, 2, 2, 3] in {a=1}",
            "States.Format('Hello {} of {} and {} in {}', $.name, $.nothing, $.list, $.object)",
        ),
        (None, "States.StringToJson($.nothing)"),
        (None, "States.StringToJson(' ')"),
        ("{} it's \\", r"States.Format('\{\} it\'s \\')"),
        ({"x": [1]}, "States.StringToJson($.text)"),
        ('{"a":1}', "States.JsonToString($.object)"),
        ([], "States.Array()"),
        ([1, "two", None, True, -3.5], "States.Array(1, 'two', null, true, -3.5)"),
        ([[1, 2], [2, 3]], "States.ArrayPartition($.list, 2)"),
        (True, "States.ArrayContains($.list, 3)"),
        (False, "States.ArrayContains($.list, '3')"),
        ([1, 4, 7], "States.ArrayRange(1, 9, 3)"),
        ([3, 2, 1], "States.ArrayRange(3, 1, -1)"),
        (2, "States.ArrayGetItem($.list, 1)"),
        (4, "States.ArrayLength($.list)"),
        ([1, 2, 3], "States.ArrayUnique($.list)"),
        ("SGVsbG8=", "States.Base64Encode('Hello')"),
        ("Hello", "States.Base64Decode('SGVsbG8=')"),
        ("8b1a9953c4611296a827abf8c47804d7", "States.Hash('Hello', 'MD5')"),
        ({"a": 1, "x": [1]}, "States.JsonMerge($.object, States.StringToJson($.text), false)"),
        (3, "States.MathAdd(5, -2)"),
        (["a", "b", "c"], "States.StringSplit('a.b+c', '.+')"),
        (["Hello", "World"], "States.StringSplit('Hello\nWorld', '\n')"),
    ],
)
def test_a_function_gives(expected: object, text: str) -> None:
    assert expected == evaluate(text)


def test_uuids_are_of_version_4() -> None:
    assert 4 == uuid.UUID(str(evaluate("States.UUID()"))).version


def test_random_numbers_reach_their_start_and_not_their_end_and_repeat_with_a_seed() -> None:
    assert {1, 2} == {evaluate(f"States.MathRandom(1, 3, {seed})") for seed in range(0, 10**15, 10**14)}
    # java.util.Random: nextInt(100) gives 60 first with the seed 0, nextInt(10) gives 0 with 42.
    assert (61, 7) == (evaluate("States.MathRandom(1, 101, 0)"), evaluate("States.MathRandom(7, 17, 42)"))


@pytest.mark.parametrize(
    "text",
    [
        "States.StringToJson('not json')",
        "States.ArrayGetItem($.list, 4)",
        "States.ArrayRange(0, 1000, 1)",
        "States.ArrayPartition($.list, 0)",
        "States.JsonMerge($.object, $.object, true)",
        "States.Format('{}')",
        "States.Hash('x', 'SHA-3')",
        "States.ArrayLength($.name)",
    ],
)
def test_wrong_arguments_are_an_intrinsic_failure(text: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        evaluate(text)
    assert "States.IntrinsicFailure" == raised.value.error


def test_an_argument_that_is_not_there_is_named_with_the_input() -> None:
    with pytest.raises(EvaluationError) as raised:
        parse_call("States.ArrayLength($.missing)").evaluate(Scope({"a": 1}, dict, Variables(), Chance(1)))
    assert "States.Runtime" == raised.value.error
    assert (
        "The function 'States.ArrayLength($.missing)' had the following error: The JsonPath argument for the "
        "field '$.missing' could not be found in the input '{\"a\":1}'" == raised.value.message
    )


@pytest.mark.parametrize(
    ("expected", "text"),
    [(3, "States.MathAdd(1.5, 1)"), (-1, "States.MathAdd(-1.5, 0)"), (2, "States.MathAdd(1.4, 1)")],
)
def test_fractions_are_rounded_to_the_nearest_whole_number(expected: int, text: str) -> None:
    # [dg:intrinsic-functions]: States.MathAdd.
    assert expected == evaluate(text)


@pytest.mark.parametrize(
    "text",
    [
        r"States.Format('a\d{}', 1)",
        r"States.Format('a\\\d{}', 1)",
        "States.Nope()",
        "States.UUID(1)",
        "States.Array(1",
        'States.Array("double")',
        "States.Array(1) x",
    ],
)
def test_what_cannot_be_read_is_refused_when_the_machine_is_created(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_call(text)
