"""ECS and Step Functions behind their ports: what is asked for, and what each answer means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import product
from typing import Any

import botocore.session
import pytest
from botocore.stub import ANY, Stubber

from trueup.aws.callbacks import TaskToken
from trueup.aws.ecs import Ecs
from trueup.aws.executions import StateMachine
from trueup.aws.logs import TaskLogs
from trueup.errors import NotFound, RequestError, StoreUnavailable, TrueupError
from trueup.exits import Exit
from trueup.platform import Ended, TaskState
from trueup.worker.callback import tell
from trueup.worker.main import make_callback

TASK = "arn:aws:ecs:eu-west-1:123456789012:task/trueup/0123"
MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:trueup-backfill"
EXECUTION = "arn:aws:states:eu-west-1:123456789012:execution:trueup-backfill:run-1"
DIGEST = "sha256:" + "a" * 64


# One for all: each reads the descriptions of services anew.
_session = cache(botocore.session.get_session)


def stubbed(service: str) -> tuple[Any, Stubber]:
    """A client that answers what it is told to, in order, and checks what it is asked."""
    client = _session().create_client(
        service, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    return client, Stubber(client)


@pytest.fixture
def ecs() -> Iterator[tuple[Ecs, Stubber]]:
    client, stub = stubbed("ecs")
    with stub:
        yield Ecs(client, "trueup", "stack"), stub
        stub.assert_no_pending_responses()


@pytest.fixture
def machine() -> Iterator[tuple[StateMachine, Stubber]]:
    client, stub = stubbed("stepfunctions")
    with stub:
        yield StateMachine(client, MACHINE), stub
        stub.assert_no_pending_responses()


@pytest.fixture
def token() -> Iterator[tuple[TaskToken, Stubber]]:
    client, stub = stubbed("stepfunctions")
    with stub:
        yield TaskToken(client, "token"), stub
        stub.assert_no_pending_responses()


def described(**task: Any) -> dict[str, Any]:
    """The answer of DescribeTasks."""
    return {"tasks": [{"taskArn": TASK, **task}], "failures": []}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (described(lastStatus="PROVISIONING"), TaskState.ALIVE),
        (described(lastStatus="RUNNING"), TaskState.ALIVE),
        (described(lastStatus="STOPPING"), TaskState.ALIVE),
        (described(lastStatus="STOPPED"), TaskState.STOPPED),
        ({"tasks": [], "failures": [{"arn": TASK, "reason": "MISSING"}]}, TaskState.MISSING),
    ],
)
def test_only_stopped_is_stopped(ecs: tuple[Ecs, Stubber], answer: Any, state: TaskState) -> None:
    platform, stub = ecs
    stub.add_response("describe_tasks", answer, {"cluster": "trueup", "tasks": [TASK]})
    assert state is platform.state(TASK)


def test_a_task_that_ecs_does_not_know_needs_no_stopping(ecs: tuple[Ecs, Stubber]) -> None:
    platform, stub = ecs
    stub.add_response("stop_task", {}, {"cluster": "trueup", "task": TASK, "reason": "over"})
    stub.add_client_error("stop_task", "InvalidParameterException", "The referenced task was not found.")
    stub.add_client_error("stop_task", "AccessDeniedException")
    platform.stop(TASK, "over")
    platform.stop(TASK, "over")
    with pytest.raises(StoreUnavailable, match="AccessDenied"):
        platform.stop(TASK, "over")


def ordered(arn: str, status: str, *variables: tuple[str, Any]) -> dict[str, Any]:
    """A task as DescribeTasks has it, with what its container was told."""
    told = [{"name": name, "value": json.dumps(value)} for name, value in variables]
    overrides = {"containerOverrides": [{"name": "job", "environment": told}]}
    return {"taskArn": arn, "lastStatus": status, "overrides": overrides}


def test_the_tasks_of_a_run_are_found_by_what_they_were_told(ecs: tuple[Ecs, Stubber]) -> None:
    platform, stub = ecs
    ours = {"runId": "run-1", "launch": 3}
    found = [
        ordered("naming", "RUNNING", ("TRUEUP_NAMING", {"runId": "run-1", "launch": 2})),
        ordered("hangs", "PENDING", ("OTHER", 1), ("TRUEUP_ORDER", ours)),
        ordered("other", "RUNNING", ("TRUEUP_ORDER", {**ours, "runId": "run-2"})),
        ordered("asked", "DEACTIVATING", ("TRUEUP_ORDER", {**ours, "launch": 4})),
        ordered("over", "STOPPED", ("TRUEUP_ORDER", ours)),
        {"taskArn": "not-ours", "lastStatus": "RUNNING"},
    ]
    pages = {
        ("read", "RUNNING"): found[:1],
        ("write", "RUNNING"): found[1:3],
        ("write", "STOPPED"): found[3:],
    }
    for mode, wanted in product(("read", "write"), ("RUNNING", "STOPPED")):
        asked = {"cluster": "trueup", "family": f"stack-job-{mode}", "desiredStatus": wanted}
        page = pages.get((mode, wanted), [])
        arns = [task["taskArn"] for task in page]
        stub.add_response("list_tasks", {"taskArns": arns}, asked)
        if page:
            stub.add_response("describe_tasks", {"tasks": page}, {"cluster": "trueup", "tasks": arns})
    assert {"naming": 2, "hangs": 3, "asked": 4} == platform.alive_of("run-1", "job")


NO_ORDERS = [
    *("x", "", "[]", "5", "null", "{}", '{"launch": 3}', '{"runId": "run-1"}', "[" * 8_000, "1" * 5_000),
    *('{"runId": "run-1", "launch": "3"}', '{"runId": "run-1", "launch": true}', '{"runId": 1, "launch": 3}'),
]


def by_hand(arn: str, status: str, variable: dict[str, str]) -> dict[str, Any]:
    """A task that somebody started in the job's family, with a variable of their own."""
    found = ordered(arn, status)
    found["overrides"]["containerOverrides"][0]["environment"] = [variable]
    return found


@pytest.mark.parametrize(
    "variable",
    [
        {"name": "TRUEUP_ORDER"},
        {"value": "x"},
        *({"name": "TRUEUP_ORDER", "value": text} for text in NO_ORDERS),
    ],
)
def test_a_task_that_was_started_by_hand_with_no_order_of_ours_is_none_of_a_run(
    ecs: tuple[Ecs, Stubber], variable: dict[str, str]
) -> None:
    platform, stub = ecs
    ours = ("TRUEUP_ORDER", {"runId": "run-1", "launch": 3})
    for _ in range(2):
        for mode, wanted in product(("read", "write"), ("RUNNING", "STOPPED")):
            asked = {"cluster": "trueup", "family": f"stack-job-{mode}", "desiredStatus": wanted}
            page = (
                [by_hand("by-hand", wanted, variable), ordered("ours", wanted, ours)]
                if mode == "write"
                else []
            )
            arns = [task["taskArn"] for task in page]
            stub.add_response("list_tasks", {"taskArns": arns}, asked)
            if page:
                stub.add_response("describe_tasks", {"tasks": page}, {"cluster": "trueup", "tasks": arns})
    assert {"ours": 3} == platform.alive_of("run-1", "job")
    assert 1 == len(platform.endings_of("run-1", "job", 3))


def test_how_a_launch_ended_is_found_by_what_its_tasks_were_told(ecs: tuple[Ecs, Stubber]) -> None:
    platform, stub = ecs
    never_pulled = {"stopCode": "TaskFailedToStart", "stoppedReason": "CannotPullContainerError: not found"}
    found = [
        {**ordered("ours", "STOPPED", ("TRUEUP_ORDER", {"runId": "run-1", "launch": 3})), **never_pulled},
        ordered("alive", "RUNNING", ("TRUEUP_ORDER", {"runId": "run-1", "launch": 3})),
        ordered("before", "STOPPED", ("TRUEUP_ORDER", {"runId": "run-1", "launch": 2})),
        ordered("other", "STOPPED", ("TRUEUP_ORDER", {"runId": "run-2", "launch": 3})),
    ]
    for mode, wanted in product(("read", "write"), ("RUNNING", "STOPPED")):
        asked = {"cluster": "trueup", "family": f"stack-job-{mode}", "desiredStatus": wanted}
        page = found if (mode, wanted) == ("write", "STOPPED") else []
        arns = [task["taskArn"] for task in page]
        stub.add_response("list_tasks", {"taskArns": arns}, asked)
        if page:
            stub.add_response("describe_tasks", {"tasks": page}, {"cluster": "trueup", "tasks": arns})
    assert [
        Ended(stop_code="TaskFailedToStart", reason="CannotPullContainerError: not found")
    ] == platform.endings_of("run-1", "job", 3)


def test_how_a_task_ended_is_what_ecs_says_of_it(ecs: tuple[Ecs, Stubber]) -> None:
    platform, stub = ecs
    ended = described(
        lastStatus="STOPPED",
        stopCode="SpotInterruption",
        stoppedReason="Your Spot Task was interrupted.",
        containers=[{"exitCode": 137, "reason": "OutOfMemoryError"}],
    )
    for answer in (described(lastStatus="RUNNING"), ended, {"tasks": []}):
        stub.add_response("describe_tasks", answer, {"cluster": "trueup", "tasks": [TASK]})
    assert platform.ending(TASK) is None
    assert Ended(
        exit_code=137,
        stop_code="SpotInterruption",
        reason="Your Spot Task was interrupted.; OutOfMemoryError",
    ) == platform.ending(TASK)
    assert platform.ending(TASK) is None


def test_the_newest_revision_is_pinned_with_its_digest(ecs: tuple[Ecs, Stubber]) -> None:
    platform, stub = ecs
    arn = "arn:aws:ecs:eu-west-1:123456789012:task-definition/trueup-flights-rows-write:7"
    for image in (f"registry/flights@{DIGEST}", "registry/flights:latest"):
        definition = {"taskDefinitionArn": arn, "containerDefinitions": [{"image": image}]}
        stub.add_response(
            "describe_task_definition",
            {"taskDefinition": definition},
            {"taskDefinition": "trueup-flights-rows-write"},
        )
    found = platform.latest("trueup-flights-rows-write")
    assert (arn, DIGEST) == (found.task_definition, found.image_digest)
    with pytest.raises(TrueupError, match="which can change"):
        platform.latest("trueup-flights-rows-write")


def test_an_execution_is_started_under_its_name_with_its_input(
    machine: tuple[StateMachine, Stubber],
) -> None:
    here, stub = machine
    asked = {"stateMachineArn": MACHINE, "name": "run-1", "input": '{"generation": 1, "runId": "run"}'}
    stub.add_response("start_execution", {"executionArn": EXECUTION, "startDate": 0}, asked)
    here.start("run-1", {"runId": "run", "generation": 1})
    stub.assert_no_pending_responses()


@pytest.mark.parametrize(("data", "ours"), [('{"a":1}', True), ('{"a":2}', False)])
def test_an_execution_that_exists_is_success_if_it_is_ours(
    machine: tuple[StateMachine, Stubber], data: str, ours: bool
) -> None:
    here, stub = machine
    stub.add_client_error("start_execution", "ExecutionAlreadyExists")
    found = {"executionArn": EXECUTION, "stateMachineArn": MACHINE, "status": "FAILED", "startDate": 0}
    stub.add_response("describe_execution", {**found, "input": data}, {"executionArn": EXECUTION})
    if ours:
        here.start("run-1", {"a": 1})
    else:
        with pytest.raises(TrueupError, match="Another execution"):
            here.start("run-1", {"a": 1})


def test_the_status_of_an_execution_is_step_functions_own_word(machine: tuple[StateMachine, Stubber]) -> None:
    here, stub = machine
    found = {"executionArn": EXECUTION, "stateMachineArn": MACHINE, "status": "TIMED_OUT", "startDate": 0}
    stub.add_response("describe_execution", found, {"executionArn": EXECUTION})
    stub.add_client_error("describe_execution", "ExecutionDoesNotExist")
    stub.add_client_error("describe_execution", "AccessDeniedException")
    assert ["TIMED_OUT", None] == [here.status("run-1"), here.status("run-1")]
    with pytest.raises(StoreUnavailable):
        here.status("run-1")


def test_a_task_says_that_it_lives_and_how_it_ended(token: tuple[TaskToken, Stubber]) -> None:
    callback, stub = token
    stub.add_response("send_task_heartbeat", {}, {"taskToken": "token"})
    stub.add_response("send_task_success", {}, {"taskToken": "token", "output": '{"key": "k"}'})
    cause = json.dumps({"exitCode": 75})
    stub.add_response("send_task_failure", {}, {"taskToken": "token", "error": "TaskEnded", "cause": cause})
    callback.beat()
    callback.succeed({"key": "k"})
    tell(callback, Exit.INTERRUPTED, None)


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "ThrottlingException", "InvalidToken"])
def test_a_word_that_is_not_heard_is_no_error_of_the_task(
    token: tuple[TaskToken, Stubber], code: str
) -> None:
    callback, stub = token
    for call in ("send_task_heartbeat", "send_task_success", "send_task_failure"):
        stub.add_client_error(call, code, expected_params={"taskToken": "token", **_rest(call)})
    callback.beat()
    callback.succeed({})
    callback.fail("TaskEnded", {})


def _rest(call: str) -> dict[str, Any]:
    return {
        "send_task_heartbeat": {},
        "send_task_success": {"output": ANY},
        "send_task_failure": {"error": ANY, "cause": ANY},
    }[call]


def test_without_a_token_nobody_waits_for_a_word() -> None:
    callback = make_callback({})
    callback.beat()
    callback.succeed({})
    callback.fail("TaskEnded", {})
    assert not isinstance(callback, TaskToken)


# The logs of tasks


def test_a_log_is_read_from_its_beginning_page_by_page_to_its_end() -> None:
    client, stub = stubbed("logs")
    asked = {"logGroupName": "tasks", "logStreamName": "s", "startFromHead": True, "limit": 2}
    events = [{"timestamp": 1_767_225_600_000, "message": "began\n"}]
    stub.add_response("get_log_events", {"events": events, "nextForwardToken": "f/1"}, asked)
    stub.add_response(
        "get_log_events", {"events": [], "nextForwardToken": "f/1"}, {**asked, "nextToken": "f/1"}
    )
    with stub:
        logs = TaskLogs(client, "tasks")
        lines, more = logs.lines("s", limit=2, after=None)
        assert ([(datetime(2026, 1, 1, tzinfo=UTC), "began")], "f/1") == (lines, more)
        assert ([], None) == logs.lines("s", limit=2, after=more)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ResourceNotFoundException", NotFound),
        ("InvalidParameterException", RequestError),
        ("AccessDeniedException", StoreUnavailable),
    ],
)
def test_a_log_that_cannot_be_read_says_why(code: str, error: type[Exception]) -> None:
    client, stub = stubbed("logs")
    stub.add_client_error("get_log_events", code)
    with stub, pytest.raises(error):
        TaskLogs(client, "tasks").lines("s", limit=1, after=None)
