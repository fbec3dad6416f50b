"""The definitions: linted inline, bounded in time, named as sentences, and true to the ledger."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from trueup.accepting import Answer
from trueup.ledger import keys
from trueup.ledger.expressions import request_of
from trueup.ledger.runs import open_clauses
from trueup.ledger.table import Write
from trueup.local.stepfunctions.parsing import parse_definition

from .definitions import FILES, state, states, substituted

ALL_STATES = [(path.name, name) for path in FILES for name, _ in states(substituted(path))]

# Errors that no service model names: Step Functions' own, its generic ones, and what was seen on AWS
# (shared facts, sections 1.6 and 2.4).
KNOWN_ERRORS = {
    "States.ALL", "States.Timeout", "States.TaskFailed",
    "AmazonECS.Unknown", "ECS.AmazonECSException", "ECS.ThrottlingException", "ECS.SdkClientException",
    "DynamoDB.AmazonDynamoDBException", "DynamoDB.SdkClientException",
    "StepFunctions.AWSStepFunctionsException", "StepFunctions.SdkClientException",
    "StepFunctions.ThrottlingException",
}  # fmt: skip
CALLS = {"DynamoDB": ("dynamodb", "UpdateItem"), "ECS": ("ecs", "RunTask"), "Lambda": ("lambda", "Invoke"),
         "StepFunctions": ("stepfunctions", "StartExecution")}  # fmt: skip


def test_there_are_three_machines() -> None:
    assert ["backfill.asl.yaml", "partitions.asl.yaml", "reconcile.asl.yaml"] == [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_cfn_lint_finds_nothing_in_a_definition_that_is_inlined(path: Path) -> None:
    assert [] == linted(substituted(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_cfn_lint_looks_into_the_states(path: Path) -> None:
    machine = substituted(path)
    *_, (_, innermost) = states(machine)
    innermost["Rety"] = []
    assert ["E3601"] == [found.rule.id for found in linted(machine)]


def linted(machine: dict[str, Any]) -> list[Any]:
    """What cfn-lint says of a template with this definition in it: it does not follow `DefinitionUri`."""
    properties = {
        "RoleArn": "arn:aws:iam::123456789012:role/trueup",
        "DefinitionString": json.dumps(machine),
    }
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}
    template = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Machine": resource}}
    return list(lint(json.dumps(template), config=ManualArgs(regions=["eu-west-1"])))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_local_engine_takes_it(path: Path) -> None:
    assert substituted(path)["StartAt"] == parse_definition(json.dumps(substituted(path))).start_at


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_definition_is_short_enough_to_be_read(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 125
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize(("file", "name"), ALL_STATES)
def test_names_read_as_sentences(file: str, name: str) -> None:
    assert len(name) <= 80
    assert name[0].isupper()
    assert " " in name
    kind = state(file.partition(".")[0], name)["Type"]
    assert name.endswith("?") == (kind == "Choice")


@pytest.mark.parametrize(("file", "name"), ALL_STATES)
def test_every_task_has_a_timeout_retries_and_a_reason_to_exist(file: str, name: str) -> None:
    found = state(file.partition(".")[0], name)
    if found["Type"] == "Task":
        assert {"TimeoutSeconds", "TimeoutSecondsPath"} & set(found)
        assert found["Retry"]
        assert found["Comment"]


def test_a_state_that_waits_for_a_person_lasts_as_long_as_it_was_told_and_decides_nothing() -> None:
    asks = state("backfill", "Ask a person")
    assert ("$.told.next.seconds", None) == (asks["TimeoutSecondsPath"], asks["ResultPath"])
    # A retry would wait as long again: States.TaskFailed is everything but States.Timeout.
    assert [["States.TaskFailed"]] == [rule["ErrorEquals"] for rule in asks["Retry"]]
    ways = {asks["Next"], *(rule["Next"] for rule in asks["Catch"])}
    assert {"Open or settle the phase"} == ways


def test_a_callback_has_a_heartbeat() -> None:
    assert "HeartbeatSecondsPath" in state("partitions", "Run the task and wait for its word")


def test_the_map_is_never_run_again_as_a_whole() -> None:
    fan_out = state("partitions", "Work every slice")
    assert "Retry" not in fan_out
    assert (100, "Slices") == (fan_out["ToleratedFailurePercentage"], fan_out["Label"])
    assert "VersionId.$" in fan_out["ItemReader"]["Parameters"]


@pytest.mark.parametrize(("file", "name"), ALL_STATES)
def test_the_errors_that_are_named_exist(file: str, name: str) -> None:
    found = state(file.partition(".")[0], name)
    for rule in [*found.get("Retry", []), *found.get("Catch", [])]:
        for error in rule["ErrorEquals"]:
            assert error in KNOWN_ERRORS or modelled(error), error


@cache
def _service(name: str) -> Any:
    return botocore.session.get_session().get_service_model(name)


def modelled(error: str) -> bool:
    """Whether the service's model has the error, under the name that the Java SDK gives it."""
    prefix, _, name = error.partition(".")
    service, operation = CALLS[prefix]
    model = _service(service).operation_model(operation)
    names = {shape.name for shape in model.error_shapes}
    return name in names or name.removesuffix("Exception") in names


def test_retries_of_launching_last_about_ten_minutes() -> None:
    for name in ("Run the task", "Run the task and wait for its word"):
        (retry,) = state("partitions", name)["Retry"]
        waits, wait = [], float(retry["IntervalSeconds"])
        for _ in range(retry["MaxAttempts"]):
            waits.append(min(wait, retry["MaxDelaySeconds"]) / 2)  # full jitter: half of it on average
            wait *= 2
        assert 540 <= sum(waits) <= 660
        assert "FULL" == retry["JitterStrategy"]
        assert "States.TaskFailed" not in retry["ErrorEquals"]


def test_every_error_after_the_launch_goes_through_accept() -> None:
    for name in ("Run the task", "Run the task and wait for its word"):
        found = state("partitions", name)
        catch = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.ended", "Next": "Accept what it did"}
        assert [catch] == found["Catch"]
        assert ("Accept what it did", "$.ended") == (found["Next"], found["ResultPath"])


def test_what_accept_answers_is_known_to_the_machine() -> None:
    choice = state("partitions", "What now?")
    known = {rule["StringEquals"] for rule in choice["Choices"]}
    assert {answer.value for answer in Answer} - known == {"failed"}
    assert "Slice has failed" == choice["Default"]


def test_the_wait_between_two_launches_is_what_accept_says() -> None:
    said = state("partitions", "Accept what it did")
    assert {"answer.$": "$.Payload.answer", "seconds.$": "$.Payload.seconds"} == said["ResultSelector"]
    assert ("$.accepted", "$.accepted.seconds") == (
        said["ResultPath"],
        state("partitions", "Wait a little")["SecondsPath"],
    )


def test_the_gate_is_the_ledgers_own_write() -> None:
    call, wanted = request_of(Write(keys.run("flights-1"), adds={"launches": 1}, clauses=open_clauses(3, 7)))
    assert "update_item" == call
    parameters = state("partitions", "Take a launch number")["Parameters"]
    assert plain(wanted) == plain(filled(parameters, run_id="flights-1", generation=3, dispatch=7))


def filled(parameters: dict[str, Any], *, run_id: str, generation: int, dispatch: int) -> dict[str, Any]:
    """The state's parameters as Step Functions would make them of a child's input."""
    text = json.dumps(parameters)
    text = text.replace("States.Format('RUN#{}', $.order.runId)", f"RUN#{run_id}")
    text = text.replace("States.Format('{}', $.order.generation)", str(generation))
    text = text.replace("States.Format('{}', $.order.dispatch)", str(dispatch))
    made: dict[str, Any] = json.loads(text.replace('S.$"', 'S"').replace('N.$"', 'N"'))
    return made


def plain(request: dict[str, Any]) -> tuple[Any, ...]:
    """Key, update and condition with names and values written out."""
    words = {**request["ExpressionAttributeNames"]}
    words |= {name: json.dumps(value) for name, value in request["ExpressionAttributeValues"].items()}
    expressions = (request["UpdateExpression"], request["ConditionExpression"])
    return request["Key"], *(spelled(expression, words) for expression in expressions)


def spelled(expression: str, words: dict[str, str]) -> str:
    """An expression with its names and values in place, without brackets."""
    for name in sorted(words, key=len, reverse=True):
        expression = expression.replace(name, words[name])
    return expression.replace("(", "").replace(")", "").strip()
