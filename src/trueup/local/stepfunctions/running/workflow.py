"""From state to state until one ends the workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from trueup.local.stepfunctions import model
from trueup.local.stepfunctions.errors import EvaluationError
from trueup.local.stepfunctions.running.visit import Step, Strand, Visit
from trueup.local.stepfunctions.values import Document

Perform = Callable[[Visit], Awaitable[Step]]

_TURN = 32
"""Transitions after which an execution lets others have a turn: states that only compute never wait."""

PERFORMERS: dict[type[model.State], Perform] = {}
"""How each type of state is performed; `states` and its siblings register themselves."""


async def run_workflow(
    strand: Strand, states: Mapping[str, model.State], start_at: str, document: Document
) -> Document:
    """Run a workflow to its end, and give its output: from its start, or from where it is redriven.

    Raises StateError where a state fails for good.
    """
    name: str | None = start_at
    if strand.again is not None:
        name, document = strand.again.state, strand.again.document
    turns = 0
    while name is not None:
        if turns and strand.execution.doomed:
            strand.execution.stop()
            raise asyncio.CancelledError
        turns += 1
        # Nothing is waited for between leaving one state and entering the next: a redrive goes on from the
        # state that was entered last.
        step = await _visit(Visit(strand, states[name], document), pause=turns % _TURN == 0)
        document, name = step.output, step.next
    strand.output = document
    return document


async def _visit(visit: Visit, *, pause: bool) -> Step:
    try:
        if pause:
            await asyncio.sleep(0)
        step = await PERFORMERS[type(visit.state)](visit)
        visit.leave(step)
    except EvaluationError as error:
        raise visit.failed(error) from error
    except asyncio.CancelledError:
        visit.abort()
        raise
    return step
