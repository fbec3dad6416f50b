"""ItemSelector and ItemBatcher: from items to the inputs of a Distributed Map's children."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.local.stepfunctions.model import Batcher, Map
from trueup.local.stepfunctions.running.items import Item, whole
from trueup.local.stepfunctions.running.visit import Visit
from trueup.local.stepfunctions.values import MAX_DATA, Document, Json, to_text


@dataclass(frozen=True, slots=True)
class ChildInput:
    """One child's input, and how many items are in it: failures are counted on items."""

    document: Document
    items: int


def make_inputs(visit: Visit, state: Map, given: Json, items: list[Item]) -> list[ChildInput]:
    """The children's inputs. Raises EvaluationError, and StateError for one that is too large."""
    selected = _select(visit, state, given, items)
    batcher = state.distributed.batcher if state.distributed else None
    if batcher is None:
        return [ChildInput(visit.document_of(item), 1) for item in selected]
    common = visit.render(batcher.batch_input, given) if batcher.batch_input else None
    around = len(to_text(_around([], common)).encode())
    return [
        ChildInput(visit.document_of(_around(chunk, common)), len(chunk))
        for chunk in _chunks(visit, batcher, given, selected, around)
    ]


def _select(visit: Visit, state: Map, given: Json, items: list[Item]) -> list[Json]:
    if state.parameters is None:
        return [item.whole for item in items]
    context = visit.context()
    scope = visit.scope(given)
    selected = []
    for index, item in enumerate(items):
        current = {**context, "Map": {"Item": item.context(index)}}
        scope.context = lambda current=current: current  # type: ignore[misc]
        selected.append(state.parameters.render(scope))
    return selected


def _around(chunk: list[Json], common: Json) -> Json:
    return {"Items": chunk} if common is None else {"BatchInput": common, "Items": chunk}


def _chunks(visit: Visit, batcher: Batcher, given: Json, items: list[Json], around: int) -> list[list[Json]]:
    """Items in batches within both limits; `around` is how many bytes a batch has besides its items."""
    most = whole(visit, batcher.max_items, "MaxItemsPerBatchPath", given) or len(items)
    room = whole(visit, batcher.max_bytes, "MaxInputBytesPerBatchPath", given) or MAX_DATA
    chunks: list[list[Json]] = []
    size = 0
    for item in items:
        bytes_ = len(to_text(item).encode()) + 1
        if not chunks or len(chunks[-1]) >= most or size + bytes_ > room:
            chunks.append([])
            size = around
        chunks[-1].append(item)
        size += bytes_
    return chunks
