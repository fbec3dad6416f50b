"""What a comparison says: findings, exact counters, and the judgement over them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from trueup.compare.layout import Key
from trueup.compare.lines import field_text
from trueup.model.reconcile import Side

__all__ = ["Counts", "Difference", "Finding", "Kind", "State", "Verdict", "fingerprint", "json_lines"]


class Kind(StrEnum):
    """What is wrong with a key, or with a row."""

    MISSING = "MISSING"  # the truth has it, the target does not
    EXTRA = "EXTRA"  # the target has it, the truth does not
    MISMATCHED = "MISMATCHED"  # both have it, with other values
    DUPLICATE = "DUPLICATE"  # a side has it more than once: which row would be compared?
    UNREADABLE = "UNREADABLE"  # a value, or a whole row, is not what was declared
    UNSORTED = "UNSORTED"  # a side is not in the order of its keys: nothing after it was compared


DRIFT = frozenset({Kind.MISSING, Kind.EXTRA, Kind.MISMATCHED})
"""What is a difference. The other kinds are rows that could not be compared."""


class State(StrEnum):
    """What a second look, after the lag, says of a finding."""

    CONFIRMED = "CONFIRMED"  # both sides are as they were: real
    RESOLVED = "RESOLVED"  # they agree now: it was in flight
    KNOWN = "KNOWN"  # real, and signed as known: neither drift nor to be repaired
    MOVING = "MOVING"  # they still differ, in another way: look again


class Verdict(StrEnum):
    """What a reconciliation comes to. Only CLEAN says that the sides agree."""

    CLEAN = "CLEAN"
    DRIFT = "DRIFT"
    INCOMPLETE = "INCOMPLETE"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Difference:
    """One column in which two rows differ: why, and the two fields as they are."""

    name: str
    reason: str
    truth: bytes
    target: bytes

    def document(self, shown: bool) -> dict[str, Any]:
        """The JSON of it; values only where they may be shown."""
        document: dict[str, Any] = {"name": self.name, "reason": self.reason}
        if shown:
            document |= {"truth": field_text(self.truth), "target": field_text(self.target)}
        return document


@dataclass(frozen=True, slots=True)
class Finding:
    """One key, or one row, with what is wrong.

    `key` is None for a row whose key cannot be read. `truth` and `target` are fingerprints of the rows, None
    where there is none. `newer`: a row changed after the instant that is compared, so it may be in flight.
    `detail` says what the other fields do not. `state` is None until a second look.
    """

    kind: Kind
    key: Key | None
    truth: str | None = None
    target: str | None = None
    differences: tuple[Difference, ...] = ()
    newer: bool = False
    detail: str = ""
    side: Side | None = None
    state: State | None = None

    def document(self, shown: bool = False) -> dict[str, Any]:
        """The JSON of it. Without `shown` it holds keys, names and reasons, but no value."""
        document: dict[str, Any] = {"kind": self.kind, "key": None if self.key is None else list(self.key)}
        if self.side is not None:
            document["side"] = self.side
        if self.detail:
            document["detail"] = self.detail
        document |= {"truth": self.truth, "target": self.target, "newer": self.newer}
        if self.differences:
            document["fields"] = [one.document(shown) for one in self.differences]
        if self.state is not None:
            document["state"] = self.state
        return document

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Finding:
        """What a second look needs of a finding, from the JSON of it: all but its differences."""
        return cls(
            Kind(document["kind"]),
            None if document["key"] is None else tuple(document["key"]),
            document["truth"],
            document["target"],
            newer=document["newer"],
            detail=document.get("detail", ""),
        )

    def settled(self, state: State) -> Finding:
        """The finding after a second look."""
        return replace(self, state=state)


def json_lines(findings: Iterable[Finding], shown: bool = False) -> Iterator[bytes]:
    """Findings as lines of JSON, each with its newline."""
    for one in findings:
        yield (
            json.dumps(one.document(shown), ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "backslashreplace"
            )
            + b"\n"
        )


def fingerprint(line: bytes) -> str:
    """What stands for a row in a report: 32 hexadecimal digits of the SHA-256 of its canonical line."""
    return hashlib.sha256(line).hexdigest()[:32]


@dataclass(slots=True)
class Counts:
    """Exact counters. Rows are those of each side, the others are keys, each in one class.

    truth rows = matched + mismatched + unreadable keys + missing + its rows of duplicate keys + unkeyed rows,
    and the like for the target; `rows_add_up` says whether that holds.
    """

    truth_rows: int = 0
    target_rows: int = 0
    matched: int = 0
    missing: int = 0
    extra: int = 0
    mismatched: int = 0
    unreadable: int = 0
    duplicates: int = 0
    truth_duplicate_rows: int = 0
    target_duplicate_rows: int = 0
    truth_unkeyed: int = 0
    target_unkeyed: int = 0
    newer: int = 0
    unsorted: int = field(default=0)

    def plus(self, other: Counts) -> Counts:
        """The sums."""
        names = [one.name for one in fields(self)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def candidates(self) -> int:
        """How many keys differ."""
        return self.missing + self.extra + self.mismatched

    @property
    def rows_add_up(self) -> bool:
        """Whether every row that was read is in one class."""
        both = self.matched + self.mismatched + self.unreadable
        truth = both + self.missing + self.truth_duplicate_rows + self.truth_unkeyed
        target = both + self.extra + self.target_duplicate_rows + self.target_unkeyed
        return bool(self.unsorted) or (self.truth_rows, self.target_rows) == (truth, target)

    def document(self) -> dict[str, int]:
        """The JSON of them."""
        return {_camel(one.name): getattr(self, one.name) for one in fields(self)}

    @classmethod
    def read(cls, document: Mapping[str, int]) -> Counts:
        """The counters of such a JSON; what it leaves out is 0."""
        return cls(**{one.name: document.get(_camel(one.name), 0) for one in fields(cls)})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
