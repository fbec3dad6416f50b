"""What Step Functions would charge for a run: the state transitions in the histories of its executions.

AWS counts a transition each time a step is executed, each retry as one more (aws.amazon.com/step-functions/
pricing), one for each child execution that a Distributed Map starts, and one for a redrive (developer guide,
"Transitions in Step Functions", concepts-transitions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ATTEMPTS = frozenset({"TaskScheduled", "LambdaFunctionScheduled", "ActivityScheduled"})
_REDRIVEN = frozenset({"ExecutionRedriven"})


@dataclass(frozen=True, slots=True)
class Bill:
    """How many executions served a run, and how many transitions they made."""

    executions: int = 0
    transitions: int = 0

    def plus(self, other: Bill) -> Bill:
        """Both together."""
        return Bill(self.executions + other.executions, self.transitions + other.transitions)


def bill_of(stepfunctions: Any, machines: Iterable[str], run_id: str) -> Bill:
    """The bill of a run; `machines` are the ARNs of those whose executions are named after runs."""
    total = Bill()
    for machine in machines:
        for execution in _executions(stepfunctions, stateMachineArn=machine):
            if execution["name"].startswith(f"{run_id}-"):
                total = total.plus(_whole(stepfunctions, execution["executionArn"]))
    return total


def _whole(stepfunctions: Any, arn: str) -> Bill:
    """An execution with the children of its Distributed Maps, each of which costs a transition to start."""
    total = Bill(1, transitions(_history(stepfunctions, arn)))
    for page in stepfunctions.get_paginator("list_map_runs").paginate(executionArn=arn):
        for run in page["mapRuns"]:
            for child in _executions(stepfunctions, mapRunArn=run["mapRunArn"]):
                total = total.plus(_whole(stepfunctions, child["executionArn"])).plus(Bill(0, 1))
    return total


def transitions(events: Iterable[Mapping[str, Any]]) -> int:
    """The transitions of one execution, given its history."""
    count = 0
    entered: set[int] = set()
    for event in events:
        kind = event["type"]
        if kind.endswith("StateEntered"):
            entered.add(event["id"])
            count += 1
        elif kind in _REDRIVEN or (kind in _ATTEMPTS and event["previousEventId"] not in entered):
            count += 1  # an attempt that does not follow its state's beginning is a retry
    return count


def _executions(stepfunctions: Any, **of: str) -> Iterator[dict[str, Any]]:
    for page in stepfunctions.get_paginator("list_executions").paginate(**of):
        yield from page["executions"]


def _history(stepfunctions: Any, arn: str) -> Iterator[dict[str, Any]]:
    pages = stepfunctions.get_paginator("get_execution_history")
    for page in pages.paginate(executionArn=arn, includeExecutionData=False):
        yield from page["events"]
