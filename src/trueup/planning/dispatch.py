"""A dispatch: the slices still to be worked, as byte ranges of one object, for one fan-out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trueup.model.base import canonical, sha256
from trueup.model.plan import Dispatch, ObjectRef, Partition, Plan, Slice
from trueup.model.states import Phase
from trueup.planning.lines import read_partitions, write_partitions
from trueup.planning.packing import pack


def make_dispatch(
    plan: Plan,
    partitions: Sequence[Partition],
    *,
    phase: Phase,
    number: int,
    unfinished: Collection[str] | None = None,
    first_slice: int = 0,
    key: str | None = None,
) -> tuple[Dispatch, bytes, bytes]:
    """The dispatch, its partitions as JSON Lines, and its slices as the JSON array for an ItemReader.

    `partitions` are the plan's, in plan order. `unfinished` are the ids still to be worked (None: all).
    Slices are numbered from `first_slice`, so that a later dispatch can go on where the last one ended and no
    number means two things in a phase. With nothing left the dispatch has no slices.
    """
    wanted = None if unfinished is None else frozenset(unfinished)
    left = [one for one in partitions if wanted is None or one.id in wanted]
    where = key or dispatch_partitions_key(plan.run_id, phase, number)
    slices, data = _cut(plan, left, where, first_slice)
    dispatch = Dispatch(
        run_id=plan.run_id,
        phase=phase,
        number=number,
        plan_sha256=plan.sha256(),
        partitions=ObjectRef(key=where, sha256=sha256(data), bytes=len(data)),
        slices=slices,
    )
    return dispatch, data, canonical([one.document() for one in slices])


def _cut(plan: Plan, partitions: Sequence[Partition], key: str, first: int) -> tuple[list[Slice], bytes]:
    job = plan.job
    packs = pack(
        partitions,
        order=job.order,
        target_seconds=job.task.minutes * 60,
        max_concurrency=job.limits.max_concurrency,
    )
    slices: list[Slice] = []
    pieces: list[bytes] = []
    offset = 0
    for number, packed in enumerate(packs, start=first):
        piece = write_partitions(packed.partitions)
        slices.append(
            Slice(
                slice_id=number,
                key=key,
                offset=offset,
                length=len(piece),
                partitions=len(packed.partitions),
                weight=round(packed.weight, 3),
            )
        )
        pieces.append(piece)
        offset += len(piece)
    return slices, b"".join(pieces)


def read_slice(data: bytes) -> list[Partition]:
    """The partitions of a slice, in the order of work; `data` are its `length` bytes from its `offset`."""
    return read_partitions(data)


def dispatch_partitions_key(run_id: str, phase: Phase, number: int) -> str:
    """Where a dispatch's partitions are stored."""
    return f"runs/{run_id}/{phase.value}/dispatch/{number}/partitions.jsonl"
