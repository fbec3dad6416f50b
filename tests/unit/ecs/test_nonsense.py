"""Bodies that no client of AWS sends: each is refused in words that a person can use, and breaks nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from trueup.local.ecs.api.app import answer
from trueup.local.ecs.api.operations import OPERATIONS
from trueup.local.ecs.api.validation import operation_model

from .ecs_cases import IMAGE, Case, on_a_loop

TARGET = "AmazonEC2ContainerServiceV20141113."
NONSENSE: tuple[Any, ...] = (
    *(
        True,
        0,
        -1,
        10**12,
        10**30,
        1.5,
        "",
        "x",
        "é",
        "job:²",
        "job:" + "9" * 5000,
        ":",
        "/",
        "arn:",
        "a" * 300,
    ),
    *([], [None], ["x"], [[]], [{}], {}, {"x": 1}, {"": None}),
)
PYTHON = re.compile(r"Traceback|<class|NoneType|\w+Error\b|object has no|\bdict\b|\btuple\b|sys\.")


def call(case: Case, operation: str, body: str | bytes) -> tuple[int, dict[str, Any]]:
    """Status and document of the answer."""
    return answer(case.fargate, TARGET + operation, body if isinstance(body, bytes) else body.encode())


@pytest.mark.parametrize("operation", OPERATIONS)
@on_a_loop
async def test_nonsense_in_any_parameter_is_no_fault_of_the_server(operation: str) -> None:
    case = Case()
    sound = {
        "taskDefinition": "job",
        "serviceName": "work",
        "service": "work",
        "cluster": "default",
        "task": "x",
    }
    shape = operation_model(operation).input_shape
    assert shape is not None
    known = {name: value for name, value in sound.items() if name in shape.members}
    for name in OPERATIONS[operation].parameters:
        for value in NONSENSE:
            status, told = call(case, operation, json.dumps({**known, name: value}))
            assert 500 > status, (name, value, told)
            assert not PYTHON.search(told.get("message", "")), (name, value, told)
    await case.fargate.close()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"count": "2"}', "STRING_VALUE cannot be converted to Integer (at count)"),
        ('{"cluster": 2}', "NUMBER_VALUE cannot be converted to String (at cluster)"),
        ('{"enableECSManagedTags": "true"}', "STRING_VALUE cannot be converted to Boolean"),
        ('{"count": 4294967296}', "NUMBER_VALUE cannot be converted to Integer"),
        ('{"tags": [null]}', "NULL_VALUE cannot be converted to Structure (at tags[0])"),
        (
            '{"overrides": {"containerOverrides": [{"cpu": true}]}}',
            "TRUE_VALUE cannot be converted to Integer (at overrides.containerOverrides[0].cpu)",
        ),
        ("[]", "the body has to be an object"),
        ("{", "the body has to be JSON: "),
        (b"\xff", "the body has to be JSON: the text is not UTF-8, from byte 0 on"),
        ('{"count": NaN}', "the body has to be JSON: NaN is not JSON"),
        (
            '{"count": ' + "9" * 5000 + "}",
            "the body has to be JSON: " + "9" * 40 + "… (5000 characters) is larger",
        ),
        ('{"tags": ' + "[" * 100_000, "the body has to be JSON: arrays and objects are nested more than"),
        ('{"cluster": "\\ud800"}', "the body has to be JSON: a string has half of a surrogate pair"),
    ],
)
@on_a_loop
async def test_a_body_that_cannot_be_read_is_refused_with_the_place(body: str | bytes, words: str) -> None:
    """The first words: aws-actions/amazon-ecs-deploy-task-definition#587; the place is ours."""
    status, told = call(Case(), "RunTask", body)
    assert (400, "SerializationException") == (status, told["__type"])
    assert told["message"].startswith(words)


@on_a_loop
async def test_a_parameter_that_is_null_was_not_given() -> None:
    """As clients of languages whose values may be null send them."""
    case = Case()
    container = {"name": "main", "image": IMAGE, "stopTimeout": None, "logConfiguration": None}
    body = json.dumps({"family": "other", "tags": None, "containerDefinitions": [container]})
    status, told = call(case, "RegisterTaskDefinition", body)
    assert 200 == status
    assert {"name": "main", "image": IMAGE} == told["taskDefinition"]["containerDefinitions"][0]
