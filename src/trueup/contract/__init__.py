"""Judging what a task says it has done. A report is not a fact until it passed here.

Pure: what the run, the ledger and the store say is handed in as `Facts`. An accepting handler does this:

    judgement = judge_document(data, facts)                 # if the task lived to store a result
    for item in the partitions that the launch and task reported:
        refusals = [*judgement.against(item), *judge_entry(item, facts)]
        write verdict(item, refusals)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trueup.contract import document, partition
from trueup.contract.facts import Facts, locations
from trueup.contract.reading import parse
from trueup.contract.rules import DOCUMENT, PARTITION, STANDING, Refusal, check_document, check_partition
from trueup.model.ledger import PartitionItem
from trueup.model.result import ResultContract
from trueup.model.states import END_STATES, PartitionStatus, ResultStatus

__all__ = [
    "Facts",
    "Judgement",
    "Refusal",
    "Standing",
    "judge_document",
    "judge_entry",
    "locations",
    "parse",
    "verdict",
]

# Importing them registers their invariants.
_REGISTERED = (document, partition)

_VERDICTS = {
    ResultStatus.SUCCEEDED: PartitionStatus.ACCEPTED,
    ResultStatus.FAILED: PartitionStatus.FAILED,
    ResultStatus.REJECTED: PartitionStatus.REJECTED,
}


class Standing(StrEnum):
    """What a document is worth."""

    GOOD = "GOOD"
    REFUSED = "REFUSED"
    STALE = "STALE"


@dataclass(frozen=True)
class Judgement:
    """What a document is worth, and why. A STALE one says why it is stale, and counts against nobody."""

    standing: Standing
    refusals: tuple[Refusal, ...]
    launch: int
    task: str

    def against(self, item: PartitionItem) -> tuple[Refusal, ...]:
        """What the document says against a partition: only against one that its launch and task reported."""
        reported = item.status is PartitionStatus.REPORTED and (item.launch, item.task) == (
            self.launch,
            self.task,
        )
        if self.standing is Standing.STALE or not reported:
            return ()
        return tuple(one for one in self.refusals if one.partition_id in (None, item.partition_id))


def judge_document(data: bytes, facts: Facts) -> Judgement:
    """Judge the result that is stored for the launch and task of `facts`. Raises nothing.

    STALE where it names another generation, launch or task; REFUSED where it cannot be read or breaks an
    invariant; else GOOD.
    """
    contract = parse(data, facts.max_bytes)
    if isinstance(contract, list):
        return _judgement(Standing.REFUSED, contract, facts)
    if stale := check_document(STANDING, contract, facts):
        return _judgement(Standing.STALE, stale, facts)
    refusals = [*check_document(DOCUMENT, contract, facts), *_partition_refusals(contract, facts)]
    return _judgement(Standing.REFUSED if refusals else Standing.GOOD, refusals, facts)


def judge_entry(item: PartitionItem, facts: Facts) -> list[Refusal]:
    """Judge a REPORTED partition by the entry in its own item, whether or not its task stored a result.

    Of `facts` it needs the job's rules, the phase and the objects; the launch may be any.
    Raises ValueError for a partition that is not REPORTED.
    """
    _must_be_reported(item)
    if item.entry is None:
        rule, _ = PARTITION["entry-is-the-ledgers"]
        return [
            rule.refuse("the partition is REPORTED, and the ledger holds no entry for it", item.partition_id)
        ]
    return check_partition(item.entry, item, facts)


def verdict(item: PartitionItem, refusals: Sequence[Refusal]) -> PartitionStatus:
    """What a REPORTED partition becomes: REFUSED with any refusal, else what its entry says of it.

    Raises ValueError for a partition that is not REPORTED.
    """
    _must_be_reported(item)
    if refusals or item.entry is None:
        return PartitionStatus.REFUSED
    return _VERDICTS.get(item.entry.status, PartitionStatus.REFUSED)


def _judgement(standing: Standing, refusals: Sequence[Refusal], facts: Facts) -> Judgement:
    return Judgement(standing, tuple(refusals), facts.launch, facts.task)


def _partition_refusals(contract: ResultContract, facts: Facts) -> list[Refusal]:
    """What speaks against single partitions; none against those that ended or that a later launch took."""
    refusals = []
    for entry in contract.partitions:
        item = facts.item(entry.partition_id)
        if item.status not in END_STATES and item.launch <= contract.launch:
            refusals += check_partition(entry, item, facts)
    return refusals


def _must_be_reported(item: PartitionItem) -> None:
    if item.status is not PartitionStatus.REPORTED:
        raise ValueError(f"{item.partition_id} is {item.status.value}; only a REPORTED partition is judged")
