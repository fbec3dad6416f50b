"""Map in distributed mode: children are executions of their own."""

from __future__ import annotations

import asyncio

from trueup.local.stepfunctions.errors import EvaluationError, StateError
from trueup.local.stepfunctions.history import failure
from trueup.local.stepfunctions.model import Distributed, Map
from trueup.local.stepfunctions.running.batches import make_inputs
from trueup.local.stepfunctions.running.execution import REDRIVABLE
from trueup.local.stepfunctions.running.fallible import run_fallible
from trueup.local.stepfunctions.running.inline_map import attempt_inline
from trueup.local.stepfunctions.running.items import Item, concurrency, percentage, select_items, whole
from trueup.local.stepfunctions.running.map_run import MapRun
from trueup.local.stepfunctions.running.reading import check_max_items, read_items
from trueup.local.stepfunctions.running.results import collect, write_results
from trueup.local.stepfunctions.running.visit import Step, Visit
from trueup.local.stepfunctions.running.workflow import PERFORMERS
from trueup.local.stepfunctions.values import Json


async def _map(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Map)
    attempt = attempt_inline if state.distributed is None else _attempt
    return await run_fallible(visit, lambda: attempt(visit), failed_event="MapStateFailed")


async def _attempt(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Map)
    assert state.distributed is not None
    given = visit.effective_input()
    limit = concurrency(visit, state, given)  # before the Map has started, as inline
    items = [] if state.distributed.reader else select_items(visit, state, given)
    # Items that are read from S3 are counted as none here (recorded: test_map_item_reader_base_json).
    visit.note("MapStateStarted", "mapStateStartedEventDetails", {"length": len(items)})
    run, again = _open(visit, state, state.distributed, given)
    run.max_concurrency = run.max_concurrency if again else limit
    _note_opened(visit, run, again=again)
    try:
        result = await _work(visit, run, state.distributed, given, None if again else items)
    except StateError as error:
        visit.note("MapRunFailed", "mapRunFailedEventDetails", failure(error.error, error.cause))
        raise
    except asyncio.CancelledError:
        visit.note("MapRunAborted")
        raise
    visit.note("MapRunSucceeded")
    step = visit.finish(visit.effective_result(state.result_selector, result))
    visit.note("MapStateSucceeded", moves=False)
    return step


def _open(visit: Visit, state: Map, settings: Distributed, given: Json) -> tuple[MapRun, bool]:
    execution = visit.strand.execution
    again = visit.take_again()
    if again is not None and again.map_run is not None and again.map_run.status in REDRIVABLE:
        visit.standing.map_run = again.map_run
        return again.map_run, True
    run = MapRun(execution, state, settings.label or execution.chance.uuid())
    run.tolerated_count = whole(visit, settings.tolerated_count, "ToleratedFailureCountPath", given)
    run.tolerated_percentage = percentage(visit, settings.tolerated_percentage, given)
    if settings.reader is not None:
        check_max_items(visit, settings.reader, given)
    visit.standing.map_run = run
    execution.map_runs.append(run)
    execution.services.open_map_run(run)
    return run, False


def _note_opened(visit: Visit, run: MapRun, *, again: bool) -> None:
    if not again:
        visit.note("MapRunStarted", "mapRunStartedEventDetails", {"mapRunArn": run.arn})
        return
    run.prepare_again()
    details = {"mapRunArn": run.arn, "redriveCount": run.redrive_count}
    visit.note("MapRunRedriven", "mapRunRedrivenEventDetails", details)


async def _work(
    visit: Visit, run: MapRun, settings: Distributed, given: Json, items: list[Item] | None
) -> Json:
    try:
        if items is not None:
            found = await read_items(visit, settings.reader, given) if settings.reader else items
            run.prepare(make_inputs(visit, run.state, given, found))
    except EvaluationError as error:  # the Map Run has started, so it is what fails
        run.fail()
        raise visit.failed(error, begun=True) from error
    except StateError:
        run.fail()
        raise
    writer = settings.writer if settings.writer and settings.writer.parameters else None
    try:
        await run.run()
    except StateError:
        if writer is not None:
            await write_results(visit, run, writer, given)
        raise
    if writer is not None:
        return await write_results(visit, run, writer, given)
    return collect(run, settings.writer)


PERFORMERS[Map] = _map
