"""What a repair keeps of its items: how far it got, what is intended, and what became of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trueup.model.repair import RepairItem, RepairOutcome


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a repair got: all items before `at` are done, and the intents of `intended` more are stored."""

    at: int = 0
    intended: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    tripped: bool = False
    over: bool = False

    @classmethod
    def read(cls, cursor: str | None) -> Progress:
        """From a cursor; None is the start."""
        return cls() if cursor is None else cls(**json.loads(cursor.removeprefix("v1:")))

    def cursor(self) -> str:
        """As a cursor."""
        document = {
            "at": self.at,
            "intended": self.intended,
            "outcomes": self.outcomes,
            "tripped": self.tripped,
            "over": self.over,
        }
        return f"v1:{json.dumps(document, separators=(',', ':'))}"

    @property
    def bad(self) -> int:
        """How many items were stale or failed."""
        applied = f"{RepairOutcome.APPLIED} "
        return sum(number for name, number in self.outcomes.items() if not name.startswith(applied))

    def plus(self, done: list[Done], left: int) -> Progress:
        """After a chunk, of which so many items were left because too much went wrong."""
        outcomes = Counter(self.outcomes) + Counter(f"{one.outcome} {one.item.action}" for one in done)
        return replace(
            self,
            at=self.at + len(done) + left,
            intended=0,
            outcomes=dict(outcomes),
            tripped=self.tripped or left > 0,
        )


@dataclass(frozen=True, slots=True)
class Intent:
    """What is stored of an item before it is done: the row as it is, and as it is to be; or why not.

    Canonical lines; None is no row.
    """

    item: RepairItem
    before: bytes | None = None
    wanted: bytes | None = None
    stale: RepairOutcome | None = None

    @property
    def bytes(self) -> int:
        """How large both rows are."""
        return len(self.before or b"") + len(self.wanted or b"")

    def document(self) -> dict[str, Any]:
        """The line of it."""
        said = {"at": self.item.at, "key": list(self.item.key), "action": self.item.action}
        if self.stale is not None:
            return {**said, "intent": None, "stale": self.stale}
        return {**said, "intent": {"before": as_text(self.before), "wanted": as_text(self.wanted)}}

    @classmethod
    def read(cls, item: RepairItem, line: Mapping[str, Any]) -> Intent:
        """From its line."""
        if line["intent"] is None:
            return cls(item, stale=RepairOutcome(line["stale"]))
        return cls(item, as_line(line["intent"]["before"]), as_line(line["intent"]["wanted"]))


@dataclass(frozen=True, slots=True)
class Done:
    """What became of an item."""

    item: RepairItem
    outcome: RepairOutcome
    detail: str = ""

    def document(self) -> dict[str, Any]:
        """The line of it."""
        said = {
            "at": self.item.at,
            "key": list(self.item.key),
            "action": self.item.action,
            "outcome": self.outcome,
        }
        return {**said, "detail": self.detail} if self.detail else said


def as_text(line: bytes | None) -> str | None:
    """A canonical line as JSON holds it."""
    return None if line is None else line.decode("utf-8", "surrogateescape")


def as_line(text: str | None) -> bytes | None:
    """The same back."""
    return None if text is None else text.encode("utf-8", "surrogateescape")
