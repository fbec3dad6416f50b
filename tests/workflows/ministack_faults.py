"""What MiniStack does otherwise than AWS and is in the way of our tests: each with the smallest machine that
shows it, and with which cases it stops.

`test_ministack_faults` plays the machines at both endpoints: ours does what AWS does, MiniStack does not.
Once it does, its tests fail for passing, and the fault goes from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

History = list[dict[str, Any]]

ONCE_MORE = {"Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 1}]}
TASK = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True,
        "Parameters": {"QueueUrl": "q", "MessageBody.$": "$.said"}}  # fmt: skip
BUSY = {"Throw": {"Error": "Busy", "Cause": "try again"}}


@dataclass(frozen=True)
class Fault:
    """`mocks` answer the task that is `state`; `as_on_aws` says whether a history is as AWS has it."""

    says: str
    state: Mapping[str, Any]
    mocks: Mapping[str, Any]
    as_on_aws: Callable[[History], bool]
    cases: frozenset[str] = frozenset()
    """The cases of `test_mocked` that it stops, of whatever machine. None: it stops what looks at calls."""


def last(history: History) -> str:
    """How it ended."""
    return str(history[-1]["type"])


def types(history: History) -> set[str]:
    """What happened."""
    return {event["type"] for event in history}


def scheduled(history: History) -> dict[str, Any]:
    """With what the task was called."""
    event = next(event for event in history if event["type"] == "TaskScheduled")
    details: dict[str, Any] = event["taskScheduledEventDetails"]
    return details


ATTEMPTS = Fault(
    "the answer to a mocked task is looked up when its state is entered, and every retry gets the same",
    {**TASK, **ONCE_MORE},
    {"0": BUSY, "1": {"Return": {}}},
    # [dg:sfn-local-test-sm-exec]: the keys are numbers of attempts, retries included.
    lambda history: last(history) == "ExecutionSucceeded",
    frozenset({
        "AcceptFailsInPassing", "AskFailsInPassing", "FanOutFailsInPassing", "LaunchFailsInPassing",
        "LaunchFindsNoRoom", "LaunchForAWordFailsInPassing", "LaunchForAWordFindsNoRoom",
        "NamingFailsInPassing", "NamingFindsNoRoom", "NumberFailsInPassing",
        "PlanFailsInPassing", "PlanFailsInPassingOtherwise", "SettleFailsInPassing",
    }),
)  # fmt: skip
PARAMETERS = Fault(
    "a task is scheduled without its parameters in the history",
    TASK,
    {"0": BUSY},
    # Recorded on AWS: test_send_message.
    lambda history: "parameters" in scheduled(history),
)
SILENT = Fault(
    "a mocked task that succeeds leaves no trace in the history",
    TASK,
    {"0": {"Return": {}}},
    # Recorded on AWS: test_send_message.
    lambda history: {"TaskScheduled", "TaskStarted", "TaskSucceeded"} <= types(history),
)
FAULTS = (ATTEMPTS, PARAMETERS, SILENT)


def configuration() -> dict[str, Any]:
    """The mock configuration for all of them: a machine for each, by its place in the list."""
    names = [f"fault-{number}" for number in range(len(FAULTS))]
    machines = {name: {"TestCases": {"It": {"T": name}}} for name in names}
    answers = {name: dict(fault.mocks) for name, fault in zip(names, FAULTS, strict=True)}
    return {"StateMachines": machines, "MockedResponses": answers}
