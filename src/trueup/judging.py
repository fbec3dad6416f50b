"""From reports to decisions: gathers what the contract's rules need, for `accept` and `settle`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from trueup.artifacts import Artifacts, result_key_of
from trueup.contract import Facts, Judgement, Refusal, judge_document, judge_entry, locations, verdict
from trueup.contract.reading import parse
from trueup.errors import ArtifactMissing
from trueup.ledger import Decision
from trueup.model.base import cut
from trueup.model.ledger import PartitionItem, Run
from trueup.model.plan import Plan
from trueup.model.result import LARGEST_CONTRACT, LONGEST_MESSAGE, PartitionError, ResultContract
from trueup.model.states import PartitionStatus, Phase


def judge_reported(
    artifacts: Artifacts,
    run: Run,
    plan: Plan,
    phase: Phase,
    slice_id: int | None,
    items: Mapping[str, PartitionItem],
) -> list[Decision]:
    """What each REPORTED partition among the items becomes.

    Each is judged by its own entry, and by the result that its launch and task stored, where they lived to
    store one and the slice is known. Reads S3; writes nothing.
    """
    reported = [item for item in items.values() if item.status is PartitionStatus.REPORTED]
    decisions = []
    for (launch, task), group in _by_launch(reported):
        members = list(group)
        facts = gather(artifacts, run, plan, phase, slice_id or 0, launch, task, items, members)
        judgement = None if slice_id is None else _judge_result(artifacts, facts)
        decisions += [_decide(item, judgement, facts) for item in members]
    return decisions


def _by_launch(items: list[PartitionItem]) -> Iterator[tuple[tuple[int, str], Iterator[PartitionItem]]]:
    def owner(item: PartitionItem) -> tuple[int, str]:
        return item.launch, item.task or ""

    return groupby(sorted(items, key=owner), key=owner)


def gather(
    artifacts: Artifacts,
    run: Run,
    plan: Plan,
    phase: Phase,
    slice_id: int,
    launch: int,
    task: str,
    items: Mapping[str, PartitionItem],
    reported: Iterable[PartitionItem],
) -> Facts:
    """The other side of every invariant: from run, plan, the ledger's items and S3's own checksums."""
    named = locations(*(item.entry for item in reported if item.entry is not None))
    return Facts(
        run_id=run.run_id,
        job=run.job,
        generation=run.generation,
        phase=phase,
        slice_id=slice_id,
        launch=launch,
        task=task,
        plan_sha256=run.plan_sha256,
        code=plan.code(phase),
        empty_allowed=plan.job.partitions.empty == "allowed",
        reject_limit=plan.job.errors.rejects,
        dry_run=plan.dry_run,
        items=items,
        slice_partitions=frozenset(items),
        objects={location: artifacts.store.checksum(location) for location in named},
    )


def _judge_result(artifacts: Artifacts, facts: Facts) -> Judgement | None:
    data = _stored(
        artifacts, result_key_of(facts.run_id, facts.phase, facts.slice_id, facts.launch, facts.task)
    )
    return None if data is None else judge_document(data, facts)


def warnings_of(artifacts: Artifacts, key: str) -> list[str]:
    """What a task warned of in its result, its reason for leaving early first; nothing without one."""
    contract = parse(_stored(artifacts, key) or b"", LARGEST_CONTRACT)
    return list(contract.warnings) if isinstance(contract, ResultContract) else []


def _stored(artifacts: Artifacts, key: str) -> bytes | None:
    """A result; None where the task did not live to store it."""
    try:
        return artifacts.store.get(key)
    except ArtifactMissing:
        return None


def _decide(item: PartitionItem, judgement: Judgement | None, facts: Facts) -> Decision:
    refusals = [*(judgement.against(item) if judgement else ()), *judge_entry(item, facts)]
    return Decision(item, verdict(item, refusals), _as_error(refusals))


def _as_error(refusals: list[Refusal]) -> PartitionError | None:
    if not refusals:
        return None
    told = dict.fromkeys(str(refusal) for refusal in refusals)
    return PartitionError(kind="Refused", message=cut("\n".join(told), LONGEST_MESSAGE))
