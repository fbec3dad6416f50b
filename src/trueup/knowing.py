"""Known differences: signed about a report until a date, and pinned in the plans of the runs after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from trueup.artifacts import Artifacts, comparison_key, known_key, pinned_known_key
from trueup.artifacts.findings import STANDING, listed, standing
from trueup.clock import Clock
from trueup.errors import ArtifactError, ArtifactMissing, NotOnTrail, OtherSubject, RequestError
from trueup.ledger import Ledger
from trueup.model.base import canonical, sha256
from trueup.model.history import scope_of
from trueup.model.known import (
    LONGEST_DAYS,
    MOST_KNOWN,
    MOST_SIGNED,
    MOST_WORDS,
    Known,
    KnownItem,
    KnownList,
    KnownWord,
    Pinned,
    PinnedKnown,
    WithdrawWord,
)
from trueup.model.ledger import Run
from trueup.model.plan import ObjectRef
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.states import Phase


class Knowing:
    """Takes people's words about reports, and gives runs what is known."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, clock: Clock) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._clock = clock

    def sign(self, run_id: str, word: KnownWord, who: str) -> Known:
        """Sign differences of a run's report. The same word of the same person again changes nothing.

        Raises NotFound, OtherSubject, OwnRequest, NotAnApprover, ArtifactError; RequestError where the time
        is no time ahead, or a key is not confirmed there, or there are too many.
        """
        run = self._ledger.runs.get(run_id)
        report = self._report(run, word.sha256)
        job = self._artifacts.plan_of(run).job
        assert isinstance(job, Reconciliation)  # it has such a report
        now = self._clock.now()
        _check_time(word, now)
        items = self._items(report, word)
        data = canonical([one.document() for one in items])
        scope = scope_of(job.filled(run.params))
        until = word.until.astimezone(UTC)
        name = sha256(canonical([run_id, word.sha256, sha256(data), who, until.isoformat(), word.why]))[:12]
        known = Known(
            known_id=name,
            job=run.job,
            scope=scope,
            run_id=run_id,
            report_sha256=word.sha256,
            key=known_key(run_id, name),
            sha256=sha256(data),
            number=len(items),
            who=who,
            at=now,
            until=until,
            why=word.why,
        )
        self._must_fit(known, now)
        self._artifacts.store.put_once(known.key, data)
        return self._ledger.known.sign(run, known, job.approval.roles)

    def withdraw(self, run_id: str, known_id: str, word: WithdrawWord, who: str) -> Known:
        """Take back a word about a run's report; runs that are planned from now on do not know it.

        Asked again, nothing changes. Raises NotFound, NotAnApprover, ArtifactError.
        """
        run = self._ledger.runs.get(run_id)
        known = self._ledger.known.get(run.job, run_id, known_id)
        roles = self._artifacts.plan_of(run).job.approval.roles
        return self._ledger.known.withdraw(known, who=who, why=word.why, roles=roles)

    def valid(self, job: str) -> KnownList:
        """The words about a job's differences that are valid now."""
        return KnownList(known=list(self._ledger.known.of(job, self._clock.now())))

    def _report(self, run: Run, expected: str) -> ReconcileReport:
        if run.kind != "reconcile":
            raise RequestError(
                f"{run.run_id} is a {run.kind}, which compares nothing.", remedy="Name a reconciliation."
            )
        try:
            data = self._artifacts.store.get(comparison_key(run.run_id, "json"))
        except ArtifactMissing as none:
            raise RequestError(
                f"{run.run_id} has no report of a comparison yet.",
                remedy="Wait until all is compared; `trueup report` shows it.",
            ) from none
        if sha256(data) != expected:
            raise OtherSubject(
                f"The report of run {run.run_id} is {sha256(data)[:12]}, not {expected[:12]}.",
                clause="this hash is what is asked about",
                wanted=expected,
                found=None,
                remedy=f"Look at it with `trueup report {run.run_id}`, and name its hash.",
            )
        return ReconcileReport.model_validate_json(data)

    def _items(self, report: ReconcileReport, word: KnownWord) -> list[KnownItem]:
        """What is signed, in the report's own words."""
        number = sum(line.findings for line in report.states if line.state in STANDING)
        if word.keys is None and number > MOST_SIGNED:
            raise RequestError(
                f"the report confirms {number:,} differences, and one word signs {MOST_SIGNED:,} at most.",
                remedy="Name the keys that you looked at; repair the others.",
                field="keys",
            )
        wanted = None if word.keys is None else set(word.keys)
        found: list[KnownItem] = []
        for line in self._confirmed(report):
            if wanted is not None and len(found) == len(wanted):
                break
            if wanted is None or tuple(line["key"]) in wanted:
                found.append(KnownItem.of(line))
        if missing := (wanted or set()) - {one.key for one in found}:
            raise _no_such(f"the report does not confirm that {', '.join(min(missing))} differs.")
        if not found:
            raise _no_such("the report confirms no difference.")
        return found

    def _confirmed(self, report: ReconcileReport) -> Iterator[dict[str, Any]]:
        for one in report.lists:
            for there in listed(self._artifacts, one) if one.phase is Phase.CONFIRM else ():
                yield from standing(self._artifacts, there)

    def _must_fit(self, known: Known, now: datetime) -> None:
        valid = list(self._ledger.known.of(known.job, now, known.scope))
        others = [one.number for one in valid if one.known_id != known.known_id]
        if sum(others) + known.number > MOST_KNOWN:
            raise RequestError(
                f"{sum(others):,} differences of this target are known already, "
                f"and with these {known.number:,} there may be {MOST_KNOWN:,}.",
                remedy="Repair some, or wait until some words expire.",
                field="keys",
            )
        if len(others) >= MOST_WORDS:
            raise RequestError(
                f"differences of this target are known by {len(others):,} words already, "
                f"and there may be {MOST_WORDS:,}.",
                remedy=f"Sign together what belongs together, {MOST_SIGNED:,} differences by one word; "
                "or take one back with `trueup withdraw`, or wait until some expire.",
            )

    def pin(self, run: Run, job: Reconciliation) -> ObjectRef | None:
        """Store what is known when a run is planned, for its plan to name; None where nothing is.

        Raises RequestError where a word is not just as it was signed: then nothing can be believed.
        """
        scope = scope_of(job.filled(run.params))
        words = [self._pinned(one) for one in self._ledger.known.of(run.job, run.created_at, scope)]
        if not words:
            return None
        data = canonical(PinnedKnown(words=tuple(words)).document())
        key = pinned_known_key(run.run_id, sha256(data))
        self._artifacts.store.put_once(key, data)
        return ObjectRef(key=key, sha256=sha256(data), bytes=len(data))

    def _pinned(self, known: Known) -> Pinned:
        try:
            self._ledger.known.check(known)
            data = self._artifacts.check(known.key, known.sha256)
        except (NotOnTrail, ArtifactError) as changed:
            raise RequestError(
                f"the known differences {known.known_id} are not as they were signed: {changed}",
                remedy="Nothing is compared while nobody can say what was signed.",
            ) from changed
        return Pinned(known=known, items=tuple(map(KnownItem.model_validate, json.loads(data))))


def _no_such(what: str) -> RequestError:
    remedy = "Name keys of findings that are CONFIRMED or KNOWN there."
    return RequestError(what, remedy=remedy, field="keys")


def _check_time(word: KnownWord, now: datetime) -> None:
    if now < word.until <= now + timedelta(days=LONGEST_DAYS):
        return
    raise RequestError(
        f"{word.until:%Y-%m-%d %H:%M} is not ahead, or more than {LONGEST_DAYS} days ahead.",
        remedy="Name a day on which somebody looks at it again.",
        field="until",
    )
