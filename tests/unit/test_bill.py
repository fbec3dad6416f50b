"""State transitions, counted as AWS charges them.

Sources: aws.amazon.com/step-functions/pricing (each step, each retry); developer guide, "Transitions in Step
Functions" (each child of a Distributed Map, each redrive).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.aws import client
from trueup.local.bill import bill_of, transitions
from trueup.local.serving import listen, url_of
from trueup.local.stepfunctions import stepfunctions


def history(*kinds: str) -> list[dict[str, Any]]:
    """Events that follow each other."""
    return [
        {"id": number, "previousEventId": number - 1, "type": kind} for number, kind in enumerate(kinds, 1)
    ]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["ExecutionStarted", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"], 1),
        (
            ["ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskSucceeded", "SucceedStateEntered"],
            2,
        ),
        # One state, tried three times.
        (["TaskStateEntered", *["TaskScheduled", "TaskStarted", "TaskFailed"] * 3], 3),
        (["TaskStateEntered", "TaskScheduled", "TaskFailed", "ExecutionFailed", "ExecutionRedriven"], 2),
    ],
)
def test_a_step_a_retry_and_a_redrive_are_one_each(kinds: list[str], expected: int) -> None:
    assert expected == transitions(history(*kinds))


# A choice; a call that nobody answers, twice; a map of three children with two states each; the end.
ROLE = "arn:aws:iam::000000000000:role/machines"
LEAF = {"Type": "Pass", "Next": "Done"}
MACHINE = {
    "StartAt": "Which?",
    "States": {
        "Which?": {"Type": "Choice", "Choices": [{"Variable": "$", "IsPresent": True, "Next": "Ask"}]},
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::dynamodb:getItem",
            "Parameters": {"TableName": "t", "Key": {"k": {"S": "v"}}},
            "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.caught", "Next": "Fan out"}],
            "End": True,
        },
        "Fan out": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "Leaf",
                "States": {"Leaf": LEAF, "Done": {"Type": "Succeed"}},
            },
            "End": True,
        },
    },
}


def test_the_bill_of_a_run_is_that_of_all_executions_that_served_it() -> None:
    with listen() as nobody:
        nowhere = url_of(nobody)
    with stepfunctions({"*": nowhere}, scale=0.01) as url:
        sfn = client("stepfunctions", url)
        arn = sfn.create_state_machine(
            name="m", definition=json.dumps(MACHINE), roleArn="arn:aws:iam::0:role/r"
        )["stateMachineArn"]
        for name in ("run-1", "run-1-apply-1", "other-1"):
            started = sfn.start_execution(stateMachineArn=arn, name=name, input='{"items": [1, 2, 3]}')
            while "RUNNING" == sfn.describe_execution(executionArn=started["executionArn"])["status"]:
                pass
        bill = bill_of(sfn, [arn], "run")
    # Choice 1, Ask 1 and its retry 1, Fan out 1, three children at 1 and their two states: 4 + 9.
    assert (2 * 4, 2 * 13) == (bill.executions, bill.transitions)
