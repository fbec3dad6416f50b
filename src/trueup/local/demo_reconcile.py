"""The demo's second half: its summary is damaged, compared with the flights, and repaired once signed.

What is told of it is read from the run's reports and from the table; what was damaged is held against that.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.artifacts import comparison_key
from trueup.aws.api import Reply, SignedApi
from trueup.errors import LocalStackError, StoreUnavailable, TrueupError
from trueup.local.aws import REGION
from trueup.local.damage import Damage, damage_summary, differing
from trueup.local.demo_reports import keep
from trueup.local.people import keys_of
from trueup.local.stack import Stack
from trueup.local.targets import FLIGHTS_BUCKET, SUMMARY_TABLE
from trueup.model.gate import Gate
from trueup.model.ledger import Run
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import RepairOutcome, RepairReport, Verification
from trueup.model.states import RUN_ENDS
from trueup.reporting import Reports
from trueup.reporting.repairs import Repairs

JOB = "flights-reconcile"
WRONG = {"missing": 8, "mismatched": 9, "extra": 8}
REQUESTER, APPROVER = "demo", "second-person"
LONGEST = 600.0
_POLL_SECONDS = 0.5
_WORDS = 5
"""So often a word is given to an API that is out of order."""
_GOOD, _FAULT = 200, 500


@dataclass(frozen=True, slots=True)
class Reconciling:
    """A stack whose summary is whole, and a folder for the report that is signed."""

    up: Stack
    note: Callable[[str], None]
    reports: Path
    rng: random.Random

    def run(self) -> dict[str, Any]:
        """Damage the summary, have it compared, signed and repaired, and give the figures.

        Raises LocalStackError where the run comes neither to its gate nor to an end, or takes no word.
        """
        damage = damage_summary(self.up.client("dynamodb"), SUMMARY_TABLE, self.rng, **WRONG)
        self.note(f"{len(damage.before)} items of the summary are damaged: {_told(damage.counts)}.")
        started = time.monotonic()
        run, gate = self._until_it_stands(self._start())
        found, page = self._report(run)
        if gate is not None:
            self._approve(gate)
            run, _ = self._until_it_stands(run.run_id, decided=True)
        self.note(f"{run.run_id}: {run.status.value}{f', {run.reason}' if run.reason else ''}")
        repaired = Repairs(self.up.ledger, self.up.artifacts).of(run)
        return {
            "runId": run.run_id,
            "status": run.status.value,
            "damaged": damage.counts,
            **self._figures(damage, found, repaired),
            "seconds": round(time.monotonic() - started, 1),
            "report": page,
        }

    def _start(self) -> str:
        request = {
            "job": JOB,
            "requestId": f"demo-{JOB}-{self.rng.randrange(2**32):08x}",
            "requester": REQUESTER,
            "params": {"bucket": FLIGHTS_BUCKET, "table": SUMMARY_TABLE},
        }
        answer = self.up.invoke("start", request)
        if "runId" not in answer:
            raise TrueupError(f"{JOB} was not started: {answer.get('errorMessage', answer)}")
        self.note(f"{answer['runId']} is started.")
        return str(answer["runId"])

    def _until_it_stands(self, run_id: str, *, decided: bool = False) -> tuple[Run, Gate | None]:
        """The run once it waits for a person, or has ended; of one that was `decided` its end."""
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            run = self.up.ledger.runs.get(run_id)
            gates = [] if decided else [one for one in self.up.ledger.gates.of(run_id) if one.is_waiting]
            if gates or run.status in RUN_ENDS:
                return run, next(iter(gates), None)
            self.up.parts.wait(_POLL_SECONDS)
        raise LocalStackError(
            f"{run_id} came neither to its gate nor to an end within {LONGEST:.0f} seconds.",
            remedy="Start `trueup up --flights`, and look at the executions there.",
        )

    def _report(self, run: Run) -> tuple[ReconcileReport | None, str | None]:
        """What was found, told and kept: the JSON is the very one that an approval names."""
        reports = Reports(self.up.ledger, self.up.artifacts)
        found, page = reports.comparison(run.run_id), reports.comparison_page(run.run_id)
        if found is None or page is None:
            return None, None
        self.note(f"{run.run_id}: {found.verdict}: {_told(found.counts)}; {found.counts['matched']:,} agree.")
        for line in found.fields:
            self.note(f"  {line.name}: {line.reason}, {line.findings:,}")
        document = self.up.artifacts.store.get(comparison_key(run.run_id, "json"))
        return found, keep(self.reports, run.run_id, page, document, self.note)

    def _approve(self, gate: Gate) -> None:
        """By the signed API, as somebody other than who asked for the run."""
        api = SignedApi(self.up.api, keys_of(APPROVER, self.up.client), REGION)
        path = f"/runs/{gate.run_id}/gates/{gate.name}/approve"
        word = {"sha256": gate.sha256, "comment": "The demo damaged these."}
        reply = self._said(lambda: api.call("POST", path, {}, word))
        if reply.status != _GOOD:
            raise LocalStackError(
                f"Gate {gate.name} of {gate.run_id} did not take the word of {APPROVER}: "
                f"{reply.status} {reply.body.decode(errors='replace')[:300]}",
                remedy="Start the demo again; if it is refused again, report this line.",
            )
        self.note(f"{gate.run_id}: {APPROVER} approves {gate.kind.value} {gate.sha256[:8]} ({gate.name}).")

    def _said(self, call: Callable[[], Reply]) -> Reply:
        """What the API answers, asked again while it is out of order: faults may strike it too."""
        for left in reversed(range(_WORDS)):
            try:
                reply = call()
            except StoreUnavailable:
                if not left:
                    raise
            else:
                if reply.status < _FAULT or not left:
                    return reply
            self.up.parts.wait(_POLL_SECONDS)
        raise AssertionError("the last word was answered")

    def _figures(
        self, damage: Damage, found: ReconcileReport | None, repaired: RepairReport | None
    ) -> dict[str, Any]:
        wrong = differing(self.up.client("dynamodb"), SUMMARY_TABLE, damage.before)
        for key in wrong[:5]:
            self.note(f"  {', '.join(key)} is not as it was before it was damaged")
        last = repaired or found
        return {
            "drift": dict.fromkeys(WRONG, 0) if found is None else _confirmed(found),
            "repaired": _items(repaired, "outcomes", RepairOutcome.APPLIED),
            "verified": _items(repaired, "verified", Verification.VERIFIED),
            "verdict": last.verdict if last else None,
            "approvedBy": repaired.approved_by if repaired else None,
            "tableRestored": not wrong,
        }


def is_good(figures: Mapping[str, Any]) -> bool:
    """Whether exactly what was damaged was found, repaired and seen to be right."""
    everything = sum(figures["damaged"].values())
    found = figures["drift"] == figures["damaged"]
    repaired = everything == figures["repaired"] == figures["verified"]
    return found and repaired and figures["verdict"] == "REPAIRED" and bool(figures["tableRestored"])


def _confirmed(found: ReconcileReport) -> dict[str, int]:
    lines = {line.kind.lower(): line.findings for line in found.states if line.state == "CONFIRMED"}
    return {name: lines.get(name, 0) for name in WRONG}


def _items(repaired: RepairReport | None, of: str, outcome: str) -> int:
    return sum(line.items for line in getattr(repaired, of, ()) if line.outcome == outcome)


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]:,} {name}" for name in WRONG)
