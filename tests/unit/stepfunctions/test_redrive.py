"""Redriving within Parallels and Maps: only what did not succeed runs again ([dg:redrive-executions])."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.running.execution import Execution

from .harness import Services, World, endless, machine, passing, play, ran

SEND = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "ResultPath": None}


def send(body: Any, **fields: Any) -> dict[str, Any]:
    return {**SEND, "Parameters": {"QueueUrl": "q", "MessageBody": body}, **fields}


class Once:
    """A queue that refuses some messages the first time that it sees them."""

    def __init__(self, *refused: str) -> None:
        self.sent: list[str] = []
        self._refused = list(refused)

    def __call__(self, given: Any) -> Any:
        body = given["MessageBody"]
        self.sent.append(body)
        if body in self._refused:
            self._refused.remove(body)
            raise ServiceFailure("Refused", "not yet")
        return {}


def redriven(definition: Any, given: Any, queue: Once, stop_after: float | None = None) -> Execution:
    """An execution that did not succeed, was redriven, and has ended."""

    async def scene(world: World) -> Execution:
        execution = world.start(world.create(definition), given)
        if stop_after is not None:
            await world.engine.clock.sleep(stop_after)
            execution.stop()
        await execution.ended()
        assert execution.status in ("FAILED", "ABORTED")
        world.api("RedriveExecution", executionArn=execution.arn)
        await execution.ended()
        return execution

    execution: Execution = play(scene, Services(sqs_sendMessage=queue))
    return execution


def test_a_parallel_runs_only_the_branches_again_that_did_not_succeed() -> None:
    queue = Once("bad")
    branches = [
        machine(("G", send("good"))),
        machine(("W", {"Type": "Wait", "Seconds": 1}), ("H", send("before")), ("B", send("bad"))),
    ]
    ended = ran(redriven(machine(("P", {"Type": "Parallel", "Branches": branches})), {"a": 1}, queue))
    assert ("SUCCEEDED", [{"a": 1}, {"a": 1}]) == (ended.status, ended.output)
    assert ["good", "before", "bad", "bad"] == queue.sent
    assert ["ExecutionRedriven", "ParallelStateStarted", "TaskScheduled", "TaskStarted"] == (
        ended.types[ended.types.index("ExecutionRedriven") :][:4]
    )


def test_an_inline_map_keeps_what_its_iterations_have_come_to() -> None:
    queue = Once("b")
    work = machine(("S", {**send("x"), "Parameters": {"QueueUrl": "q", "MessageBody.$": "$"}}))
    loop = {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": work}
    ended = ran(redriven(machine(("M", loop)), ["a", "b", "c"], queue))
    assert ("SUCCEEDED", ["a", "b", "c"]) == (ended.status, ended.output)
    assert ["a", "b", "b", "c"] == queue.sent


def test_an_iteration_goes_on_at_its_failed_state_with_its_variables() -> None:
    queue = Once("b")
    keep = passing(Assign={"mine.$": "$$.Map.Item.Value"}, Result="changed")
    use = {**send("x"), "Parameters": {"QueueUrl": "q", "MessageBody.$": "$mine"}}
    loop = {"Type": "Map", "ItemProcessor": machine(("K", keep), ("U", use))}
    ended = ran(redriven(machine(("M", loop)), ["a", "b"], queue))
    assert ["a", "b", "b"] == queue.sent
    assert 2 == sum(kind == "PassStateEntered" for kind in ended.types)


def test_nested_states_go_on_where_they_were_stopped_from_outside() -> None:
    queue = Once()
    wait = {"Type": "Wait", "Seconds": 10}
    inner = {"Type": "Map", "ItemProcessor": machine(("I", send("inner")), ("W", wait), ("L", send("last")))}
    outer = machine(
        ("P", {"Type": "Parallel", "Branches": [machine(("M", inner)), machine(("O", send("o")))]})
    )
    ended = ran(redriven(outer, [1, 2], queue, stop_after=5))
    assert ("SUCCEEDED", [[1, 2], [1, 2]]) == (ended.status, ended.output)
    assert ["inner", "inner", "last", "last", "o"] == sorted(queue.sent)


def test_what_was_too_much_as_a_whole_is_run_again_as_a_whole() -> None:
    queue = Once()
    keep = passing(Parameters={"x.$": "$.text"})
    branches = [machine((f"S{number}", send("s")), (f"L{number}", keep)) for number in range(2)]
    parallel = {"Type": "Parallel", "Branches": branches}

    async def scene(world: World) -> str | None:
        execution = world.start(world.create(machine(("P", parallel))), {"text": "x" * 200_000})
        await execution.ended()
        world.api("RedriveExecution", executionArn=execution.arn)
        await execution.ended()
        return execution.error

    assert "States.DataLimitExceeded" == play(scene, Services(sqs_sendMessage=queue))
    assert 4 == len(queue.sent)


def test_a_child_of_a_distributed_map_goes_on_within_its_parallel() -> None:
    queue = Once("bad")
    both = {"Type": "Parallel", "Branches": [machine(("G", send("good"))), machine(("B", send("bad")))]}
    config = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    fan_out = {"Type": "Map", "Label": "L", "ItemProcessor": {**config, **machine(("P", both))}}
    nested = {"Type": "Parallel", "Branches": [machine(("M", fan_out))]}
    execution = redriven(machine(("O", nested)), [1], queue)
    assert ("SUCCEEDED", [[[1, 1]]]) == (execution.status, execution.output and execution.output.value)
    assert ["bad", "bad", "good"] == sorted(queue.sent)
    assert [1] == [run.redrive_count for run in execution.map_runs]


@pytest.mark.parametrize(
    ("status", "days"), [("REDRIVABLE", 13.9), ("NOT_REDRIVABLE", 14.1)], ids=["in time", "too late"]
)
def test_an_execution_can_be_redriven_for_14_days(status: str, days: float) -> None:
    # aws-facts section 1.4 [dg:redrive-executions].
    async def scene(world: World) -> str:
        execution = world.start(world.create(machine(("F", {"Type": "Fail"}))))
        await execution.ended()
        await world.engine.clock.sleep(days * 86_400)
        return str(world.api("DescribeExecution", executionArn=execution.arn)["redriveStatus"])

    assert status == play(scene)


def test_an_execution_with_too_many_events_cannot_be_redriven() -> None:
    # aws-facts section 1.4: under 24,999 events.
    async def scene(world: World) -> None:
        execution = world.start(world.create(endless()))
        await execution.ended()
        told = world.api("DescribeExecution", executionArn=execution.arn)
        assert ("FAILED", "NOT_REDRIVABLE") == (told["status"], told["redriveStatus"])
        with pytest.raises(ApiError, match="ExecutionNotRedrivable"):
            world.api("RedriveExecution", executionArn=execution.arn)

    play(scene)
