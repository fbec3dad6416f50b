"""Differences that a person signed as known until a date: what is signed, by whom, what is told of it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trueup.model.base import Count, Instant, Name, Sha256, Value, canonical, sha256

MOST_SIGNED = 1_000
"""So many differences one word can sign: nobody looks at more."""
MOST_KNOWN = 10_000
"""So many may be known of one target at a time: every task holds them."""
MOST_WORDS = 100
"""So many words may be good of one target at a time: a task counts by each, in its cursor."""
LONGEST_DAYS = 366

Why = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"\S")]


class KnownItem(Value):
    """One difference as it was signed: its key, its class, and the fingerprints of both rows.

    With another class or another row on either side it is not known any more.
    """

    key: tuple[str, ...]
    kind: str
    truth: str | None = None
    target: str | None = None

    @classmethod
    def of(cls, finding: dict[str, Any]) -> KnownItem:
        """From a line of a report's findings."""
        return cls(
            key=tuple(finding["key"]),
            kind=finding["kind"],
            truth=finding["truth"],
            target=finding["target"],
        )


class Withdrawal(Value):
    """Somebody's word that a word does not count any more."""

    who: str
    at: Instant
    why: str


class Known(Value):
    """Somebody's word that some differences of a report are known, until an instant.

    `key` and `sha256` are of the object that lists them, `number` how many there are, and `report_sha256` is
    what was looked at. `withdrawn` says who took the word back.
    """

    known_id: str
    job: Name
    scope: str
    run_id: str
    report_sha256: Sha256
    key: str
    sha256: Sha256
    number: Count
    who: str
    at: Instant
    until: Instant
    why: str
    withdrawn: Withdrawal | None = None

    def hash(self) -> str:
        """What the audit trail says of it: a hash of all that was signed."""
        signed = {name: part for name, part in self.document().items() if name != "withdrawn"}
        return sha256(canonical(signed))


class Pinned(Value):
    """A word with the differences that it signs."""

    known: Known
    items: tuple[KnownItem, ...]


class PinnedKnown(Value):
    """All that was known when a run was planned: one object, whose SHA-256 is in the plan."""

    words: tuple[Pinned, ...]


class KnownWord(Value):
    """A person's word; whose it is says the signature of the call, never the body.

    `sha256` is that of the report. Without `keys` all that it confirms is meant.
    """

    sha256: Sha256
    until: Instant
    why: Why
    keys: Annotated[tuple[tuple[str, ...], ...], Field(max_length=MOST_SIGNED)] | None = None


class WithdrawWord(Value):
    """Why a word about known differences does not count any more."""

    why: Why


class KnownList(Value):
    """The words about a job's differences that are valid now."""

    known: list[Known]


class KnownLine(Value):
    """A word that was valid when a run was planned: of `signed` differences `findings` are as they were."""

    known_id: str
    run_id: str
    who: str
    until: Instant
    why: str
    signed: Count
    findings: Count
