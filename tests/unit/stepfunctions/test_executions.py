"""Executions: names, stopping, limits, redriving, and what EventBridge hears.

Where a test names no source: the operations' documentation in [botocore], and aws-facts sections 1.1 and
1.4. Scales of time, and how many executions one process bears, are ours.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.running.execution import Execution

from .harness import EPOCH, ROLE, Services, World, endless, execute, machine, passing, play, ran, refuse

SLOW = machine(("W", {"Type": "Wait", "Seconds": 60}))


def refused(world: World, operation: str, **body: Any) -> str:
    with pytest.raises(ApiError) as raised:
        world.api(operation, **body)
    return raised.value.name


def test_the_same_name_and_input_is_the_same_execution_while_it_runs() -> None:
    # aws-facts section 1.9.
    async def scene(world: World) -> None:
        arn = world.create(SLOW)
        first = world.api("StartExecution", stateMachineArn=arn, name="n", input="{}")
        assert first == world.api("StartExecution", stateMachineArn=arn, name="n", input="{}")
        other = {"stateMachineArn": arn, "name": "n", "input": '{"a":1}'}
        assert "ExecutionAlreadyExists" == refused(world, "StartExecution", **other)
        await asyncio.sleep(61)
        assert "ExecutionAlreadyExists" == refused(world, "StartExecution", **{**other, "input": "{}"})

    play(scene)


@pytest.mark.parametrize(
    ("error", "body"),
    [
        ("InvalidName", {"name": "a:b"}),
        ("ValidationException", {"name": "x" * 81}),
        ("InvalidExecutionInput", {"input": "{"}),
        ("ValidationException", {"input": json.dumps("x" * 262_144)}),
    ],
)
def test_a_start_is_refused(error: str, body: dict[str, str]) -> None:
    async def scene(world: World) -> None:
        assert error == refused(world, "StartExecution", stateMachineArn=world.create(SLOW), **body)

    play(scene)


def test_stopping_ends_it_at_once_with_the_given_words() -> None:
    async def scene(world: World) -> Any:
        execution = world.start(world.create(SLOW))
        await asyncio.sleep(10)
        world.api("StopExecution", executionArn=execution.arn, error="Mine", cause="so")
        stopped = world.api("StopExecution", executionArn=execution.arn)
        assert execution.stopped_at == stopped["stopDate"]
        return ran(execution)

    ended = play(scene)
    assert ("ABORTED", "Mine", "so", 10) == (ended.status, ended.error, ended.cause, ended.seconds)
    assert ["WaitStateEntered", "ExecutionAborted"] == ended.types[-2:]
    assert 0 == ended.events[-1]["previousEventId"]  # measured on AWS: floci-io/floci#2965


def test_the_machine_s_timeout_ends_the_execution() -> None:
    # Measured on AWS: the history alone gives a reason, and points to nothing (floci-io/floci#2733, #2965).
    ended = execute({**SLOW, "TimeoutSeconds": 5})
    assert ("TIMED_OUT", None, 5) == (ended.status, ended.error, ended.seconds)
    assert ("ExecutionTimedOut", 0) == (ended.types[-1], ended.events[-1]["previousEventId"])
    assert {"error": "States.Timeout"} == ended.details("ExecutionTimedOut")


def test_a_scale_shortens_waits_and_timeouts_alike() -> None:
    # Which of two comes first does not change.
    ended = execute(SLOW, clock=Clock(0.01, epoch=EPOCH))
    assert ("SUCCEEDED", 0.6) == (ended.status, ended.seconds)
    ended = execute({**SLOW, "TimeoutSeconds": 5}, clock=Clock(0.01, epoch=EPOCH))
    assert ("TIMED_OUT", 0.05) == (ended.status, ended.seconds)


def test_timeouts_can_keep_real_time_while_waits_are_short() -> None:
    ended = execute({**SLOW, "TimeoutSeconds": 5}, clock=Clock(0.01, timeouts=1, epoch=EPOCH))
    assert ("SUCCEEDED", 0.6) == (ended.status, ended.seconds)


def test_an_update_does_not_reach_executions_under_way() -> None:
    async def scene(world: World) -> Any:
        arn = world.create(machine(("W", {"Type": "Wait", "Seconds": 9}), ("P", passing(Result="old"))))
        execution = world.start(arn)
        await asyncio.sleep(1)
        world.api(
            "UpdateStateMachine",
            stateMachineArn=arn,
            definition=json.dumps(machine(("P", passing(Result="new")))),
        )
        await execution.ended()
        second = world.start(arn)
        await second.ended()
        return ran(execution).output, ran(second).output

    assert ("old", "new") == play(scene)


def test_a_machine_is_deleted_when_its_executions_have_ended_at_their_next_transition() -> None:
    # [botocore] DeleteStateMachine.
    async def scene(world: World) -> None:
        arn = world.create(machine(("W", {"Type": "Wait", "Seconds": 60}), ("P", passing())))
        execution = world.start(arn)
        await asyncio.sleep(1)
        world.api("DeleteStateMachine", stateMachineArn=arn)
        assert "DELETING" == world.api("DescribeStateMachine", stateMachineArn=arn)["status"]
        for operation in ("StartExecution", "UpdateStateMachine"):
            body = {"definition": json.dumps(SLOW)} if operation == "UpdateStateMachine" else {}
            assert "StateMachineDeleting" == refused(world, operation, stateMachineArn=arn, **body)
        await execution.ended()
        ended = ran(execution)
        assert ("ABORTED", 60) == (ended.status, ended.seconds)
        assert ["WaitStateExited", "ExecutionAborted"] == ended.types[-2:]
        assert "StateMachineDoesNotExist" == refused(world, "DescribeStateMachine", stateMachineArn=arn)

    play(scene)


def test_a_machine_that_runs_nothing_is_deleted_at_once() -> None:
    async def scene(world: World) -> None:
        arn = world.create(SLOW)
        world.api("DeleteStateMachine", stateMachineArn=arn)
        assert "StateMachineDoesNotExist" == refused(world, "DescribeStateMachine", stateMachineArn=arn)
        world.api("DeleteStateMachine", stateMachineArn=arn)

    play(scene)


def told_of(execution: Execution, status: str) -> dict[str, Any]:
    """The detail of an event, of an execution that has no output yet."""
    nothing = ("output", "outputDetails", "error", "cause", "redriveDate")
    return dict.fromkeys((*nothing, "stateMachineVersionArn", "stateMachineAliasArn")) | {
        "executionArn": execution.arn,
        "stateMachineArn": execution.origin.machine_arn,
        "name": execution.name,
        "status": status,
        "startDate": int(EPOCH * 1000),
        "stopDate": None if status == "RUNNING" else int(EPOCH * 1000),
        "input": '{"a": 1}',
        "inputDetails": {"included": True},
        "redriveCount": 0,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": f"Execution is {status} and cannot be redriven",
    }


def test_event_bridge_hears_of_the_start_and_the_end() -> None:
    # Recorded on AWS: test_event_bridge_events_base.
    async def scene(world: World) -> None:
        execution = world.start(world.create(machine(("P", passing()))), {"a": 1})
        await execution.ended()
        assert ["RUNNING", "SUCCEEDED"] == [event["detail"]["status"] for event in world.seen]
        shown = {"output": '{"a": 1}', "outputDetails": {"included": True}}
        for event, status, more in zip(world.seen, ("RUNNING", "SUCCEEDED"), ({}, shown), strict=True):
            assert ("0", "aws.states", "Step Functions Execution Status Change") == (
                event["version"],
                event["source"],
                event["detail-type"],
            )
            assert [execution.arn] == event["resources"]
            assert told_of(execution, status) | more == event["detail"]

    play(scene)


def test_a_redrive_goes_on_at_the_state_that_failed_with_its_input_and_variables() -> None:
    answers = [refuse("ResourceNotFoundException"), lambda _: {"Item": {}}]
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:dynamodb:getItem",
        "Parameters": {"TableName.$": "$v", "Key": {}},
    }

    async def scene(world: World) -> None:
        states = machine(
            ("A", passing(Assign={"v": "t"})),
            ("T", task),
            ("E", passing(Parameters={"n.$": "$$.Execution.RedriveCount"})),
        )
        execution = world.start(world.create(states))
        await execution.ended()
        described = world.api("DescribeExecution", executionArn=execution.arn)
        assert ("FAILED", "REDRIVABLE") == (described["status"], described["redriveStatus"])
        world.api("RedriveExecution", executionArn=execution.arn)
        await execution.ended()
        ended = ran(execution)
        assert ("SUCCEEDED", {"n": 1}) == (ended.status, ended.output)
        assert (1, 1) == (ended.types.count("PassStateEntered") - 1, ended.types.count("TaskStateEntered"))
        ids = [event["id"] for event in ended.events]
        assert list(range(1, len(ids) + 1)) == ids

    def answer(given: Any) -> Any:
        return answers.pop(0)(given)

    play(scene, Services(dynamodb_getItem=answer))


def test_what_succeeded_cannot_be_redriven() -> None:
    async def scene(world: World) -> None:
        execution = world.start(world.create(machine(("P", passing())), "ok"))
        await execution.ended()
        assert "ExecutionNotRedrivable" == refused(world, "RedriveExecution", executionArn=execution.arn)

    play(scene)


def test_history_pages_in_both_directions_and_without_data() -> None:
    async def scene(world: World) -> None:
        execution = world.start(world.create(machine(("A", passing()), ("B", passing()))), {"a": 1})
        await execution.ended()
        first = world.api("GetExecutionHistory", executionArn=execution.arn, maxResults=4)
        second = world.api(
            "GetExecutionHistory", executionArn=execution.arn, maxResults=4, nextToken=first["nextToken"]
        )
        assert [1, 2, 3, 4, 5, 6] == [event["id"] for event in first["events"] + second["events"]]
        assert "nextToken" not in second
        last = world.api("GetExecutionHistory", executionArn=execution.arn, maxResults=1, reverseOrder=True)
        assert ["ExecutionSucceeded"] == [event["type"] for event in last["events"]]
        bare = world.api("GetExecutionHistory", executionArn=execution.arn, includeExecutionData=False)
        assert "input" not in bare["events"][0]["executionStartedEventDetails"]
        assert "InvalidToken" == refused(
            world, "GetExecutionHistory", executionArn=execution.arn, nextToken="x"
        )

    play(scene)


def test_creating_the_same_machine_twice_gives_it_and_another_of_its_name_is_refused() -> None:
    async def scene(world: World) -> None:
        assert world.create(SLOW) == world.create(SLOW)
        other = json.dumps(machine(("P", passing())))
        body = {"name": "m", "definition": other, "roleArn": "arn:aws:iam::000000000000:role/machines"}
        assert "StateMachineAlreadyExists" == refused(world, "CreateStateMachine", **body)
        assert "InvalidDefinition" == refused(
            world, "CreateStateMachine", **{**body, "name": "n", "definition": "{}"}
        )

    play(scene)


def test_another_role_or_other_tags_are_the_same_request_and_change_nothing() -> None:
    # [botocore] CreateStateMachine: the idempotency check leaves roleArn and tags out.
    async def scene(world: World) -> None:
        arn = world.create(SLOW)
        again = {
            "name": "m",
            "definition": json.dumps(SLOW),
            "roleArn": "arn:aws:iam::000000000000:role/other",
        }
        tags = [{"key": "k", "value": "v"}]
        assert arn == world.api("CreateStateMachine", **again, tags=tags)["stateMachineArn"]
        assert ROLE == world.api("DescribeStateMachine", stateMachineArn=arn)["roleArn"]
        assert [] == world.api("ListTagsForResource", resourceArn=arn)["tags"]
        traced = {**again, "tracingConfiguration": {"enabled": True}}
        assert "StateMachineAlreadyExists" == refused(world, "CreateStateMachine", **traced)

    play(scene)


def test_tracing_and_encryption_are_told_as_they_were_asked_for() -> None:
    # [botocore] DescribeStateMachine. Nothing is traced or encrypted here.
    async def scene(world: World) -> None:
        asked = {
            "tracingConfiguration": {"enabled": True},
            "encryptionConfiguration": {"type": "AWS_OWNED_KEY"},
        }
        body = {"name": "m", "definition": json.dumps(SLOW), "roleArn": ROLE}
        arn = world.api("CreateStateMachine", **body, **asked)["stateMachineArn"]
        told = world.api("DescribeStateMachine", stateMachineArn=arn)
        assert asked == {name: told[name] for name in asked}
        told = world.api("DescribeStateMachine", stateMachineArn=world.create(SLOW, "n"))
        assert {"enabled": False} == told["tracingConfiguration"]

    play(scene)


def test_no_rate_of_calls_is_limited() -> None:
    # aws-facts section 1.2: 1,300 starts at once are the most in the largest regions.
    async def scene(world: World) -> None:
        arn = world.create(machine(("P", passing())))
        for _ in range(1_301):
            world.start(arn)

    play(scene)


def test_validation_tells_every_problem_with_its_place() -> None:
    async def scene(world: World) -> None:
        answer = world.api(
            "ValidateStateMachineDefinition", definition=json.dumps(machine(("A", passing(X=1))))
        )
        assert ("FAIL", "/States/A") == (answer["result"], answer["diagnostics"][0]["location"])
        answer = world.api("ValidateStateMachineDefinition", definition=json.dumps(SLOW))
        assert {"result": "OK", "diagnostics": [], "truncated": False} == answer

    play(scene)


def test_an_operation_that_is_not_there_is_refused_by_name() -> None:
    async def scene(world: World) -> None:
        with pytest.raises(ApiError, match="Reboot is not implemented; supported are"):
            world.api("Reboot")

    play(scene)


def test_a_thousand_executions_wait_as_coroutines() -> None:
    async def scene(world: World) -> set[str]:
        arn = world.create(SLOW)
        executions = [world.start(arn) for _ in range(1_000)]
        await asyncio.gather(*(execution.ended() for execution in executions))
        return {execution.status for execution in executions}

    assert {"SUCCEEDED"} == play(scene)


def test_an_endless_loop_of_one_execution_leaves_the_others_their_turn() -> None:
    async def scene(world: World) -> str:
        world.start(world.create(endless(), "loop"))
        short = world.start(world.create(machine(("P", passing())), "short"))
        for _ in range(20):
            await asyncio.sleep(0)
        return short.status

    assert "SUCCEEDED" == play(scene)


def test_what_is_no_arn_is_refused_as_such() -> None:
    async def scene(world: World) -> None:
        assert "InvalidArn" == refused(world, "DescribeStateMachine", stateMachineArn="m")
        assert "InvalidArn" == refused(world, "DescribeExecution", executionArn="e")

    play(scene)


def test_executions_are_listed_by_when_they_ended_or_since_when_they_run() -> None:
    # [botocore] ListExecutions
    async def scene(world: World) -> None:
        arn = world.create(machine(("W", {"Type": "Wait", "SecondsPath": "$"})))
        for name, seconds in (("slow", 10), ("quick", 1), ("runs", 99)):
            world.start(arn, seconds, name)
        await asyncio.sleep(0.5)
        world.start(arn, 99, "later")
        await asyncio.sleep(20)
        listed = world.api("ListExecutions", stateMachineArn=arn)["executions"]
        assert ["slow", "quick", "later", "runs"] == [each["name"] for each in listed]

    play(scene)


def test_an_execution_tells_the_definition_that_it_runs_not_the_machine_s_newest() -> None:
    async def scene(world: World) -> None:
        arn = world.create(SLOW)
        execution = world.start(arn)
        assert "revisionId" not in world.api("DescribeStateMachine", stateMachineArn=arn)
        newer = json.dumps(machine(("P", passing())))
        world.api("UpdateStateMachine", stateMachineArn=arn, definition=newer)
        described = world.api("DescribeStateMachine", stateMachineArn=arn)
        assert (newer, True) == (described["definition"], "revisionId" in described)
        told = world.api("DescribeStateMachineForExecution", executionArn=execution.arn)
        assert SLOW == json.loads(told["definition"])

    play(scene)


def test_what_an_execution_runs_is_told_as_it_was_written_and_when_it_was_changed() -> None:
    # [botocore] DescribeStateMachineForExecution: revisionId and updateDate are those of the revision.
    async def scene(world: World) -> None:
        arn = world.create(SLOW)
        await asyncio.sleep(5)
        logging = {"level": "OFF", "includeExecutionData": True}
        text = json.dumps(SLOW, indent=2)
        body = {"definition": text, "loggingConfiguration": logging}
        update = world.api("UpdateStateMachine", stateMachineArn=arn, **body)
        await asyncio.sleep(5)
        told = world.api("DescribeStateMachineForExecution", executionArn=world.start(arn).arn)
        assert (text, logging) == (told["definition"], told["loggingConfiguration"])
        assert (update["updateDate"], update["revisionId"]) == (told["updateDate"], told["revisionId"])

    play(scene)
