"""Parallel: branches side by side."""

from __future__ import annotations

from trueup.local.stepfunctions.model import Parallel
from trueup.local.stepfunctions.running.fallible import run_fallible
from trueup.local.stepfunctions.running.together import Failed, run_together
from trueup.local.stepfunctions.running.visit import Step, Visit
from trueup.local.stepfunctions.running.workflow import PERFORMERS, run_workflow
from trueup.local.stepfunctions.values import Document


async def _parallel(visit: Visit) -> Step:
    return await run_fallible(visit, lambda: _attempt(visit), failed_event="ParallelStateFailed")


async def _attempt(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Parallel)
    given = Document(visit.render(state.parameters, visit.effective_input()))
    started = visit.note("ParallelStateStarted")
    strands = [visit.strand.inner(started) for _ in state.branches]
    work = [
        run_workflow(strand, branch.states, branch.start_at, given)
        for strand, branch in zip(strands, state.branches, strict=True)
    ]
    try:
        outputs = await run_together(work)
    except Failed as failed:
        visit.strand.previous = strands[failed.index].previous
        raise failed.error from failed
    visit.strand.previous = max(strand.previous for strand in strands)
    step = visit.finish(visit.render(state.result_selector, [output.value for output in outputs]))
    # The event of leaving points past this one (recorded on AWS: test_parallel_state).
    visit.note("ParallelStateSucceeded", moves=False)
    return step


PERFORMERS[Parallel] = _parallel
