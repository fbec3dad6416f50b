"""What a rule is, how one is registered, and what breaking one looks like."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from trueup.contract.facts import Facts
from trueup.model.ledger import PartitionItem
from trueup.model.result import PartitionResult, ResultContract

DocumentCheck = Callable[[ResultContract, Facts], Iterator[str]]
PartitionCheck = Callable[[PartitionResult, PartitionItem, Facts], Iterator[str]]
Check = TypeVar("Check", DocumentCheck, PartitionCheck)


@dataclass(frozen=True)
class Refusal:
    """A rule that a contract broke: which, with the figures of both sides, and what to do now.

    `partition_id` is None where the whole document is to blame.
    """

    invariant: str
    partition_id: str | None
    message: str
    remedy: str

    def __str__(self) -> str:
        """One line for logs and people."""
        where = "" if self.partition_id is None else f"{self.partition_id}: "
        return f"{where}{self.message} [{self.invariant}] {self.remedy}"


@dataclass(frozen=True)
class Rule:
    """A rule under its stable name, with what it means and what to do where it is broken."""

    name: str
    meaning: str
    remedy: str

    def refuse(self, message: str, partition_id: str | None = None) -> Refusal:
        """The refusal that says how this rule was broken."""
        return Refusal(self.name, partition_id, message, self.remedy)


# In the order in which they are checked. `STANDING` decides whether a document speaks of this launch at all.
STANDING: dict[str, tuple[Rule, DocumentCheck]] = {}
DOCUMENT: dict[str, tuple[Rule, DocumentCheck]] = {}
PARTITION: dict[str, tuple[Rule, PartitionCheck]] = {}


def invariant(registry: dict[str, tuple[Rule, Check]], name: str, *, remedy: str) -> Callable[[Check], Check]:
    """Register a check that yields one message for each way in which its rule is broken.

    The check's docstring is the rule's meaning.
    """

    def register(check: Check) -> Check:
        registry[name] = (Rule(name, inspect.getdoc(check) or "", remedy), check)
        return check

    return register


def check_document(
    registry: dict[str, tuple[Rule, DocumentCheck]], contract: ResultContract, facts: Facts
) -> list[Refusal]:
    """Every refusal of the registry's checks; empty where all hold."""
    return [rule.refuse(text) for rule, check in registry.values() for text in check(contract, facts)]


def check_partition(entry: PartitionResult, item: PartitionItem, facts: Facts) -> list[Refusal]:
    """Every refusal of the partition-level checks; empty where all hold."""
    return [
        rule.refuse(text, item.partition_id)
        for rule, check in PARTITION.values()
        for text in check(entry, item, facts)
    ]


def show(value: object) -> str:
    """A value as JSON, short enough for a sentence."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
