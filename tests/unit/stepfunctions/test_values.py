"""JSON that Python cannot carry ends in a sentence, wherever it comes in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.intrinsics import parse_call
from trueup.local.stepfunctions.paths import parse_path
from trueup.local.stepfunctions.values import MAX_DEPTH, from_text, to_text

from .harness import ROLE, World, execute, machine, passing, play

DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
ODD = {
    "half of a surrogate pair": r'["\ud83d"]',
    "larger than any number": "[1e400]",
    "larger than any number here": "9" * 400,
    "nested more than": DEEP,
    r"99… \(5000 characters\) is larger than any number": "9" * 5000,
    "byte order mark": "\ufeff{}",
}


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("binary", [False, True])
def test_what_cannot_go_out_again_does_not_come_in(said: str, binary: bool) -> None:
    text = ODD[said]
    with pytest.raises(ValueError, match=said):
        from_text(text.encode() if binary else text)


def test_bytes_that_are_no_text_do_not_come_in() -> None:
    with pytest.raises(ValueError, match="the text is not UTF-8, from byte 1 on"):
        from_text(b'"\xed\xa0\x80"')


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000])
def test_no_depth_ends_the_process(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|Expecting"):
        from_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "[1e308]",
        "-" + "9" * 308,
        f'"{"9" * 400}"',
        r'["\ud83d\ude00"]',
        r'["\\ud83d"]',
        DEEP[1:-1],
        "[" + "[]," * 1000 + "[]]",
    ],
)
def test_everything_else_goes_out_as_it_came(text: str) -> None:
    assert json.loads(text) == json.loads(to_text(from_text(text)).encode())


@pytest.mark.parametrize("text", ODD.values())
def test_an_execution_is_not_started_with_it(text: str) -> None:
    async def scene(world: World) -> None:
        arn = world.create(machine(("P", passing())))
        with pytest.raises(ApiError) as refused:
            world.api("StartExecution", stateMachineArn=arn, input=text)
        assert "InvalidExecutionInput" == refused.value.name

    play(scene)


@pytest.mark.parametrize("text", ODD.values())
def test_a_machine_is_not_made_of_it(text: str) -> None:
    async def scene(world: World) -> None:
        definition = json.dumps(machine(("P", passing(Result=0)))).replace("0", text)
        with pytest.raises(ApiError) as refused:
            world.api("CreateStateMachine", name="m", definition=definition, roleArn=ROLE)
        assert "InvalidDefinition" == refused.value.name

    play(scene)


@pytest.mark.parametrize(
    "call",
    [
        "States.MathAdd($.large, 1)",
        "States.MathAdd(9223372036854775807, 1)",
        "States.ArrayRange(1, $.large, 1)",
        "States.ArrayRange(-9223372036854775808, 9223372036854775807, 1)",
        "States.ArrayRange(9223372036854775807, -9223372036854775808, -1)",
        "States.StringToJson($.text)",
        "States.MathRandom(0, $.large)",
    ],
)
@pytest.mark.parametrize("text", ODD.values())
def test_a_function_fails_the_state(call: str, text: str) -> None:
    ran = execute(machine(("P", passing(Parameters={"v.$": call}))), {"large": 1e30, "text": text})
    assert "States.IntrinsicFailure" == ran.error


@pytest.mark.parametrize("call", ["States.MathAdd(1e400, 1)", f"States.MathAdd({'9' * 5000}, 1)"])
def test_a_literal_is_refused_with_the_definition(call: str) -> None:
    with pytest.raises(ValueError, match=r"larger than any number|digits"):
        parse_call(call)


@pytest.mark.parametrize(
    "condition",
    ["@.a == 1e400", "!" * 5000 + "@.a", "(" * 5000 + "@.a", "@.a in " + "[" * 5000, "@.a =~ /(/"],
)
def test_a_filter_is_refused_with_the_definition(condition: str) -> None:
    with pytest.raises(ValueError, match=r"larger|nested|not a regular expression"):
        parse_path(f"$[?({condition})]")


@pytest.mark.parametrize(
    "fields", [{"Parameters": {"v.$": "$"}}, {"Assign": {"v.$": "$"}, "Parameters": {"v.$": "$"}}]
)
def test_data_that_a_state_wraps_again_and_again_fails_it(fields: dict[str, Any]) -> None:
    endless = {"Type": "Choice", "Choices": [{"Variable": "$.never", "IsPresent": True, "Next": "End"}],
               "Default": "Wrap"}  # fmt: skip
    states = machine(("Wrap", passing(**fields, Next="Ask")), ("Ask", endless), ("End", {"Type": "Succeed"}))
    ran = execute(states)
    assert "States.Runtime" == ran.error
    assert "nested more than" in str(ran.cause)
