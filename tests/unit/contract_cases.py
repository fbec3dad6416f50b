"""One good contract with the ledger and the store that bear it out, and the means to break it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from trueup.contract import Facts, Judgement, judge_document
from trueup.model.counters import COUNTERS
from trueup.model.ledger import PartitionItem
from trueup.model.plan import CodeIdentity
from trueup.model.states import Phase

TASK = "arn:aws:ecs:eu-west-1:123456789012:task/trueup/4f1c"
PLAN = "a" * 64
REVISION = "arn:aws:ecs:eu-west-1:123456789012:task-definition/trueup-flights-write:7"
IMAGE = "sha256:" + "b" * 64
FENCE = 10 * 2**32 + 40
OUTPUT = "s3://flights/summary/2013-01-05.csv"
REJECTS = "s3://artifacts/rejects/2013-01-05.jsonl"
FIFTH, SIXTH = "date=2013-01-05", "date=2013-01-06"


def entry(partition_id: str, **changed: Any) -> dict[str, Any]:
    """A partition that read 10 records and wrote them, with whatever is changed."""
    counts = dict.fromkeys((f"records{name.title()}" for name in COUNTERS), 0)
    counts |= {"recordsRead": 10, "recordsUsed": 10, "recordsProduced": 10, "recordsWritten": 10}
    return {
        "partitionId": partition_id,
        "fence": FENCE,
        "status": "SUCCEEDED",
        "cursor": "v1:end",
        "recordsCounted": None,
        **counts,
        "skipped": {},
        "rejects": None,
        "outputs": [],
        "error": None,
        **changed,
    }


def full_entry() -> dict[str, Any]:
    """720 = 715 used + 3 skipped + 2 rejected; 45 = 40 written + 4 unchanged + 1 refused."""
    return entry(
        FIFTH,
        recordsCounted=720,
        recordsRead=720,
        recordsUsed=715,
        recordsSkipped=3,
        recordsRejected=2,
        recordsProduced=45,
        recordsWritten=40,
        recordsUnchanged=4,
        recordsRefused=1,
        skipped={"cancelled": 2, "diverted": 1},
        rejects=REJECTS,
        outputs=[{"location": OUTPUT, "sha256": "c" * 64, "records": 45}],
    )


def item_of(reported: dict[str, Any]) -> dict[str, Any]:
    """The ledger's item as it is after the task wrote what the entry says."""
    interrupted = reported["status"] == "INTERRUPTED"
    return {
        "partitionId": reported["partitionId"],
        "status": "INTERRUPTED" if interrupted else "REPORTED",
        "cursor": reported["cursor"],
        "launch": 40,
        "task": TASK,
        "fence": reported["fence"],
        "counters": {name: reported[f"records{name.title()}"] for name in COUNTERS},
        "skipped": reported["skipped"],
        "entry": None if interrupted else copy.deepcopy(reported),
    }


class Case:
    """A document, and the facts that it is judged against. Good until something is changed."""

    def __init__(self, *entries: dict[str, Any], status: str = "SUCCEEDED") -> None:
        listed = list(entries) or [full_entry(), entry(SIXTH)]
        self.raw: bytes | None = None
        self.document: dict[str, Any] = {
            "schemaVersion": 1,
            "jobId": "flights-summary",
            "status": status,
            "startedAt": "2026-07-06T01:00:00Z",
            "finishedAt": "2026-07-06T01:04:12Z",
            "outputLocation": "s3://flights/summary/",
            "warnings": ["2 flights without a tail number"],
            "runId": "flights-summary-20260706T010000Z-abcd",
            "generation": 1,
            "phase": "apply",
            "sliceId": 12,
            "launch": 40,
            "planSha256": PLAN,
            "taskArn": TASK,
            "taskDefinition": REVISION,
            "imageDigest": IMAGE,
            "partitions": listed,
        }
        self.items = {one["partitionId"]: item_of(one) for one in listed}
        self.objects: dict[str, str | None] = {OUTPUT: "c" * 64, REJECTS: "d" * 64}
        self.slice_partitions = {one["partitionId"] for one in listed} | {"date=2013-01-31"}
        self.others: dict[str, Any] = {
            "run_id": "flights-summary-20260706T010000Z-abcd",
            "job": "flights-summary",
            "generation": 1,
            "phase": Phase.APPLY,
            "slice_id": 12,
            "launch": 40,
            "task": TASK,
            "plan_sha256": PLAN,
            "code": CodeIdentity(task_definition=REVISION, image_digest=IMAGE),
            "empty_allowed": False,
            "reject_limit": 5,
            "dry_run": False,
            "max_bytes": 65_536,
        }
        self.sum_up()

    def says(self, **changed: Any) -> Case:
        """Change what the document says at its top."""
        self.document |= changed
        return self

    def without(self, field: str) -> Case:
        """Leave a field of the document out."""
        del self.document[field]
        return self

    def lists(self, number: int, **changed: Any) -> Case:
        """Change what the document says of a partition; nobody else follows."""
        self.document["partitions"][number] |= changed
        return self

    def reports(self, number: int, **changed: Any) -> Case:
        """Change a partition as if the task had told the ledger so too; the totals follow."""
        self.lists(number, **changed)
        reported = self.document["partitions"][number]
        self.items[reported["partitionId"]] = item_of(reported)
        self.sum_up()
        return self

    def lists_without(self, number: int, field: str) -> Case:
        """Leave a field of a listed partition out."""
        del self.document["partitions"][number][field]
        return self

    def omits(self, number: int) -> Case:
        """Do not list a partition; the totals follow, the ledger does not."""
        del self.document["partitions"][number]
        self.sum_up()
        return self

    def adds(self, added: dict[str, Any]) -> Case:
        """List one more partition; the totals follow, the slice does not."""
        self.document["partitions"].append(added)
        self.items.setdefault(added["partitionId"], item_of(added))
        self.sum_up()
        return self

    def ledger_has(self, partition_id: str, **changed: Any) -> Case:
        """Change what the ledger has of a partition."""
        self.items[partition_id] |= changed
        return self

    def ledger_counts(self, partition_id: str, **changed: int) -> Case:
        """Change the counters of a partition's checkpoint."""
        self.items[partition_id]["counters"] |= changed
        return self

    def ledger_was_told(self, partition_id: str, **changed: Any) -> Case:
        """Change the entry that the ledger keeps of a report."""
        self.items[partition_id]["entry"] |= changed
        return self

    def store_has(self, location: str, sha256: str | None) -> Case:
        """Change what the store says of an object."""
        self.objects[location] = sha256
        return self

    def known(self, **changed: Any) -> Case:
        """Change any other fact."""
        self.others |= changed
        return self

    def is_stored_as(self, data: bytes) -> Case:
        """Replace the document's bytes."""
        self.raw = data
        return self

    def has_text(self, before: str, after: str) -> Case:
        """Replace one part of the document's text."""
        text = json.dumps(self.document)
        assert 1 == text.count(before)
        return self.is_stored_as(text.replace(before, after).encode())

    def sum_up(self) -> None:
        """Make the totals the sums."""
        for field in (f"records{name.title()}" for name in COUNTERS):
            self.document[field] = sum(one[field] for one in self.document["partitions"])

    @property
    def data(self) -> bytes:
        """The document as it is stored."""
        return json.dumps(self.document).encode() if self.raw is None else self.raw

    @property
    def facts(self) -> Facts:
        """The facts as they are now."""
        items = {key: PartitionItem.model_validate(item) for key, item in self.items.items()}
        return Facts(
            **self.others,
            items=items,
            objects=self.objects,
            slice_partitions=frozenset(self.slice_partitions),
        )

    def judge(self) -> Judgement:
        """The judgement on the document as it is now."""
        return judge_document(self.data, self.facts)


class Row(NamedTuple):
    """A good contract, broken in one way."""

    kind: str
    broken: Callable[[Case], Case]
    invariant: str
    says: str
