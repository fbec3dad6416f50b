"""What each route does: one function each, from a call to what is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from trueup.errors import NotFound, RequestError
from trueup.estimating import estimate_request
from trueup.handling.api.asking import Call
from trueup.handling.api.services import Services
from trueup.model.base import Name, Value
from trueup.model.estimate import Estimate
from trueup.model.evidence import CheckedEvidence, EvidencePart
from trueup.model.known import Known, KnownList, KnownWord, WithdrawWord
from trueup.model.ledger import Run
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import RepairReport
from trueup.model.report import Report
from trueup.model.request import LONGEST_RUN_ID, StartBody, Wish
from trueup.model.states import RUN_ENDS, WRITING_PHASES, GateStatus, PartitionStatus, Phase, RunStatus
from trueup.model.view import (
    AuditList,
    GateList,
    GateView,
    GateWord,
    Html,
    JobList,
    LogList,
    PartitionList,
    Pending,
    RejectList,
    RunDetail,
    RunList,
    Started,
)
from trueup.planning.partitions import MOST_ID_BYTES
from trueup.watching.lists import MOST_AT_ONCE, jobs
from trueup.watching.room import lines_that_fit
from trueup.watching.status import current_phase

Limit = Annotated[int, Field(ge=1, le=MOST_AT_ONCE)]


def _no_longer_than_ids(partition: str) -> str:
    if len(partition.encode()) > MOST_ID_BYTES:
        raise ValueError(f"no partition's id has more than {MOST_ID_BYTES} bytes")
    return partition


PartitionId = Annotated[str, Field(max_length=MOST_ID_BYTES), AfterValidator(_no_longer_than_ids)]


class RunsQuery(Value):
    """Which runs."""

    job: str | None = None
    status: RunStatus | None = None
    limit: Limit = 50
    after: str | None = None


class PartitionsQuery(Value):
    """Which partitions. `phase` is the one at work unless said."""

    phase: Phase | None = None
    state: PartitionStatus | None = None
    limit: Limit = 100
    after: str | None = None


class RejectsQuery(Value):
    """Which rejects."""

    phase: Phase | None = None
    partition: PartitionId | None = None
    limit: Limit = 100
    after: str | None = None


class LogsQuery(Value):
    """Whose log: of the task that worked this partition last. `phase` is the one at work unless said."""

    partition: PartitionId
    phase: Phase | None = None
    limit: Limit = 100
    after: str | None = None


class EvidenceQuery(Value):
    """Which objects of the evidence."""

    limit: Limit = MOST_AT_ONCE
    after: str | None = None


class EvidencePartQuery(Value):
    """From which byte on."""

    offset: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0


class AuditQuery(Value):
    """Which part of the trail."""

    limit: Limit = 100
    after: str | None = None


class KnownQuery(Value):
    """Whose known differences: a job's."""

    job: Name


def list_jobs(here: Services, call: Call) -> JobList:
    """The jobs that can be started."""
    return jobs(here.jobs)


def start_run(here: Services, call: Call) -> Started:
    """Start a run; the same `requestId` again gives the run that it started."""
    asked = call.document(StartBody)
    again = asked.pop("rejectsOf", None)
    if again is not None:
        asked = _rejects_of(here, asked, again)
    if (undo := asked.get("undo")) and "params" not in asked:
        asked["params"] = here.ledger.runs.get(str(undo)).params
    made = here.starting.handle({**asked, "requester": call.caller})
    return Started(**_named(made), location=f"/runs/{made['runId']}")


def _named(made: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": made["runId"], "status": RunStatus(made["status"]), "execution": made["execution"]}


def _rejects_of(here: Services, asked: dict[str, Any], again: object) -> dict[str, Any]:
    """What is asked for, with the partitions of another run that were not worked without rejects."""
    if not isinstance(again, str) or len(again) > LONGEST_RUN_ID or {"from", "to", "keys"} & asked.keys():
        raise RequestError(
            "it names a run, and comes without a window or keys.",
            remedy="Give one of them.",
            field="rejectsOf",
        )
    run = here.ledger.runs.get(again)
    _fits(run, asked)
    ids = here.lists.with_rejects(run)
    if not ids:
        raise RequestError(
            f"{run.run_id} left no rejects.", remedy="There is nothing to do.", field="rejectsOf"
        )
    return {"params": run.params, **asked, "keys": ids}


def _fits(run: Run, asked: dict[str, Any]) -> None:
    if asked.get("job") != run.job:
        raise RequestError(
            f"{run.run_id} did the job {run.job}.", remedy=f"Ask for {run.job}.", field="rejectsOf"
        )
    if run.status not in RUN_ENDS:
        raise RequestError(
            f"{run.run_id} is {run.status.value}.", remedy="Wait until it has ended.", field="rejectsOf"
        )


def list_runs(here: Services, call: Call) -> RunList:
    """Runs, the newest first."""
    query = call.of_query(RunsQuery)
    return here.lists.runs(job=query.job, status=query.status, limit=query.limit, after=query.after)


def show_run(here: Services, call: Call, run_id: str) -> RunDetail:
    """How a run stands now."""
    return here.watch.status(run_id)


def list_partitions(here: Services, call: Call, run_id: str) -> PartitionList:
    """A run's partitions in the plan's order."""
    query = call.of_query(PartitionsQuery)
    return here.lists.partitions(
        run_id, phase=query.phase, state=query.state, limit=query.limit, after=query.after
    )


def list_rejects(here: Services, call: Call, run_id: str) -> RejectList:
    """The rejected records and refused rows of a run."""
    query = call.of_query(RejectsQuery)
    return here.lists.rejects(
        run_id, phase=query.phase, partition=query.partition, limit=query.limit, after=query.after
    )


def show_audit(here: Services, call: Call, run_id: str) -> AuditList:
    """The trail of a run, oldest first."""
    query = call.of_query(AuditQuery)
    return here.lists.audit(run_id, limit=query.limit, after=query.after)


def show_logs(here: Services, call: Call, run_id: str) -> LogList:
    """The log of the task that worked a partition last, oldest line first."""
    query = call.of_query(LogsQuery)
    run = here.ledger.runs.get(run_id)
    phase = query.phase or current_phase(run, here.ledger.verdicts.counts_by_phase(run_id))
    item = here.ledger.partitions.get(run_id, phase, query.partition)
    if item.task is None:
        raise NotFound(
            f"No task worked {query.partition} in the phase {phase.value}.",
            remedy="Check its id; `trueup partitions` lists them.",
        )
    mode = "write" if phase in WRITING_PHASES else "read"
    # As template.yaml has it: the prefix, the container, the task.
    stream = f"{run.job}-{mode}/job/{item.task.rpartition('/')[2]}"
    lines, more = lines_that_fit(here.logs, stream, limit=query.limit, after=query.after)
    return LogList(partition_id=query.partition, task=item.task, lines=lines, next=more)


def show_report(here: Services, call: Call, run_id: str) -> Report | Pending | Html:
    """The report of a run that has ended, as JSON or, where `text/html` is accepted, as a page."""
    page = _page(call, here.reports.page_of, run_id)
    return page or here.reports.of(run_id) or _pending(here, run_id)


def show_comparison(here: Services, call: Call, run_id: str) -> ReconcileReport | Pending | Html:
    """What a reconciliation found, as JSON or, where `text/html` is accepted, as the page that is signed."""
    page = _page(call, here.reports.comparison_page, run_id)
    return page or here.reports.comparison(run_id) or _pending(here, run_id)


def show_repair(here: Services, call: Call, run_id: str) -> RepairReport | Pending | Html:
    """What a repair came to, as JSON or, where `text/html` is accepted, as the page of its whole run."""
    page = _page(call, here.reports.repair_page, run_id)
    return page or here.reports.repair(run_id) or _pending(here, run_id)


def _page(call: Call, page_of: Callable[[str], str | None], run_id: str) -> Html | None:
    text = page_of(run_id) if "text/html" in call.accept else None
    return None if text is None else Html(text=text)


def _pending(here: Services, run_id: str) -> Pending:
    run = here.ledger.runs.get(run_id)
    return Pending(run_id=run_id, status=run.status, location=f"/runs/{run_id}")


def show_evidence(here: Services, call: Call, run_id: str) -> CheckedEvidence:
    """What a reconciliation left, under its hashes, and what is not any more what it was; page by page."""
    query = call.of_query(EvidenceQuery)
    return here.reports.evidence(run_id, limit=query.limit, after=query.after)


def show_evidence_object(here: Services, call: Call, run_id: str, digest: str) -> EvidencePart:
    """Some bytes of the evidence that has this SHA-256, or of its manifest, from an offset on."""
    query = call.of_query(EvidencePartQuery)
    return here.reports.evidence_part(run_id, digest, query.offset, who=call.caller)


def estimate(here: Services, call: Call) -> Estimate:
    """What a run would take; nothing is created."""
    return estimate_request(call.document(Wish), here.jobs)


def list_gates(here: Services, call: Call) -> GateList:
    """Every gate at which a run waits for a person."""
    return GateList(gates=here.gates.waiting())


def show_gates(here: Services, call: Call, run_id: str) -> GateList:
    """The gates that a run came to, each with what it asks about."""
    return GateList(gates=here.gates.of(run_id))


def approve(here: Services, call: Call, run_id: str, name: str) -> GateView:
    """Approve what has this hash; the same word of the same person again only wakes the run once more."""
    return _decide(here, call, run_id, name, GateStatus.APPROVED)


def reject(here: Services, call: Call, run_id: str, name: str) -> GateView:
    """Reject what has this hash; the run ends."""
    return _decide(here, call, run_id, name, GateStatus.REJECTED)


def _decide(here: Services, call: Call, run_id: str, name: str, to: GateStatus) -> GateView:
    word = call.body_of(GateWord)
    before = here.ledger.gates.find(run_id, name)
    gate = here.ledger.gates.decide(
        run_id, name, to, who=call.caller, sha256=word.sha256, comment=word.comment
    )
    if before is not None and before.is_waiting and gate.decided_at:
        age = (gate.decided_at - gate.opened_at).total_seconds()
        measured = {"GatesDecided": 1, "GateDecidedSeconds": age}
        here.metrics.emit(measured, job=gate.job, status=to.value)
    here.gating.wake(gate)
    return here.gates.view(gate)


def list_known(here: Services, call: Call) -> KnownList:
    """The differences of a job that are signed as known, and have not expired."""
    return here.knowing.valid(call.of_query(KnownQuery).job)


def sign_known(here: Services, call: Call, run_id: str) -> Known:
    """Sign differences of the report with this hash as known until an instant."""
    return here.knowing.sign(run_id, call.body_of(KnownWord), call.caller)


def withdraw_known(here: Services, call: Call, run_id: str, known_id: str) -> Known:
    """Take back what was signed as known; the next run does not know it any more."""
    return here.knowing.withdraw(run_id, known_id, call.body_of(WithdrawWord), call.caller)
