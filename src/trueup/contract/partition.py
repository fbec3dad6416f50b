"""The invariants of one partition: its figures agree with each other, with the ledger and with the store."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.contract.facts import Facts
from trueup.contract.rules import PARTITION, invariant, show
from trueup.model.counters import COUNTERS
from trueup.model.ledger import PartitionItem
from trueup.model.result import PartitionResult
from trueup.model.states import PartitionStatus, ResultStatus

_FROM_START = "Retry the partition; it starts from the beginning with its counters at zero."
_NOT_THE_RUNNER = (
    "The runner counts, not the job: update the image's trueup or its own runner, then retry the partition."
)
_LOST = "Look why the object is missing (deleted, another bucket, never written), then retry the partition."


@invariant(PARTITION, "entry-names-its-partition", remedy=_NOT_THE_RUNNER)
def entry_names_its_partition(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """An entry speaks of the partition that it is kept for."""
    if entry.partition_id != item.partition_id:
        yield f"the entry is of {entry.partition_id}, and is kept for {item.partition_id}"


@invariant(PARTITION, "fence-is-the-items", remedy=_FROM_START)
def fence_is_the_items(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """The partition was worked under the fence that the ledger gave out with it."""
    if entry.fence != item.fence:
        yield f"it was worked under fence {entry.fence}, and the ledger's fence is {item.fence}"


@invariant(
    PARTITION,
    "status-is-the-ledgers",
    remedy="Nothing: an unfinished partition goes on; a REPORTED one can be retried.",
)
def status_is_the_ledgers(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """What ended is REPORTED in the ledger, and what was interrupted is INTERRUPTED there."""
    interrupted = entry.status is ResultStatus.INTERRUPTED
    expected = PartitionStatus.INTERRUPTED if interrupted else PartitionStatus.REPORTED
    if item.status is not expected:
        yield f"it says {entry.status.value}, and the ledger has {item.status.value}, not {expected.value}"


@invariant(PARTITION, "entry-is-the-ledgers", remedy=_FROM_START)
def entry_is_the_ledgers(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """What the document says of a REPORTED partition is what the ledger was told when it was reported."""
    if item.status is not PartitionStatus.REPORTED:
        return
    if item.entry is None:
        yield "the partition is REPORTED, and the ledger holds no entry for it"
        return
    said, told = entry.document(), item.entry.document()
    for field in said:
        if said[field] != told[field]:
            yield f"{field} is {show(said[field])}, and the ledger was told {show(told[field])}"


@invariant(PARTITION, "counters-are-the-checkpoints", remedy=_FROM_START)
def counters_are_the_checkpoints(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """Each counter is the one of the ledger's checkpoint."""
    said = entry.counters()
    for name in COUNTERS:
        mine, theirs = getattr(said, name), getattr(item.counters, name)
        if mine != theirs:
            yield f"records{name.title()} is {mine}, and the ledger's checkpoint has {theirs}"


@invariant(PARTITION, "skipped-reasons-are-the-checkpoints", remedy=_FROM_START)
def skipped_reasons_are_the_checkpoints(
    entry: PartitionResult, item: PartitionItem, facts: Facts
) -> Iterator[str]:
    """The reasons for skipping and their figures are those of the ledger's checkpoint."""
    for reason in sorted(entry.skipped.keys() | item.skipped.keys()):
        mine, theirs = entry.skipped.get(reason, 0), item.skipped.get(reason, 0)
        if mine != theirs:
            yield f'"{reason}" was skipped {mine} times, and the ledger\'s checkpoint has {theirs}'


@invariant(PARTITION, "cursor-is-the-checkpoints", remedy=_FROM_START)
def cursor_is_the_checkpoints(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """The cursor is the one of the ledger's checkpoint."""
    if entry.cursor != item.cursor:
        yield f"the cursor is {entry.cursor}, and the ledger's checkpoint has {item.cursor}"


@invariant(PARTITION, "read-is-used-skipped-rejected", remedy=_NOT_THE_RUNNER)
def read_is_used_skipped_rejected(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """read = used + skipped + rejected."""
    used, skipped, rejected = entry.records_used, entry.records_skipped, entry.records_rejected
    if entry.records_read != used + skipped + rejected:
        yield (
            f"{entry.records_read} read, and {used} used + {skipped} skipped + {rejected} rejected "
            f"make {used + skipped + rejected}"
        )


@invariant(
    PARTITION,
    "produced-is-written-unchanged-refused",
    remedy="Fix the job's write(): its Outcome must account for every row it is given; then retry.",
)
def produced_is_written_unchanged_refused(
    entry: PartitionResult, item: PartitionItem, facts: Facts
) -> Iterator[str]:
    """produced = written + unchanged + refused."""
    written, unchanged, refused = entry.records_written, entry.records_unchanged, entry.records_refused
    if entry.records_produced != written + unchanged + refused:
        yield (
            f"{entry.records_produced} produced, and {written} written + {unchanged} unchanged "
            f"+ {refused} refused make {written + unchanged + refused}"
        )


@invariant(PARTITION, "skipped-reasons-sum-up", remedy=_NOT_THE_RUNNER)
def skipped_reasons_sum_up(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """Every skipped record has a reason."""
    reasons = sum(entry.skipped.values())
    if reasons != entry.records_skipped:
        yield f"{entry.records_skipped} skipped, and the reasons add up to {reasons}"


@invariant(
    PARTITION,
    "counted-is-read",
    remedy="Retry the partition from the start if read() stopped half-way; or fix the job's count().",
)
def counted_is_read(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """A SUCCEEDED partition has read as many records as were counted independently."""
    counted = entry.records_counted
    if entry.status is ResultStatus.SUCCEEDED and counted is not None and counted != entry.records_read:
        yield f"{entry.records_read} read, and {counted} counted independently"


@invariant(
    PARTITION,
    "empty-is-allowed",
    remedy="Look whether the input is complete and retry; or set partitions.empty to `allowed` in job.yaml.",
)
def empty_is_allowed(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """A SUCCEEDED partition has read something, unless the job allows empty ones."""
    if entry.status is ResultStatus.SUCCEEDED and entry.records_read == 0 and not facts.empty_allowed:
        yield "it SUCCEEDED with 0 records read, and the job wants at least 1 in every partition"


@invariant(
    PARTITION,
    "rejects-decide-the-status",
    remedy="Look at the rejects; fix the data or the job, or raise errors.rejects in job.yaml; then retry.",
)
def rejects_decide_the_status(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """A partition that ended is REJECTED if rejected + refused is above the limit, and only then."""
    bad, limit = entry.records_rejected + entry.records_refused, facts.reject_limit
    if entry.status is ResultStatus.REJECTED and bad <= limit:
        yield f"it says REJECTED with {bad} rejected and refused, and the limit of {limit} is kept"
    if entry.status in (ResultStatus.SUCCEEDED, ResultStatus.FAILED) and bad > limit:
        yield f"it says {entry.status.value} with {bad} rejected and refused, above the limit of {limit}"


@invariant(PARTITION, "rejects-have-a-place", remedy=_NOT_THE_RUNNER)
def rejects_have_a_place(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """What ended names a rejects object if anything was rejected or refused; without any, nothing does."""
    bad = entry.records_rejected + entry.records_refused
    if bad == 0 and entry.rejects is not None:
        yield f"0 rejected and refused, and yet they are said to lie at {entry.rejects}"
    # An interrupted partition's rejects lie in parts still, which its next task goes on with.
    if bad > 0 and entry.rejects is None and entry.status is not ResultStatus.INTERRUPTED:
        yield f"{bad} rejected and refused, and 0 places named where they are kept"


@invariant(PARTITION, "rejects-exist", remedy=_LOST)
def rejects_exist(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """The rejects object that is named is there."""
    if entry.rejects is not None and not facts.has(entry.rejects):
        bad = entry.records_rejected + entry.records_refused
        yield f"{bad} rejected and refused are said to lie at {entry.rejects}, and no object is there"


@invariant(PARTITION, "outputs-exist", remedy=_LOST)
def outputs_exist(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """Every output that is named is there."""
    for output in entry.outputs:
        if not facts.has(output.location):
            yield f"{output.records} records are said to lie at {output.location}, and no object is there"


@invariant(
    PARTITION,
    "outputs-have-their-checksum",
    remedy="Look who else writes there, or store outputs with a SHA-256; then retry the partition.",
)
def outputs_have_their_checksum(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """Every output that is there has the SHA-256 that is named."""
    for output in entry.outputs:
        stored = facts.objects.get(output.location)
        if stored is not None and stored != output.sha256:
            yield f"{output.location} is said to have SHA-256 {output.sha256}, and S3 has {stored or 'none'}"


@invariant(
    PARTITION,
    "failed-has-an-error",
    remedy="Read the task's log for the cause; let the runner report it; then retry.",
)
def failed_has_an_error(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """A FAILED partition says why."""
    if entry.status is ResultStatus.FAILED and entry.error is None:
        yield f"it FAILED after {entry.records_read} records, and names 0 errors"


@invariant(PARTITION, "succeeded-has-no-error", remedy=_NOT_THE_RUNNER)
def succeeded_has_no_error(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """A SUCCEEDED partition has no error."""
    if entry.status is ResultStatus.SUCCEEDED and entry.error is not None:
        yield f"it SUCCEEDED with {entry.records_read} records, and yet names the error {entry.error.kind}"


@invariant(PARTITION, "interrupted-has-no-outputs", remedy="Nothing: the partition goes on from its cursor.")
def interrupted_has_no_outputs(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """An INTERRUPTED partition has no outputs: they are made at its end."""
    if entry.status is ResultStatus.INTERRUPTED and entry.outputs:
        yield f"it was INTERRUPTED at {entry.cursor}, and yet names {len(entry.outputs)} outputs"


@invariant(
    PARTITION,
    "rehearsal-writes-nothing",
    remedy="Check the target at once: a task wrote that must not be able to; do not approve.",
)
def rehearsal_writes_nothing(entry: PartitionResult, item: PartitionItem, facts: Facts) -> Iterator[str]:
    """In a rehearsal no row is written; each counts as unchanged."""
    if facts.rehearsal and entry.records_written:
        yield f"{entry.records_written} written, and a rehearsal writes 0"
