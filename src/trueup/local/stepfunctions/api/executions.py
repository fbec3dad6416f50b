"""Operations on executions, their histories and their callbacks."""

from __future__ import annotations

import math

from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import TIMEOUT, ApiError
from trueup.local.stepfunctions.redriving import redrive_status
from trueup.local.stepfunctions.running.execution import PENDING_REDRIVE, RUNNING, TIMED_OUT, Execution
from trueup.local.stepfunctions.values import MAX_DATA, Document, Json, from_text, too_large

_INCLUDED = {"included": True}


def start(engine: Engine, body: Body) -> Json:
    """StartExecution."""
    execution = _start(engine, required(body, "stateMachineArn"), body)
    return {"executionArn": execution.arn, "startDate": execution.started_at}


def _start(engine: Engine, arn: str, body: Body) -> Execution:
    return engine.start_execution(arn, body.get("name"), body.get("input"), body.get("traceHeader"))


async def start_sync(engine: Engine, body: Body) -> Json:
    """StartSyncExecution: answers when the execution has ended, however it ended."""
    arn = required(body, "stateMachineArn")
    if not engine.versions.resolve(arn.partition("#")[0]).machine.express:
        raise not_of_this_type()
    execution = _start(engine, arn, body)
    await execution.ended()
    answer = {
        **{name: value for name, value in _summary(execution).items() if name != "redriveCount"},
        **_trace(execution),
        "billingDetails": _bill(execution),
    }
    if execution.status == TIMED_OUT:
        answer["error"] = TIMEOUT
    return answer if body.get("includedData") == "METADATA_ONLY" else answer | _data(execution)


def _bill(execution: Execution) -> Json:
    """What Express executions are billed by: time in steps of 100 ms, memory in chunks of 64 MB
    (aws.amazon.com/step-functions/pricing).
    """
    milliseconds = ((execution.stopped_at or execution.started_at) - execution.started_at) * 1000
    steps = max(1, math.ceil(round(milliseconds) / 100))
    return {"billedDurationInMilliseconds": steps * 100, "billedMemoryUsedInMB": 64}


def not_of_this_type() -> ApiError:
    """An operation is for the other type of machine."""
    return ApiError(
        "StateMachineTypeNotSupported", "This operation is not supported by this type of state machine"
    )


def stop(engine: Engine, body: Body) -> Json:
    """StopExecution: of one that has ended, it tells when."""
    execution = engine.find_execution(required(body, "executionArn"))
    execution.stop(body.get("error"), body.get("cause"))
    return {"stopDate": execution.stopped_at}


def redrive(engine: Engine, body: Body) -> Json:
    """RedriveExecution."""
    execution = engine.redrive(required(body, "executionArn"), body.get("clientToken"))
    return {"redriveDate": execution.redriven_at}


def describe(engine: Engine, body: Body) -> Json:
    """DescribeExecution, the one call that takes Express children of Map Runs too [botocore]."""
    execution = engine.find_execution(required(body, "executionArn", "express"))
    status, reason = redrive_status(execution)
    answer: dict[str, Json] = {**_summary(execution), **_trace(execution), "redriveStatus": status}
    if body.get("includedData") != "METADATA_ONLY":
        answer |= _data(execution)
    return answer if reason is None else {**answer, "redriveStatusReason": reason}


def _data(execution: Execution) -> dict[str, Json]:
    data: dict[str, Json] = {"input": execution.input.text, "inputDetails": _INCLUDED}
    if execution.output is not None:
        data |= {"output": execution.output.text, "outputDetails": _INCLUDED}
    told = {"error": execution.error, "cause": execution.cause}
    return data | {name: value for name, value in told.items() if value is not None}


def _trace(execution: Execution) -> dict[str, Json]:
    header = execution.origin.trace_header
    return {} if header is None else {"traceHeader": header}


def _summary(execution: Execution) -> dict[str, Json]:
    summary: dict[str, Json] = {
        "executionArn": execution.arn,
        "stateMachineArn": execution.origin.machine_arn,
        "name": execution.name,
        "status": execution.told_status,
        "startDate": execution.started_at,
        "redriveCount": execution.redrive_count,
    }
    origin = execution.origin
    more = {
        "stopDate": execution.stopped_at,
        "redriveDate": execution.redriven_at,
        "mapRunArn": origin.map_run.arn if origin.map_run else None,
        "stateMachineVersionArn": origin.version_arn,
        "stateMachineAliasArn": origin.alias_arn,
    }
    return summary | {name: value for name, value in more.items() if value is not None}


def list_all(engine: Engine, body: Body) -> Json:
    """ListExecutions: of a machine or of a Map Run, the latest first."""
    if (body.get("stateMachineArn") is None) is (body.get("mapRunArn") is None):
        raise ApiError("ValidationException", "Either stateMachineArn or mapRunArn has to be given")
    if body.get("statusFilter") == PENDING_REDRIVE and body.get("mapRunArn") is None:
        raise ApiError("ValidationException", f"The status filter {PENDING_REDRIVE} needs a mapRunArn")
    found = _of_map_run(engine, body) if body.get("mapRunArn") else _of_machine(engine, body)
    chosen = [listed for listed in found if _wanted(body, listed[0])]
    chosen.sort(key=lambda listed: _moment(listed[0]), reverse=True)
    executions, token = page(body, chosen)
    return answer_page("executions", [{**_summary(each), **more} for each, more in executions], token)


def _moment(execution: Execution) -> float:
    """What executions are listed by: since when they run, or when they ended [botocore]."""
    if execution.status != RUNNING and execution.stopped_at is not None:
        return execution.stopped_at
    return execution.redriven_at or execution.started_at


def _wanted(body: Body, execution: Execution) -> bool:
    redriven = {None: None, "REDRIVEN": True, "NOT_REDRIVEN": False}[body.get("redriveFilter")]
    fits = redriven is None or redriven is (execution.redrive_count > 0)
    return fits and body.get("statusFilter") in (None, execution.told_status)


_Listed = tuple[Execution, dict[str, Json]]


def _of_machine(engine: Engine, body: Body) -> list[_Listed]:
    arn = required(body, "stateMachineArn")
    if engine.versions.resolve(arn).machine.express:
        raise not_of_this_type()
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
        raise ApiError("InvalidOutput", f"Invalid Output: the output is larger than {MAX_DATA} bytes")
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
