"""Parallel: branches side by side."""

from __future__ import annotations

from trueup.local.stepfunctions.model import Parallel, Workflow
from trueup.local.stepfunctions.running.fallible import run_fallible
from trueup.local.stepfunctions.running.together import Failed, branches_again, run_together
from trueup.local.stepfunctions.running.visit import Step, Strand, Visit
from trueup.local.stepfunctions.running.workflow import PERFORMERS, run_workflow
from trueup.local.stepfunctions.values import Document


async def _parallel(visit: Visit) -> Step:
    return await run_fallible(visit, lambda: _attempt(visit), failed_event="ParallelStateFailed")


async def _attempt(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Parallel)
    rendered = visit.effective_parameters(state.parameters, visit.effective_input())
    started = visit.note("ParallelStateStarted")
    given = visit.document_of(rendered)
    strands = _strands(visit, started, len(state.branches))
    visit.standing.inner = strands
    work = [_branch(strand, branch, given) for strand, branch in zip(strands, state.branches, strict=True)]
    try:
        outputs = await run_together(work)
    except Failed as failed:
        visit.strand.previous = strands[failed.index].previous
        raise failed.error from failed
    visit.strand.previous = max(strand.previous for strand in strands)
    step = visit.finish(visit.effective_result(state.result_selector, [output.value for output in outputs]))
    # The event of leaving points past this one (recorded on AWS: test_parallel_state).
    visit.note("ParallelStateSucceeded", moves=False)
    return step


def _strands(visit: Visit, started: int, count: int) -> list[Strand]:
    """One path for each branch. Redriven, those that have come to their end stay as they are."""
    earlier = branches_again(visit) or [None] * count
    return [
        one if one is not None and one.output is not None else visit.strand.inner_again(started, one, None)
        for one in earlier
    ]


async def _branch(strand: Strand, branch: Workflow, given: Document) -> Document:
    if strand.output is not None:
        return strand.output
    return await run_workflow(strand, branch.states, branch.start_at, given)


PERFORMERS[Parallel] = _parallel
