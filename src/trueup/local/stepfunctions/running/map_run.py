"""A Map Run: the children of one Distributed Map, started as fast as its limits allow."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.model import Map
from trueup.local.stepfunctions.parsing.maps import MAX_CONCURRENCY
from trueup.local.stepfunctions.redriving import redrive_status
from trueup.local.stepfunctions.running.batches import ChildInput
from trueup.local.stepfunctions.running.execution import (
    ABORTED,
    FAILED,
    PENDING_REDRIVE,
    REDRIVABLE,
    RUNNING,
    SUCCEEDED,
    TIMED_OUT,
    Execution,
    Origin,
)

EXCEEDED = "States.ExceedToleratedFailureThreshold"
_EXCEEDED_CAUSE = "The specified tolerated failure threshold was exceeded"
_BURST = 200
"""Children started before others get a turn."""


class MapRun:
    """The children, their counts, and the limits that UpdateMapRun changes while they run."""

    def __init__(self, parent: Execution, state: Map, label: str) -> None:
        self.parent = parent
        self.state = state
        self.label = label
        self.id = parent.chance.uuid()
        machine = parent.origin.machine_arn.replace(":stateMachine:", ":mapRun:", 1)
        self.arn = f"{machine}/{label}:{self.id}"
        self.status = RUNNING
        self.started_at = parent.clock.now()
        self.stopped_at: float | None = None
        self.max_concurrency = 0
        self.tolerated_percentage: float | None = None
        self.tolerated_count: int | None = None
        self.redrive_count = 0
        self.redriven_at: float | None = None
        self.inputs: Sequence[ChildInput] = []
        self.children: list[Execution | None] = []
        self.total_items = 0
        self.results_written = 0
        self._next: list[int] = []
        self._running = 0
        self._failed_items = 0
        self._changed = asyncio.Event()

    @property
    def express(self) -> bool:
        """Whether the children are Express executions, which are run anew where others are redriven."""
        return self.state.distributed is not None and self.state.distributed.express

    # Counting.

    def counts(self, *, items: bool) -> dict[str, int]:
        """Children, or their items, by status in lower camel case; `pending` are those not yet started."""
        found: Counter[str] = Counter()
        for given, child in zip(self.inputs, self.children, strict=True):
            found[child.told_status if child else "PENDING"] += given.items if items else 1
        names = {"PENDING": "pending", TIMED_OUT: "timedOut"}
        statuses = ("PENDING", RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED)
        counts = {names.get(status, status.lower()): found[status] for status in statuses}
        written = self.results_written if not items else self.total_items * bool(self.results_written)
        rest = {
            "resultsWritten": written,
            "failuresNotRedrivable": self._lost(items=items),
            "pendingRedrive": found[PENDING_REDRIVE],
        }
        return {**counts, "total": sum(found.values()), **rest}

    def _lost(self, *, items: bool) -> int:
        """What did not succeed and cannot be redriven any more."""
        return sum(
            given.items if items else 1
            for given, child in zip(self.inputs, self.children, strict=True)
            if child and child.told_status in REDRIVABLE and redrive_status(child)[0] == "NOT_REDRIVABLE"
        )

    def update(self, max_concurrency: int | None, percentage: float | None, count: int | None) -> None:
        """Change the limits of the run while it runs (UpdateMapRun)."""
        if max_concurrency is not None:
            self.max_concurrency = max_concurrency
        if percentage is not None:
            self.tolerated_percentage = percentage
        if count is not None:
            self.tolerated_count = count
        self._changed.set()

    # Running.

    def prepare(self, inputs: Sequence[ChildInput]) -> None:
        """Take the children's inputs."""
        self.inputs = inputs
        self.total_items = sum(given.items for given in inputs)
        self.children = [None] * len(inputs)
        self._next = list(range(len(inputs) - 1, -1, -1))

    def prepare_again(self) -> None:
        """Line up the children that did not succeed, and those never started (redrive)."""
        self.status, self.stopped_at = RUNNING, None
        self.redrive_count += 1
        self.redriven_at = self.parent.clock.now()
        self._running = self._failed_items = 0
        self._next = [
            index
            for index in range(len(self.children) - 1, -1, -1)
            if (child := self.children[index]) is None or redrive_status(child)[0] != "NOT_REDRIVABLE"
        ]
        for index in self._next:
            if (child := self.children[index]) is not None:
                child.waits_for_redrive = True

    async def run(self) -> None:
        """Run all children to their end. Raises StateError when more fail than are tolerated."""
        try:
            while self._next or self._running:
                await self._start_some()
                if self._over():
                    raise StateError(EXCEEDED, _EXCEEDED_CAUSE)
                await self._changed.wait()
                self._changed.clear()
            if self._over():
                raise StateError(EXCEEDED, _EXCEEDED_CAUSE)
        except StateError:
            self._finish(FAILED)
            raise
        except asyncio.CancelledError:
            self._finish(ABORTED)
            raise
        self._finish(SUCCEEDED)

    def fail(self) -> None:
        """End it before it began: its items could not be read."""
        self._finish(FAILED)

    async def _start_some(self) -> None:
        limit = self.max_concurrency or MAX_CONCURRENCY
        started = 0
        while self._next and self._running < limit and not self._over():
            self._start(self._next.pop())
            started += 1
            if started % _BURST == 0:
                await asyncio.sleep(0)
        if not self._running:
            self._changed.set()

    def _start(self, index: int) -> None:
        self._running += 1
        child = self.children[index]
        if child is not None and not self.express:
            child.when_ended(partial(self._child_ended, index))
            child.resume()
            return
        child = self.children[index] = self._make(index)
        self.parent.services.adopt(child)
        child.when_ended(partial(self._child_ended, index))
        child.start()

    def _make(self, index: int) -> Execution:
        parent = self.parent
        kind = ":express:" if self.express else ":execution:"
        prefix = parent.origin.machine_arn.replace(":stateMachine:", kind, 1)
        arn = f"{prefix}/{self.label}:{parent.chance.uuid()}"
        if self.express:
            arn += f":{parent.chance.uuid()}"
        origin = Origin(
            f"{parent.origin.machine_arn}/{self.label}",
            f"{parent.origin.machine_name}/{self.label}",
            parent.origin.revision,
            self,
            express=self.express,
        )
        given = self.inputs[index].document
        return Execution(parent.services, arn, self.state.processor, given, origin, parent.mocks)

    def _child_ended(self, index: int, child: Execution) -> None:
        self._running -= 1
        if child.status in (FAILED, TIMED_OUT):
            self._failed_items += self.inputs[index].items
        self._changed.set()

    def _over(self) -> bool:
        """Whether more items have failed than either limit tolerates; without limits, none is tolerated
        (aws-facts section 1.3).
        """
        failed, count = self._failed_items, self.tolerated_count
        if count is not None and failed > count:
            return True
        if self.tolerated_percentage is None and count is not None:
            return False
        return failed * 100 > (self.tolerated_percentage or 0) * self.total_items

    def _finish(self, status: str) -> None:
        self.status, self.stopped_at = status, self.parent.clock.now()
        for child in self.children:
            if child is not None:
                child.waits_for_redrive = False
                child.stop()
