"""The invariants of a whole document: it belongs here, and it agrees with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trueup.contract.facts import Facts
from trueup.contract.rules import DOCUMENT, STANDING, invariant
from trueup.model.counters import COUNTERS
from trueup.model.result import ResultContract
from trueup.model.states import PartitionStatus, ResultStatus, TaskStatus

_STALE = "Nothing: it speaks of another launch and changes no partition."
_RETRY = "Retry the slice's refused partitions: "
_FIX_IMAGE = "Fix what the task writes into its contract, then retry the refused partitions."


@invariant(STANDING, "generation-is-current", remedy=_STALE)
def generation_is_current(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the generation that launched the task."""
    if contract.generation != facts.generation:
        yield f"it is of generation {contract.generation}, and the task was launched by {facts.generation}"


@invariant(STANDING, "launch-is-current", remedy=_STALE)
def launch_is_current(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the launch that is judged."""
    if contract.launch != facts.launch:
        yield f"it is of launch {contract.launch}, and launch {facts.launch} is judged"


@invariant(STANDING, "task-is-current", remedy=_STALE)
def task_is_current(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the task that registered for the launch."""
    if contract.task_arn != facts.task:
        yield f"it is of task {contract.task_arn}, and {facts.task} registered for launch {facts.launch}"


@invariant(DOCUMENT, "run-is-this-run", remedy=_FIX_IMAGE)
def run_is_this_run(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the run that it is stored for."""
    if contract.run_id != facts.run_id:
        yield f"it is of run {contract.run_id}, and belongs to {facts.run_id}"


@invariant(DOCUMENT, "job-is-the-runs", remedy=_FIX_IMAGE)
def job_is_the_runs(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the run's job."""
    if contract.job_id != facts.job:
        yield f"it is of job {contract.job_id}, and the run does {facts.job}"


@invariant(DOCUMENT, "phase-is-this-phase", remedy=_FIX_IMAGE)
def phase_is_this_phase(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the phase that it is stored for."""
    if contract.phase != facts.phase:
        yield f"it is of phase {contract.phase.value}, and belongs to {facts.phase.value}"


@invariant(DOCUMENT, "slice-is-this-slice", remedy=_FIX_IMAGE)
def slice_is_this_slice(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The document names the slice that the task was given."""
    if contract.slice_id != facts.slice_id:
        yield f"it is of slice {contract.slice_id}, and the task was given slice {facts.slice_id}"


@invariant(
    DOCUMENT,
    "plan-is-the-runs",
    remedy=_RETRY + "what was approved is not what ran; find out where the task got its plan from.",
)
def plan_is_the_runs(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The task worked by the run's plan, byte for byte."""
    if contract.plan_sha256 != facts.plan_sha256:
        yield f"it was made by plan {contract.plan_sha256}, and the run's plan is {facts.plan_sha256}"


@invariant(
    DOCUMENT,
    "revision-is-the-plans",
    remedy=_RETRY
    + "the task ran under another revision than the plan pins; move the run to new code if that is wanted.",
)
def revision_is_the_plans(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The task ran under the task definition revision that the plan pins for the phase."""
    if contract.task_definition != facts.code.task_definition:
        yield f"it ran as {contract.task_definition}, and the plan pins {facts.code.task_definition}"


@invariant(
    DOCUMENT,
    "image-is-the-plans",
    remedy=_RETRY + "the task ran another image than the plan pins; refer to images by digest, never by tag.",
)
def image_is_the_plans(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The task ran the image that the plan pins for the phase."""
    if contract.image_digest != facts.code.image_digest:
        yield f"it ran image {contract.image_digest}, and the plan pins {facts.code.image_digest}"


@invariant(DOCUMENT, "finished-not-before-started", remedy=_FIX_IMAGE)
def finished_not_before_started(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """The task finished when it started, or later."""
    if contract.finished_at < contract.started_at:
        yield (
            f"it finished at {contract.finished_at.isoformat()}, "
            f"before it started at {contract.started_at.isoformat()}"
        )


@invariant(DOCUMENT, "no-partition-twice", remedy=_FIX_IMAGE)
def no_partition_twice(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """A partition is listed once."""
    for partition_id, times in Counter(contract.partition_ids).items():
        if times > 1:
            yield f"partition {partition_id} is listed {times} times, and must be listed once"


@invariant(DOCUMENT, "partitions-are-the-slices", remedy=_FIX_IMAGE)
def partitions_are_the_slices(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """Every partition that is listed is one of the slice."""
    for partition_id in dict.fromkeys(contract.partition_ids):
        if partition_id not in facts.slice_partitions:
            yield (
                f"partition {partition_id} is none of the {len(facts.slice_partitions)} "
                f"of slice {facts.slice_id}"
            )


@invariant(DOCUMENT, "every-report-is-listed", remedy=_FIX_IMAGE)
def every_report_is_listed(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """Every partition that the ledger has as reported by this launch and task is listed."""
    listed = set(contract.partition_ids)
    for partition_id, item in facts.items.items():
        mine = (item.launch, item.task) == (facts.launch, facts.task)
        if mine and item.status is PartitionStatus.REPORTED and partition_id not in listed:
            yield f"partition {partition_id} is REPORTED by launch {item.launch}, and is not listed"


@invariant(DOCUMENT, "totals-are-sums", remedy=_FIX_IMAGE)
def totals_are_sums(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """Each total is the sum over the partitions that are listed."""
    said, sums = contract.counters(), contract.totals(contract.partitions)
    for name in COUNTERS:
        total, added = getattr(said, name), getattr(sums, name)
        if total != added:
            yield f"records{name.title()} is {total}, and the partitions add up to {added}"


@invariant(DOCUMENT, "task-status-agrees", remedy=_FIX_IMAGE)
def task_status_agrees(contract: ResultContract, facts: Facts) -> Iterator[str]:
    """A task SUCCEEDED only if all listed partitions did; that it ended early or badly is always believed."""
    good = sum(entry.status is ResultStatus.SUCCEEDED for entry in contract.partitions)
    listed = len(contract.partitions)
    if contract.status is TaskStatus.SUCCEEDED and good < listed:
        yield f"the task says SUCCEEDED, and only {good} of its {listed} partitions did"
