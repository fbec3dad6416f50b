"""What the comparison of one partition left behind: its counters, and where its findings lie."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trueup.model.base import Count, Instant, Sha256, Value
from trueup.model.reconcile import Side
from trueup.model.states import Phase


class FindingsObject(Value):
    """An object of findings, as JSON Lines."""

    location: str
    sha256: Sha256
    lines: Count


class Covered(Value):
    """How many rows a scan gave, and how many there were by the source's own count, apart from the scan.

    None: the source has no such count of the same state.
    """

    rows: Count
    counted: Count | None = None


class Compared(Value):
    """The end of a partition's comparison, or of its second look.

    `counts` are exact; of a second look `states` says how many candidates of a kind came to which state, as
    `CONFIRMED MISSING`. `covered` is of the last scan, `scans` how many there were.
    `known` says how many differences are known by whose word.
    `ages` says how many confirmed findings are how old, and `oldest` since when the oldest has been there;
    `unread` why what an earlier run found could not be read, empty where it could.
    """

    schema_version: Literal[1] = 1
    partition_id: str
    phase: Phase
    as_of: Instant | None = None
    finished_at: Instant
    counts: dict[str, Count] = Field(default_factory=dict)
    states: dict[str, Count] = Field(default_factory=dict)
    candidates: Count = 0
    scans: Count = 0
    known: dict[str, Count] = Field(default_factory=dict)
    ages: dict[str, Count] = Field(default_factory=dict)
    oldest: Instant | None = None
    unread: str = ""
    covered: dict[Side, Covered] = Field(default_factory=dict)
    objects: list[FindingsObject] = Field(default_factory=list)
