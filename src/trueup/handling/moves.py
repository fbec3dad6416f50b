"""What the machine of a run is told to do next. The machine carries it, and gives `at` back unread."""

from __future__ import annotations

from math import ceil
from typing import Any

from pydantic import Field

from trueup.model.base import Count, Value
from trueup.model.gate import Asked
from trueup.model.ledger import Run
from trueup.model.naming import NamingOrder
from trueup.model.states import Phase, RunStatus
from trueup.naming import Tries

Move = dict[str, Any]

# Numbers that later generations have to themselves, so that none means two things in a phase.
DISPATCHES = 1_000
SLICES = 100_000


class Position(Value):
    """Where a run stands in its way: the phase, its last dispatch, and how far the phase was before that.

    `mark` None: nothing was dispatched yet. `idle`: so many dispatches in a row moved nothing.
    """

    phase: Phase
    dispatch: Count = 0
    first_slice: Count = Field(default=0)
    mark: int | None = None
    idle: Count = 0


def beginning(run: Run, phase: Phase) -> Position:
    """The position before the first dispatch of a phase in this generation."""
    earlier = run.generation - 1
    return Position(phase=phase, dispatch=earlier * DISPATCHES, first_slice=earlier * SLICES)


def enter(run: Run, phase: Phase) -> Move:
    """Into a phase: settling opens it, and finds the gate where there is one before it."""
    return settle(beginning(run, phase))


def approve(at: Position, asked: Asked, seconds: int) -> Move:
    """Wait at a gate for a person, for so many seconds at most, and settle again."""
    told = {"gate": asked.name, "sha256": asked.subject.sha256, "seconds": seconds}
    return {"do": "approve", "at": at.document(), **told}


def name(order: NamingOrder, task: dict[str, Any], tries: Tries) -> Move:
    """Let a task name the partitions, and plan again."""
    return {"do": "name", "order": order.document(), "task": task, "tries": tries.document()}


def settle(at: Position) -> Move:
    """Open or settle the phase."""
    return {"do": "settle", "at": at.document()}


def wait(at: Position) -> Move:
    """Wait for tasks to stop, and settle again."""
    return {"do": "wait", "at": at.document()}


def later(at: Position, seconds: float) -> Move:
    """Wait, then open or settle the phase: for the lag before a second look, or for an input that is late."""
    return {"do": "lag", "seconds": ceil(seconds), "at": at.document()}


def verify(at: Position, seconds: float) -> Move:
    """All was applied, and a reconciliation looks at it: wait, and settle again."""
    return {"do": "verify", "seconds": ceil(seconds), "at": at.document()}


def leave(run: Run) -> Move:
    """The execution is through: as a failure where the run is one, so that consoles and alarms show it."""
    failed = run.status in (RunStatus.FAILED, RunStatus.ABORTED)
    return {"do": "fail" if failed else "end", "status": run.status.value}
