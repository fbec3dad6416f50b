"""The report of a reconciliation, from the ledger and from what its tasks left in S3."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from trueup.artifacts import Artifacts, comparison_key
from trueup.artifacts.findings import lines_in, listed, reported
from trueup.compare import Counts, Judgement, State, Verdict, judge
from trueup.compare.findings import DRIFT
from trueup.errors import ArtifactError, ArtifactExists, ArtifactMissing
from trueup.history import leave
from trueup.ledger import Ledger
from trueup.model.base import canonical, sha256
from trueup.model.compared import Compared
from trueup.model.known import KnownLine, PinnedKnown
from trueup.model.ledger import PartitionItem, Run
from trueup.model.plan import Plan
from trueup.model.reconcile import Side, Source
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import (
    AGE_NAMES,
    AgeLine,
    Ages,
    Coverage,
    FieldLine,
    ObjectList,
    ReconcileReport,
    StateLine,
)
from trueup.model.repair import gate_of
from trueup.model.states import RUN_ENDS, PartitionStatus, Phase
from trueup.reporting.repairs import Repairs
from trueup.watching.planned import planned_items

FINDINGS_READ = 20_000
"""So many findings are read for their reasons; the counters are exact whatever their number."""
FINDINGS_SHOWN = 200
SHOWN_BYTES = 2**20
"""Of the findings that a report shows; the values in them may be large."""
TROUBLES_TOLD = 20


class Comparisons:
    """Makes the reports of reconciliations, once each: what is stored first stands."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def of(self, run: Run) -> ReconcileReport | None:
        """The report, made now where all was compared or the run has ended; None before that.

        Raises StoreUnavailable, ArtifactError.
        """
        if run.kind != "reconcile" or run.undoes:
            return None
        with suppress(ArtifactMissing):
            return self._stored(run)
        if run.status not in RUN_ENDS and not self._is_through(run):
            return None
        report = self._made(run)
        if run.is_planned:  # before it is stored: who finds it stored does nothing more
            self._leave(run, report)
        with suppress(ArtifactExists):
            self._artifacts.store.put_once(comparison_key(run.run_id, "json"), canonical(report.document()))
        return self._stored(run)

    def _leave(self, run: Run, report: ReconcileReport) -> None:
        job = self._artifacts.plan_of(run).job
        if isinstance(job, Reconciliation):
            leave(self._ledger, run, job, report)

    def verdict(self, run: Run) -> str | None:
        """What a reconciliation that is through comes to, in a line; None for any other run."""
        if (repair := Repairs(self._ledger, self._artifacts).of(run)) is not None:
            return repair.line
        report = self.of(run)
        return None if report is None else ": ".join([report.verdict, *report.reasons[:1]])

    def is_through(self, run: Run, phase: Phase) -> bool:
        """Whether nothing follows a complete phase: it is the last, or nothing of its report is repaired."""
        if phase is run.phases[-1]:
            return True
        if phase is not Phase.CONFIRM:
            return False
        report, job = self.of(run), self._artifacts.plan_of(run).job
        repair = job.repair if isinstance(job, Reconciliation) else None
        return report is not None and gate_of(report, repair) is None

    def sha256_of(self, run: Run) -> str:
        """The hash that an approval names. Raises ArtifactMissing."""
        return sha256(self._artifacts.store.get(comparison_key(run.run_id, "json")))

    def stored(self, run: Run) -> ReconcileReport | None:
        """The report where it is made already."""
        try:
            return self._stored(run) if run.kind == "reconcile" else None
        except ArtifactMissing:
            return None

    def _stored(self, run: Run) -> ReconcileReport:
        data = self._artifacts.store.get(comparison_key(run.run_id, "json"))
        return ReconcileReport.model_validate_json(data)

    def _is_through(self, run: Run) -> bool:
        """Whether every partition came to its end in both phases."""
        ended = self._ledger.verdicts.counts_by_phase(run.run_id)
        done = [ended[phase].tally().partitions if phase in ended else 0 for phase in run.phases[:2]]
        return run.is_planned and all(number >= run.partitions for number in done)

    def _made(self, run: Run) -> ReconcileReport:
        plan = self._artifacts.plan_of(run) if run.is_planned else None
        gathered = _Gathered()
        if plan is not None:
            for phase in (Phase.COMPARE, Phase.CONFIRM):
                for item, *_ in planned_items(self._ledger, self._artifacts, run, phase, plan):
                    self._gather(gathered, phase, item)
            gathered.words = self._words(plan, gathered)
        read = _Read()
        for finding in islice(self._findings(gathered), FINDINGS_READ):
            read.add(finding)
        return _report(run, plan, gathered, read)

    def _words(self, plan: Plan, gathered: _Gathered) -> list[KnownLine]:
        """The words that were valid when the run was planned; one that cannot be read is an error."""
        if plan.known is None:
            return []
        try:
            data = self._artifacts.check(plan.known.key, plan.known.sha256)
        except ArtifactError as changed:
            gathered.errors.append(str(changed))
            return []
        return [
            KnownLine(
                known_id=one.known.known_id,
                run_id=one.known.run_id,
                who=one.known.who,
                until=one.known.until,
                why=one.known.why,
                signed=one.known.number,
                findings=gathered.known[one.known.known_id],
            )
            for one in PinnedKnown.model_validate_json(data).words
        ]

    def _gather(self, gathered: _Gathered, phase: Phase, item: PartitionItem) -> None:
        """Add a partition; where what it left is gone or was changed, nobody can say what it came to."""
        try:
            compared = self._compared(phase, item)
        except ArtifactError as changed:
            gathered.ended[phase][item.status] += 1
            gathered.errors.append(str(changed))
            return
        gathered.add(phase, item, compared)

    def _compared(self, phase: Phase, item: PartitionItem) -> Compared | None:
        """How the task said that the partition ended, if it is accepted. Raises ArtifactError."""
        accepted = item.status is PartitionStatus.ACCEPTED
        return reported(self._artifacts, phase, item) if accepted else None

    def _findings(self, gathered: _Gathered) -> Iterator[dict[str, Any]]:
        """The findings as they ended, each once. What is not as it was stored is an error."""
        for one in gathered.lists:
            for finding in self._lines(gathered, one):
                if _is_last_word(finding, one.phase, gathered.looked_at):
                    yield {"partitionId": one.partition_id, **finding}

    def _lines(self, gathered: _Gathered, one: ObjectList) -> Iterator[dict[str, Any]]:
        """The lines behind a list; where an object is gone or was changed, those of the others."""
        try:
            objects = listed(self._artifacts, one)
        except ArtifactError as changed:
            gathered.errors.append(str(changed))
            return
        for there in objects:
            try:
                yield from lines_in(self._artifacts, one.phase, there)
            except ArtifactError as changed:
                gathered.errors.append(str(changed))


def _is_last_word(finding: Mapping[str, Any], phase: Phase, looked_at: bool) -> bool:
    """Whether nothing later is said of a finding: candidates are told by the second look."""
    if phase is Phase.CONFIRM:
        return not finding.get("again")
    return not looked_at or finding["kind"] not in DRIFT


@dataclass(slots=True)
class _Read:
    """What is told of the findings that were read: why they differ, and the first ones as they are."""

    number: int = 0
    fields: Counter[tuple[str, str]] = field(default_factory=Counter)
    shown: list[dict[str, Any]] = field(default_factory=list)
    room: int = field(default_factory=lambda: SHOWN_BYTES)

    def add(self, finding: dict[str, Any]) -> None:
        """One more. Those that are shown are the first ones, so none is once one had no room."""
        self.number += 1
        self.fields.update((one["name"], one["reason"]) for one in finding.get("fields", ()))
        if self.number == len(self.shown) + 1 <= FINDINGS_SHOWN:
            self.room -= len(json.dumps(finding))
            self.shown += [finding] if self.room >= 0 else []

    def lines(self) -> list[FieldLine]:
        """Why they differ, the most frequent reason first."""
        return [
            FieldLine(name=name, reason=reason, findings=number)
            for (name, reason), number in sorted(self.fields.items(), key=lambda one: (-one[1], one[0]))
        ]


@dataclass(slots=True)
class _Gathered:
    """What the partitions of a run come to."""

    counts: Counts = field(default_factory=Counts)
    states: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    ages: Counter[str] = field(default_factory=Counter)
    oldest: list[datetime] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    words: list[KnownLine] = field(default_factory=list)
    lists: list[ObjectList] = field(default_factory=list)
    covered: dict[Side, Counter[str]] = field(default_factory=lambda: {side: Counter() for side in Side})
    ended: dict[Phase, Counter[PartitionStatus]] = field(
        default_factory=lambda: {phase: Counter() for phase in (Phase.COMPARE, Phase.CONFIRM)}
    )
    candidates: int = 0
    errors: list[str] = field(default_factory=list)
    unsettled: list[str] = field(default_factory=list)
    as_of: list[Any] = field(default_factory=list)
    finished: list[Any] = field(default_factory=list)

    @property
    def looked_at(self) -> bool:
        """Whether the second look is through, for every partition that needs it."""
        return not any(
            number
            for status, number in self.ended[Phase.CONFIRM].items()
            if status not in (PartitionStatus.ACCEPTED, PartitionStatus.SKIPPED)
        )

    def add(self, phase: Phase, item: PartitionItem, compared: Compared | None) -> None:
        """One more partition."""
        self.ended[phase][item.status] += 1
        if compared is None:
            self._note(phase, item)
            return
        self.finished.append(compared.finished_at)
        self.states.update(compared.states)
        self.known.update(compared.known)
        self.ages.update(compared.ages)
        if compared.oldest is not None:
            self.oldest.append(compared.oldest)
        if compared.unread:
            self.unread.append(f"{item.partition_id}: {compared.unread}")
        if compared.objects and item.entry is not None:
            (output,) = item.entry.outputs
            self.lists.append(ObjectList.of(compared, output.location, output.sha256))
        if phase is Phase.COMPARE:
            self._add_comparison(compared)

    def _add_comparison(self, compared: Compared) -> None:
        self.counts = self.counts.plus(Counts.read(compared.counts))
        self.candidates += compared.candidates
        self.as_of.append(compared.as_of)
        for side, one in compared.covered.items():
            self.covered[side]["rows"] += one.rows
            self.covered[side]["proved"] += 0 if one.counted is None else one.counted
            self.covered[side]["resumed"] += compared.scans > 1

    def _note(self, phase: Phase, item: PartitionItem) -> None:
        """Why a partition has nothing to tell, where that matters."""
        status, name = item.status, f"{item.partition_id} is {item.status.value}"
        if status is PartitionStatus.SKIPPED and phase is Phase.CONFIRM:
            return
        if item.error is not None:
            self.errors.append(f"{name}: {item.error.message}")
        elif status is PartitionStatus.SKIPPED:
            self.unsettled.append(f"{name}: {item.reason or 'an operator left it out'}")
        else:
            self.unsettled.append(f"{name} in the phase {phase.value}")


def _report(run: Run, plan: Plan | None, gathered: _Gathered, read: _Read) -> ReconcileReport:
    job = plan.job.filled(plan.params) if plan and isinstance(plan.job, Reconciliation) else None
    judged = _judged(run, job, gathered)
    return ReconcileReport(
        run_id=run.run_id,
        job=run.job,
        verdict=judged.verdict.value,
        reasons=list(judged.reasons),
        requester=run.requester,
        comment=run.request.comment if run.request else "",
        invariant=job.invariant.kind if job else "rows",
        key=list(job.key) if job else [],
        columns=[column.name for column in job.columns] if job else [],
        lag=job.lag if job else 0.0,
        version=job.version if job else None,
        created_at=run.created_at,
        as_of=min(filter(None, gathered.as_of), default=None),
        finished_at=max(gathered.finished, default=None),
        plan_sha256=run.plan_sha256,
        code=plan.read_code if plan else None,
        partitions=run.partitions,
        compared=gathered.ended[Phase.COMPARE][PartitionStatus.ACCEPTED],
        confirmed=gathered.ended[Phase.CONFIRM][PartitionStatus.ACCEPTED],
        coverage=_coverage(job, gathered),
        counts=gathered.counts.document(),
        states=[
            StateLine(state=state, kind=kind, findings=number)
            for (state, _, kind), number in sorted(
                (name.partition(" "), n) for name, n in gathered.states.items()
            )
        ],
        ages=_ages(plan, gathered),
        known=gathered.words,
        findings_read=read.number,
        fields=read.lines(),
        findings=read.shown,
        lists=gathered.lists,
    )


def _ages(plan: Plan | None, gathered: _Gathered) -> Ages:
    return Ages(
        oldest=min(gathered.oldest, default=None),
        lines=[AgeLine(age=name, findings=gathered.ages[name]) for name in AGE_NAMES if gathered.ages[name]],
        earlier=list(plan.earlier) if plan else [],
        unread=list(_first(gathered.unread)),
    )


def _judged(run: Run, job: Reconciliation | None, gathered: _Gathered) -> Judgement:
    errors = _first(gathered.errors)
    if job is None:
        return Judgement(Verdict.ERROR, (run.reason or "the run was never planned",))
    through = run.status not in RUN_ENDS or run.status.value == "SUCCEEDED"
    unsettled = [*gathered.unsettled, *_confirmed_otherwise(gathered)]
    if not through and run.reason and not errors:
        unsettled.append(f"the run is {run.status.value}: {run.reason}")
    looked_at = gathered.looked_at
    settled = {state: _number(gathered.states, state) for state in State} if looked_at else None
    left = gathered.candidates - sum(gathered.states.values())
    if looked_at and left and not errors:
        unsettled.append(f"{left} of {gathered.candidates} candidates were not looked at again")
    if not looked_at and gathered.candidates:
        unsettled.append(f"not all of {gathered.candidates} candidates were looked at again")
    return judge(job, gathered.counts, settled=settled, errors=errors, unsettled=tuple(_first(unsettled)))


def _number(states: Mapping[str, int], state: State) -> int:
    """How many real differences came to a state."""
    return sum(states.get(f"{state} {kind}", 0) for kind in DRIFT)


def _confirmed_otherwise(gathered: _Gathered) -> Iterator[str]:
    """Candidates that a second look could not compare."""
    for name, number in sorted(gathered.states.items()):
        if name.partition(" ")[2] not in DRIFT:
            yield f"{number} candidates are {name.partition(' ')[2]} now"


def _first(told: Sequence[str]) -> tuple[str, ...]:
    more = len(told) - TROUBLES_TOLD
    return (*told[:TROUBLES_TOLD], *([f"and {more} more"] if more > 0 else []))


def _coverage(job: Reconciliation | None, gathered: _Gathered) -> dict[Side, Coverage]:
    return {
        side: Coverage(
            source=_named(source),
            rows=gathered.covered[side]["rows"],
            proved=gathered.covered[side]["proved"],
            resumed=gathered.covered[side]["resumed"],
        )
        for side in Side
        if job is not None and (source := job.source(side)) is not None
    }


def _named(source: Source) -> str:
    where = getattr(source, "table", None) or getattr(source, "location", "")
    return f"{source.kind} {where}"
