"""The second look: candidates of the phase `compare` again, at least the lag later, until they hold still.

A task never waits for the lag. Who comes too early, or leaves candidates that keep changing, gives the
partition back; the machine waits, and launches again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

from trueup.artifacts.findings import left_by, lines_of, reported
from trueup.compare import Finding, Key, Layout, State, as_compared, look_again
from trueup.compare.findings import DRIFT
from trueup.errors import ArtifactMissing
from trueup.model.compared import Compared
from trueup.model.known import Known
from trueup.model.ledger import PartitionItem
from trueup.model.plan import Partition
from trueup.model.states import Phase
from trueup.worker.ages import Ages, Earlier, age_of
from trueup.worker.batches import Figures, Worked, WorkedBatch
from trueup.worker.comparing import Comparison, span_of
from trueup.worker.known import Signed
from trueup.worker.stopping import Later, Stop

AT_ONCE = 2_000
"""Candidates that are fetched together: a source without an index is read once for each such batch."""
MOVING = "keeps changing"


@dataclass(frozen=True, slots=True)
class Look:
    """How far the looks got: `at` candidates of look number `number`, `moving` of them to be looked at again.

    `since` is when the look before this one ended. `ages` says how many confirmed findings are how old, and
    `oldest` since when the oldest has been there; `known` how many differences are known by whose word, and
    `unread` why earlier findings could not be read.
    """

    since: datetime
    number: int = 1
    at: int = 0
    moving: int = 0
    states: dict[str, int] = field(default_factory=dict)
    ages: dict[str, int] = field(default_factory=dict)
    oldest: str | None = None
    known: dict[str, int] = field(default_factory=dict)
    unread: str = ""
    over: bool = False

    @classmethod
    def read(cls, cursor: str) -> Look:
        """From a cursor."""
        found = json.loads(cursor.removeprefix("v1:"))
        return cls(**{**found, "since": datetime.fromisoformat(found["since"])})

    def cursor(self) -> str:
        """As a cursor."""
        document = {
            "since": self.since.isoformat(),
            "number": self.number,
            "at": self.at,
            "moving": self.moving,
            "states": self.states,
            "ages": self.ages,
            "oldest": self.oldest,
            "known": self.known,
            "unread": self.unread,
            "over": self.over,
        }
        return f"v1:{json.dumps(document, separators=(',', ':'))}"


class Confirmation(Comparison):
    """What a task of the phase `confirm` reads."""

    phase, earlier = Phase.CONFIRM, Phase.COMPARE

    def count(self, part: Partition) -> int:
        """How many candidates there are, as the comparison counted them."""
        return self._before(part).candidates

    def read(self, part: Partition, after: str | None) -> Iterator[Any]:
        """The candidates with what a look says of each, after a cursor. Raises Later where it has to wait."""
        before = self._before(part)
        look = Look(before.finished_at) if after is None else Look.read(after)
        if look.over:
            return
        self._must_be_due(look)
        candidates = islice(self._candidates(part, before, look), look.at, None)
        with closing(self._ages_of(part, look.unread)) as self.ages:
            while chunk := list(islice(candidates, AT_ONCE)):
                look, batch = self._looked(look, chunk)
                yield batch
        if look.moving:
            look = replace(look, since=self.tools.clock.now(), number=look.number + 1, at=0, moving=0)
            yield WorkedBatch(look.cursor(), Worked(Figures()))
            raise self._later(look)
        yield WorkedBatch(replace(look, over=True).cursor(), Worked(Figures()))

    def _ages_of(self, part: Partition, unread: str) -> Ages:
        return Ages(self._earlier, self._layout, span_of(part), self._plan.created_at, self._watch, unread)

    @cached_property
    def _layout(self) -> Layout:
        """The columns of the key, as it is compared."""
        sides = self.sides
        compared, _ = as_compared(self.job, sides.truth, sides.target, sides.fold)
        return Layout(compared.layout.key[: len(self.job.key)])

    @cached_property
    def _earlier(self) -> list[Earlier]:
        return [Earlier(self.tools.artifacts, one, self._layout) for one in self._plan.earlier]

    def _must_be_due(self, look: Look) -> None:
        if (self.tools.clock.now() - look.since).total_seconds() < self.job.lag:
            raise self._later(look)

    def _later(self, look: Look) -> Later:
        elapsed = (self.tools.clock.now() - look.since).total_seconds()
        return Later(Stop("lag", f"{max(0.0, elapsed):.0f} s", "<", f"{self.job.lag:.0f} s"))

    def _looked(self, look: Look, chunk: list[Any]) -> tuple[Look, WorkedBatch]:
        sides = self.sides
        as_of = sides.as_of(self.tools.clock.now()) if self.job.version else None
        looked = list(look_again(self.job, sides.truth, sides.target, chunk, as_of, sides.fold))
        now = self.tools.clock.now()
        words = {one.key: word for one in looked if (word := self._signed.word(one, now))}
        found = [one.settled(State.KNOWN) if one.key in words else one for one in looked]
        is_last = look.number >= self.job.looks
        moving = [one for one in found if one.state is State.MOVING]
        final = found if is_last else [one for one in found if one.state is not State.MOVING]
        states = Counter(look.states) + Counter(f"{one.state} {one.kind}" for one in final)
        after = replace(
            look,
            at=look.at + len(chunk),
            moving=0 if is_last else look.moving + len(moving),
            states=dict(states),
        )
        after, lines = self._told(after, final, words)
        if not is_last:
            lines += [one.document(self.shown) | {"look": look.number, "again": True} for one in moving]
        return after, WorkedBatch(after.cursor(), Worked(_figures(final), _reasons(final), lines))

    @cached_property
    def _signed(self) -> Signed:
        return Signed.read(self.tools.artifacts, self._plan.known)

    def _told(
        self, look: Look, final: list[Finding], words: Mapping[Key | None, Known]
    ) -> tuple[Look, list[dict[str, Any]]]:
        """The lines of findings that no look follows: real ones since when they are there, and who knows."""
        lines, ages, oldest = [], Counter(look.ages), look.oldest
        known = Counter(look.known)
        for one in final:
            line = one.document(self.shown) | {"look": look.number}
            if one.state in (State.CONFIRMED, State.KNOWN):
                first = line["firstSeen"] = self.ages.first_seen(one)
            if one.state is State.CONFIRMED:
                ages[age_of(first, self._plan.created_at)] += 1
                oldest = min(oldest or first, first)
            if one.state is State.KNOWN:
                word = words[one.key]
                line["known"] = {"id": word.known_id, "who": word.who, "until": word.document()["until"]}
                known[word.known_id] += 1
            lines.append(line)
        unread = self.ages.unread
        return replace(look, ages=dict(ages), oldest=oldest, known=dict(known), unread=unread), lines

    def _candidates(self, part: Partition, before: Compared, look: Look) -> Iterator[Any]:
        """The candidates of a look: what the phase before left, or what the look before did."""
        if look.number == 1:
            yield from self.first(before)
            return
        item = self.tools.ledger.partitions.get(self.run.run_id, self.phase, part.id)
        lines = lines_of(self.tools.artifacts, self.run.run_id, self.phase, part.id, item.reject_parts)
        for line in lines:
            if line.get("again") and line["look"] == look.number - 1:
                yield self.left(line)

    def first(self, before: Compared) -> Iterator[Any]:
        """What is looked at first: the differences that the comparison found."""
        for line in self._lines(before):
            found = Finding.read(line)
            if found.kind in DRIFT:
                yield found

    def left(self, line: Mapping[str, Any]) -> Any:
        """What a look left to the next one."""
        return Finding.read(line)

    def _lines(self, before: Compared) -> Iterator[dict[str, Any]]:
        for one in before.objects:
            data = left_by(self.tools.artifacts, self.earlier, one.location, one.sha256)
            yield from map(json.loads, data.splitlines())

    def _before(self, part: Partition) -> Compared:
        """What the phase before left of the partition. Raises ArtifactMissing, ArtifactError."""
        item = self.tools.ledger.partitions.get(self.run.run_id, self.earlier, part.id)
        compared = self.compared(item)
        if compared is None:
            raise ArtifactMissing(
                f"Partition {part.id} left nothing in the phase {self.earlier.value}.",
                remedy="Work that phase before it is looked at again.",
            )
        return compared

    def compared(self, item: PartitionItem) -> Compared | None:
        """How the phase before ended for a partition; None where it did not. Raises ArtifactError."""
        return reported(self.tools.artifacts, self.earlier, item)

    def ended(self, part: Partition, cursor: str | None) -> Compared:
        """What the looks at a partition's candidates came to, up to a cursor."""
        # What comes before is not read here: it may be what could not be read.
        now = self.tools.clock.now()
        look = Look(now) if cursor is None else Look.read(cursor)
        return Compared(
            partition_id=part.id,
            phase=self.phase,
            finished_at=now,
            states=look.states,
            scans=look.number,
            known=look.known,
            ages=look.ages,
            oldest=datetime.fromisoformat(look.oldest) if look.oldest else None,
            unread=look.unread,
        )


def _figures(final: list[Finding]) -> Figures:
    moving = sum(one.state is State.MOVING for one in final)
    confirmed = sum(one.state is State.CONFIRMED for one in final)
    return Figures(
        read=len(final),
        used=len(final) - moving,
        skipped=moving,
        produced=confirmed,
        unchanged=confirmed,
    )


def _reasons(final: list[Finding]) -> dict[str, int]:
    moving = sum(one.state is State.MOVING for one in final)
    return {MOVING: moving} if moving else {}
