"""Operations on executions, their histories and their callbacks."""

from __future__ import annotations

from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.running.execution import Execution
from trueup.local.stepfunctions.status_events import redrive_status
from trueup.local.stepfunctions.values import Document, Json, from_text, too_large

_INCLUDED = {"included": True}


def start(engine: Engine, body: Body) -> Json:
    """StartExecution."""
    execution = engine.start_execution(required(body, "stateMachineArn"), body.get("name"), body.get("input"))
    return {"executionArn": execution.arn, "startDate": execution.started_at}


def stop(engine: Engine, body: Body) -> Json:
    """StopExecution: of one that has ended, it tells when."""
    execution = engine.find_execution(required(body, "executionArn"))
    execution.stop(body.get("error"), body.get("cause"))
    return {"stopDate": execution.stopped_at}


def redrive(engine: Engine, body: Body) -> Json:
    """RedriveExecution."""
    execution = engine.redrive(required(body, "executionArn"))
    return {"redriveDate": execution.redriven_at}


def describe(engine: Engine, body: Body) -> Json:
    """DescribeExecution."""
    execution = engine.find_execution(required(body, "executionArn"))
    status, reason = redrive_status(execution)
    answer: dict[str, Json] = {
        **_summary(execution),
        "input": execution.input.text,
        "inputDetails": _INCLUDED,
        "redriveStatus": status,
    }
    if execution.output is not None:
        answer |= {"output": execution.output.text, "outputDetails": _INCLUDED}
    told = {"error": execution.error, "cause": execution.cause, "redriveStatusReason": reason}
    return answer | {name: value for name, value in told.items() if value is not None}


def _summary(execution: Execution) -> dict[str, Json]:
    summary: dict[str, Json] = {
        "executionArn": execution.arn,
        "stateMachineArn": execution.origin.machine_arn,
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.started_at,
        "redriveCount": execution.redrive_count,
    }
    if execution.stopped_at is not None:
        summary["stopDate"] = execution.stopped_at
    if execution.redriven_at is not None:
        summary["redriveDate"] = execution.redriven_at
    if execution.origin.map_run is not None:
        summary["mapRunArn"] = execution.origin.map_run.arn
    return summary


def list_all(engine: Engine, body: Body) -> Json:
    """ListExecutions: of a machine or of a Map Run, newest first."""
    if (body.get("stateMachineArn") is None) is (body.get("mapRunArn") is None):
        raise ApiError("ValidationException", "Either stateMachineArn or mapRunArn has to be given")
    found = _of_map_run(engine, body) if body.get("mapRunArn") else _of_machine(engine, body)
    status = body.get("statusFilter")
    chosen = [listed for listed in found if status in (None, listed[0].status)]
    executions, token = page(body, chosen)
    return answer_page("executions", [{**_summary(each), **more} for each, more in executions], token)


_Listed = tuple[Execution, dict[str, Json]]


def _of_machine(engine: Engine, body: Body) -> list[_Listed]:
    arn = required(body, "stateMachineArn")
    engine.machines.find(arn)
    return [(execution, {}) for execution in engine.executions_of(arn)]


def _of_map_run(engine: Engine, body: Body) -> list[_Listed]:
    run = engine.find_map_run(required(body, "mapRunArn"))
    pairs = zip(run.children, run.inputs, strict=True)
    return [(child, {"itemCount": given.items}) for child, given in pairs if child is not None][::-1]


def history(engine: Engine, body: Body) -> Json:
    """GetExecutionHistory."""
    events = engine.find_execution(required(body, "executionArn")).history.events
    ordered = list(reversed(events)) if body.get("reverseOrder") else events
    chosen, token = page(body, ordered)
    data = body.get("includeExecutionData", True)
    return answer_page("events", [event.as_answer(data=data) for event in chosen], token)


def task_success(engine: Engine, body: Body) -> Json:
    """SendTaskSuccess."""
    text = required(body, "output")
    try:
        output = Document(from_text(text))
    except ValueError as error:
        raise ApiError("InvalidOutput", f"Invalid Output: '{error}'") from error
    if too_large(text):
        raise ApiError("InvalidOutput", "Invalid Output: the output is larger than 262144 bytes")
    engine.tokens.succeed(required(body, "taskToken"), output)
    return {}


def task_failure(engine: Engine, body: Body) -> Json:
    """SendTaskFailure."""
    engine.tokens.fail(required(body, "taskToken"), body.get("error"), body.get("cause"))
    return {}


def task_heartbeat(engine: Engine, body: Body) -> Json:
    """SendTaskHeartbeat."""
    engine.tokens.beat(required(body, "taskToken"))
    return {}
