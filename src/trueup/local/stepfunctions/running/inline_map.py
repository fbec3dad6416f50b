"""Map in inline mode: iterations within the execution's own history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from trueup.local.stepfunctions.errors import EvaluationError, StateError
from trueup.local.stepfunctions.model import Map
from trueup.local.stepfunctions.running.items import Item, concurrency, select_items
from trueup.local.stepfunctions.running.together import Failed, branches_again, run_together
from trueup.local.stepfunctions.running.visit import Step, Strand, Visit
from trueup.local.stepfunctions.running.workflow import run_workflow
from trueup.local.stepfunctions.values import Document, Json

INLINE_CONCURRENCY = 40
"""What AWS runs at once when nothing is said ([dg:state-map-inline])."""


async def attempt_inline(visit: Visit) -> Step:
    """One attempt at all iterations. Raises StateError with the first failure among them."""
    state = visit.state
    assert isinstance(state, Map)
    given = visit.effective_input()
    # Of all settings of a Map, AWS reads this one before the Map has started (moto's engine says so).
    limit = concurrency(visit, state, given) or INLINE_CONCURRENCY
    items = select_items(visit, state, given)
    visit.note("MapStateStarted", "mapStateStartedEventDetails", {"length": len(items)})
    run = _Iterations(visit, state, given, items, branches_again(visit))
    await run.all(min(limit, len(items)))
    visit.strand.previous = run.last
    step = visit.finish(visit.effective_result(state.result_selector, run.outputs))
    visit.note("MapStateSucceeded", moves=False)
    return step


class _Iterations:
    """Slots that take one item after the other.

    An iteration points to what came before it in its slot, not to the event that its predecessor succeeded
    (recorded on AWS: test_map_state_break_condition_legacy).
    """

    def __init__(
        self, visit: Visit, state: Map, given: Json, items: list[Item], earlier: Sequence[Strand | None]
    ) -> None:
        self._visit = visit
        self._state = state
        self._given = given
        self._items = items
        self._strands: list[Strand | None] = list(earlier) or [None] * len(items)
        visit.standing.inner = self._strands
        self.last = visit.strand.previous

    @property
    def outputs(self) -> list[Json]:
        """What the iterations came to."""
        return [strand.output.value for strand in self._strands if strand and strand.output]

    async def all(self, slots: int) -> None:
        """Run those that have not come to their end."""
        indexes = iter([index for index, one in enumerate(self._strands) if not (one and one.output)])
        strands = [self._visit.strand.inner(self._visit.strand.previous) for _ in range(slots)]
        try:
            await run_together([self._slot(strand, indexes) for strand in strands])
        except Failed as failed:
            self._visit.strand.previous = strands[failed.index].previous
            raise failed.error from failed

    async def _slot(self, slot: Strand, indexes: Iterator[int]) -> None:
        for index in indexes:
            item = self._items[index]
            details = {"name": self._state.name, "index": index}
            started = self._note("Started", slot.previous, details)
            strand = slot.inner_again(started, self._strands[index], item.context(index))
            self._strands[index] = strand
            try:
                await self._iterate(strand, item.whole)
            except StateError as error:
                if not error.unrunnable:
                    self._note("Failed", strand.previous, details)
                raise
            except asyncio.CancelledError:
                self._note("Aborted", strand.previous, details)
                raise
            finally:
                slot.previous = strand.previous
            self.last = self._note("Succeeded", strand.previous, details)

    async def _iterate(self, strand: Strand, item: Json) -> None:
        workflow = self._state.processor
        await run_workflow(strand, workflow.states, workflow.start_at, self._input(strand, item))

    def _input(self, strand: Strand, item: Json) -> Document:
        """What an iteration is given. Raises StateError: it has begun, so it is what fails."""
        try:
            if self._state.parameters is None:
                return self._visit.document_of(item)
            scope = self._visit.scope(self._given)
            context = {**self._visit.context(), "Map": {"Item": strand.item}}
            scope.context = lambda: context
            return self._visit.document_of(self._state.parameters.render(scope))
        except EvaluationError as error:
            raise self._visit.failed(error, begun=True) from error

    def _note(self, what: str, previous: int, details: Mapping[str, Json]) -> int:
        return self._visit.strand.history.add(
            f"MapIteration{what}", previous, f"mapIteration{what}EventDetails", details
        )
