"""Contracts that can be read and are stale, foreign, at odds with themselves or the ledger, or untrue."""

from __future__ import annotations

from typing import Any

from trueup.model.counters import COUNTERS
from trueup.model.plan import CodeIdentity
from trueup.model.states import Phase

from .contract_cases import (
    FENCE,
    FIFTH,
    IMAGE,
    OUTPUT,
    PLAN,
    REJECTS,
    REVISION,
    SIXTH,
    TASK,
    Case,
    Row,
    entry,
    full_entry,
)

BOOM = {"kind": "ValueError", "message": "boom", "record": "42", "batchAfter": None}
FIELDS = {name: f"records{name.title()}" for name in COUNTERS}
NOTHING = dict.fromkeys(FIELDS.values(), 0)
TOTALS = {field: Case().document[field] for field in FIELDS.values()}
CHECKPOINT = {name: full_entry()[field] for name, field in FIELDS.items()}


def interrupted(case: Case, **changed: Any) -> Case:
    """The first partition was interrupted, and the ledger says so too."""
    return case.says(status="INTERRUPTED").reports(0, status="INTERRUPTED", **changed)


STALE = [
    Row(
        "of an earlier generation",
        lambda c: c.known(generation=2),
        "generation-is-current",
        "generation 1, and",
    ),
    Row(
        "of an earlier launch",
        lambda c: c.known(launch=41),
        "launch-is-current",
        "of launch 40, and launch 41",
    ),
    Row(
        "of another task",
        lambda c: c.says(taskArn="arn:x/9"),
        "task-is-current",
        f"of task arn:x/9, and {TASK}",
    ),
]

FOREIGN = [
    Row(
        "another run",
        lambda c: c.says(runId="flights-1"),
        "run-is-this-run",
        "it is of run flights-1, and belongs to",
    ),
    Row(
        "another job",
        lambda c: c.says(jobId="hotels"),
        "job-is-the-runs",
        "of job hotels, and the run does flights-",
    ),
    Row(
        "another phase",
        lambda c: c.says(phase="verify"),
        "phase-is-this-phase",
        "of phase verify, and belongs to apply",
    ),
    Row(
        "another slice",
        lambda c: c.says(sliceId=13),
        "slice-is-this-slice",
        "is of slice 13, and the task was given slice 12",
    ),
    Row(
        "another plan",
        lambda c: c.says(planSha256="e" * 64),
        "plan-is-the-runs",
        f"and the run's plan is {PLAN}",
    ),
    Row(
        "another revision",
        lambda c: c.says(taskDefinition="trueup:8"),
        "revision-is-the-plans",
        f"as trueup:8, and the plan pins {REVISION}",
    ),
    Row(
        "another image",
        lambda c: c.known(code=CodeIdentity(task_definition=REVISION, image_digest="sha256:" + "f" * 64)),
        "image-is-the-plans",
        f"it ran image {IMAGE}, and the plan pins sha256:ffff",
    ),
    Row(
        "a partition twice",
        lambda c: c.adds(dict(c.document["partitions"][0])),
        "no-partition-twice",
        "is listed 2 times",
    ),
    Row(
        "another slice's partition",
        lambda c: c.adds(entry("date=2013-02-01")),
        "partitions-are-the-slices",
        "date=2013-02-01 is none of the 3 of slice 12",
    ),
    Row(
        "a report left out",
        lambda c: c.omits(1),
        "every-report-is-listed",
        f"{SIXTH} is REPORTED by launch 40, and is not listed",
    ),
]

DISAGREEING = [
    *(
        Row(
            f"a total {field} that is 1 too high",
            lambda c, field=field, total=total: c.says(**{field: total + 1}),
            "totals-are-sums",
            f"{field} is {total + 1}, and the partitions add up to {total}",
        )
        for field, total in TOTALS.items()
    ),
    Row(
        "finished before it started",
        lambda c: c.says(finishedAt="2026-07-06T00:59:59Z"),
        "finished-not-before-started",
        "finished at 2026-07-06T00:59:59+00:00, before it started at 2026-07-06T01:00:00+00:00",
    ),
    Row(
        "finished before, by its zone",
        lambda c: c.says(finishedAt="2026-07-06T02:04:12+02:00"),
        "finished-not-before-started",
        "finished at 2026-07-06T02:04:12+02:00, before",
    ),
    Row(
        "SUCCEEDED with a failed partition",
        lambda c: c.reports(1, status="FAILED", error=BOOM),
        "task-status-agrees",
        "the task says SUCCEEDED, and only 1 of its 2 partitions did",
    ),
    Row(
        "SUCCEEDED with an interrupted partition",
        lambda c: c.adds(entry("date=2013-01-31", status="INTERRUPTED")),
        "task-status-agrees",
        "the task says SUCCEEDED, and only 2 of its 3 partitions did",
    ),
    *(
        Row(
            f"a checkpoint with 1 {name} less",
            lambda c, name=name, count=count: c.ledger_counts(FIFTH, **{name: count - 1}),
            "counters-are-the-checkpoints",
            f"records{name.title()} is {count}, and the ledger's checkpoint has {count - 1}",
        )
        for name, count in CHECKPOINT.items()
    ),
    Row(
        "a checkpoint behind",
        lambda c: c.ledger_has(FIFTH, cursor="v1:700"),
        "cursor-is-the-checkpoints",
        "the cursor is v1:end, and the ledger's checkpoint has v1:700",
    ),
    Row(
        "a checkpoint without cursor",
        lambda c: c.ledger_has(SIXTH, cursor=None),
        "cursor-is-the-checkpoints",
        "checkpoint has None",
    ),
    Row(
        "another reason in the checkpoint",
        lambda c: c.ledger_has(FIFTH, skipped={"cancelled": 3}),
        "skipped-reasons-are-the-checkpoints",
        '"cancelled" was skipped 2 times, and the ledger\'s checkpoint has 3',
    ),
    Row(
        "an old fence",
        lambda c: c.ledger_has(FIFTH, fence=FENCE + 1),
        "fence-is-the-items",
        f"under fence {FENCE}, and the ledger's fence is {FENCE + 1}",
    ),
    Row(
        "a fence nobody gave out",
        lambda c: c.ledger_has(FIFTH, fence=FENCE - 1),
        "fence-is-the-items",
        f"is {FENCE - 1}",
    ),
    Row(
        "an end that the ledger never heard of",
        lambda c: c.ledger_has(SIXTH, status="RUNNING"),
        "status-is-the-ledgers",
        "it says SUCCEEDED, and the ledger has RUNNING, not REPORTED",
    ),
    Row(
        "an interruption after the end",
        lambda c: interrupted(c, outputs=[]).ledger_has(
            FIFTH, status="REPORTED", entry=c.document["partitions"][0]
        ),
        "status-is-the-ledgers",
        "it says INTERRUPTED, and the ledger has REPORTED, not INTERRUPTED",
    ),
    Row(
        "a report without entry",
        lambda c: c.ledger_has(FIFTH, entry=None),
        "entry-is-the-ledgers",
        "holds no entry",
    ),
    Row(
        "other outputs than reported",
        lambda c: c.ledger_was_told(FIFTH, outputs=[]),
        "entry-is-the-ledgers",
        "the ledger was told []",
    ),
    Row(
        "another count than reported",
        lambda c: c.ledger_was_told(FIFTH, recordsCounted=719),
        "entry-is-the-ledgers",
        "recordsCounted is 720, and the ledger was told 719",
    ),
    Row(
        "an entry kept for another partition",
        lambda c: c.ledger_has(SIXTH, partitionId="date=2013-01-07"),
        "entry-names-its-partition",
        f"the entry is of {SIXTH}, and is kept for date=2013-01-07",
    ),
]

UNTRUE = [
    Row(
        "one used too few",
        lambda c: c.reports(0, recordsUsed=714),
        "read-is-used-skipped-rejected",
        "720 read, and 714 used + 3 skipped + 2 rejected make 719",
    ),
    Row(
        "one rejected too many",
        lambda c: c.reports(0, recordsRejected=3),
        "read-is-used-skipped-rejected",
        "720 read, and 715 used + 3 skipped + 3 rejected make 721",
    ),
    Row(
        "one produced too many",
        lambda c: c.reports(0, recordsProduced=46),
        "produced-is-written-unchanged-refused",
        "46 produced, and 40 written + 4 unchanged + 1 refused make 45",
    ),
    Row(
        "one unchanged too few",
        lambda c: c.reports(0, recordsUnchanged=3),
        "produced-is-written-unchanged-refused",
        "45 produced, and 40 written + 3 unchanged + 1 refused make 44",
    ),
    Row(
        "a skip without reason",
        lambda c: c.reports(0, skipped={"cancelled": 2}),
        "skipped-reasons-sum-up",
        "3 skipped, and the reasons add up to 2",
    ),
    Row(
        "a reason without skip",
        lambda c: c.reports(1, skipped={"late": 4}),
        "skipped-reasons-sum-up",
        "0 skipped, and the reasons add up to 4",
    ),
    Row(
        "a read that stopped half-way",
        lambda c: c.reports(0, recordsRead=360, recordsUsed=355),
        "counted-is-read",
        "360 read, and 720 counted independently",
    ),
    Row(
        "more read than there is",
        lambda c: c.reports(0, recordsCounted=700),
        "counted-is-read",
        "720 read, and 700 counted",
    ),
    Row(
        "an empty partition",
        lambda c: c.reports(1, **NOTHING),
        "empty-is-allowed",
        "0 records read, and the job wants at least 1",
    ),
    Row(
        "REJECTED within the limit",
        lambda c: c.says(status="FAILED").reports(0, status="REJECTED"),
        "rejects-decide-the-status",
        "it says REJECTED with 3 rejected and refused, and the limit of 5 is kept",
    ),
    Row(
        "SUCCEEDED above the limit",
        lambda c: c.known(reject_limit=2),
        "rejects-decide-the-status",
        "it says SUCCEEDED with 3 rejected and refused, above the limit of 2",
    ),
    Row(
        "FAILED above the limit",
        lambda c: c.known(reject_limit=2).says(status="FAILED").reports(0, status="FAILED", error=BOOM),
        "rejects-decide-the-status",
        "it says FAILED with 3 rejected and refused, above the limit of 2",
    ),
    Row(
        "rejects without a place",
        lambda c: c.reports(0, rejects=None),
        "rejects-have-a-place",
        "3 rejected and refused, and 0 places",
    ),
    Row(
        "a place without rejects",
        lambda c: c.reports(1, rejects=REJECTS),
        "rejects-have-a-place",
        "0 rejected and refused, and yet",
    ),
    Row(
        "rejects missing",
        lambda c: c.store_has(REJECTS, None),
        "rejects-exist",
        f"3 rejected and refused are said to lie at {REJECTS}",
    ),
    Row(
        "an output missing",
        lambda c: c.store_has(OUTPUT, None),
        "outputs-exist",
        f"45 records are said to lie at {OUTPUT}, and no object",
    ),
    Row(
        "an output overwritten",
        lambda c: c.store_has(OUTPUT, "9" * 64),
        "outputs-have-their-checksum",
        f"and S3 has {'9' * 64}",
    ),
    Row(
        "an output without checksum",
        lambda c: c.store_has(OUTPUT, ""),
        "outputs-have-their-checksum",
        "and S3 has none",
    ),
    Row(
        "FAILED without error",
        lambda c: c.says(status="FAILED").reports(0, status="FAILED"),
        "failed-has-an-error",
        "it FAILED after 720 records, and names 0 errors",
    ),
    Row(
        "SUCCEEDED with an error",
        lambda c: c.reports(0, error=BOOM),
        "succeeded-has-no-error",
        "it SUCCEEDED with 720 records, and yet names the error ValueError",
    ),
    Row(
        "INTERRUPTED with outputs",
        interrupted,
        "interrupted-has-no-outputs",
        "INTERRUPTED at v1:end, and yet names 1 outputs",
    ),
    Row(
        "a dry run that wrote",
        lambda c: c.known(dry_run=True),
        "rehearsal-writes-nothing",
        "40 written, and a rehearsal writes 0",
    ),
    Row(
        "a rehearsal that wrote",
        lambda c: (
            c.known(phase=Phase.REHEARSE)
            .says(phase="rehearse")
            .reports(0, recordsWritten=0, recordsUnchanged=44)
        ),
        "rehearsal-writes-nothing",
        "10 written, and a rehearsal writes 0",
    ),
]
