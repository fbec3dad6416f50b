"""Operations on Map Runs."""

from __future__ import annotations

from trueup.local.stepfunctions.api.requests import Body, answer_page, page, required
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.running.execution import RUNNING
from trueup.local.stepfunctions.running.map_run import MapRun
from trueup.local.stepfunctions.values import Json


def list_all(engine: Engine, body: Body) -> Json:
    """ListMapRuns, of one execution."""
    execution = engine.find_execution(required(body, "executionArn"))
    runs, token = page(body, list(reversed(execution.map_runs)))
    listed = []
    for run in runs:
        machine = f"{execution.origin.machine_arn}/{run.label}"
        listed.append({**_summary(run), "stateMachineArn": machine})
    return answer_page("mapRuns", listed, token)


def _summary(run: MapRun) -> dict[str, Json]:
    summary: dict[str, Json] = {
        "mapRunArn": run.arn,
        "executionArn": run.parent.arn,
        "startDate": run.started_at,
    }
    return summary if run.stopped_at is None else {**summary, "stopDate": run.stopped_at}


def describe(engine: Engine, body: Body) -> Json:
    """DescribeMapRun."""
    run = engine.find_map_run(required(body, "mapRunArn"))
    answer = {
        **_summary(run),
        "status": run.status,
        "maxConcurrency": run.max_concurrency,
        "toleratedFailurePercentage": float(run.tolerated_percentage or 0),
        "toleratedFailureCount": run.tolerated_count or 0,
        "itemCounts": run.counts(items=True),
        "executionCounts": run.counts(items=False),
        "redriveCount": run.redrive_count,
    }
    return answer if run.redriven_at is None else {**answer, "redriveDate": run.redriven_at}


def update(engine: Engine, body: Body) -> Json:
    """UpdateMapRun: acts on what is not yet started, and on what fails from now on."""
    run = engine.find_map_run(required(body, "mapRunArn"))
    if run.status != RUNNING:
        raise ApiError("ValidationException", f"Map Run is not running: '{run.arn}'")
    run.update(
        body.get("maxConcurrency"), body.get("toleratedFailurePercentage"), body.get("toleratedFailureCount")
    )
    return {}
