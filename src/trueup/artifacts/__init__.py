"""What a run leaves in S3: plans, dispatches, results, rejects. Written once, checked by S3's checksums."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from trueup.artifacts.store import Store
from trueup.errors import ArtifactError, ArtifactExists, ArtifactMissing
from trueup.model.base import canonical, sha256
from trueup.model.ledger import Run
from trueup.model.naming import Brief, Named
from trueup.model.plan import Dispatch, ObjectRef, Partition, Plan, Slice
from trueup.model.result import ResultContract
from trueup.model.states import Phase

if TYPE_CHECKING:
    from trueup.model.estimate import Estimate
    from trueup.model.gate import Canary, Subject

__all__ = ["Artifacts", "Store"]


def plan_key(run_id: str) -> str:
    """The plan of a run."""
    return f"runs/{run_id}/plan.json"


def estimate_key(run_id: str) -> str:
    """What a run was estimated to take when it was planned."""
    return f"runs/{run_id}/estimate.json"


def brief_key(run_id: str) -> str:
    """What the partitions of a run are named from, where the job's own code names them."""
    return f"runs/{run_id}/naming.json"


def named_key(run_id: str, launch: int) -> str:
    """What a launch named."""
    return f"runs/{run_id}/named/{launch}.json"


def result_key_of(run_id: str, phase: Phase, slice_id: int, launch: int, task: str) -> str:
    """Where the contract of a launch and task (its ARN) is stored, once."""
    return f"runs/{run_id}/{phase.value}/results/{slice_id}/{launch}-{task.rpartition('/')[2]}.json"


def rejects_prefix(run_id: str, phase: Phase, partition_id: str) -> str:
    """Under which the rejects of a partition lie."""
    return f"runs/{run_id}/{phase.value}/rejects/{partition_id}/"


def findings_prefix(run_id: str, phase: Phase, partition_id: str) -> str:
    """Under which the findings of a partition lie."""
    return f"runs/{run_id}/{phase.value}/findings/{partition_id}/"


def comparison_key(run_id: str, kind: str) -> str:
    """The report of a reconciliation; `kind` is json or html."""
    return f"runs/{run_id}/comparison.{kind}"


def known_key(run_id: str, known_id: str) -> str:
    """The differences of a run's report that somebody signed as known."""
    return f"runs/{run_id}/known/{known_id}.json"


def pinned_known_key(run_id: str, digest: str) -> str:
    """What was known when a run was planned, named by its hash."""
    return f"runs/{run_id}/known-{digest[:12]}.json"


def repair_plan_key(run_id: str, partition_id: str, number: int) -> str:
    """A part of what is planned to be repaired in a partition."""
    return f"runs/{run_id}/{Phase.REPAIR.value}/plan/{partition_id}/{number:05d}.jsonl"


def repair_key(run_id: str) -> str:
    """What a repair came to."""
    return f"runs/{run_id}/repair.json"


def so_far_key(run_id: str, digest: str) -> str:
    """What a partition of a repair came to that did not end, named by its hash."""
    return f"runs/{run_id}/so-far/{digest[:12]}.json"


def evidence_key(run_id: str) -> str:
    """The manifest of a run's evidence."""
    return f"runs/{run_id}/evidence.json"


def more_evidence_key(run_id: str, digest: str) -> str:
    """A further part of that manifest, named by its hash."""
    return f"runs/{run_id}/evidence/{digest[:12]}.jsonl"


class Artifacts:
    """A run's objects, by what they are."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def put_plan(self, plan: Plan, partitions: bytes) -> None:
        """Store a plan and the partitions that it names. Raises ArtifactExists for other content there."""
        self.store.put_once(plan.partitions.key, partitions)
        self.store.put_once(plan_key(plan.run_id), plan.bytes())

    def plan(self, key: str, expected_sha256: str) -> Plan:
        """The plan, if it is the one that was hashed. Raises ArtifactMissing, ArtifactError."""
        return Plan.model_validate_json(self.check(key, expected_sha256))

    def plan_of(self, run: Run) -> Plan:
        """The plan that a run was started with. Raises ArtifactMissing; ArtifactError, also before that."""
        if not run.is_planned:
            raise ArtifactError(f"Run {run.run_id} is not planned yet.", remedy="Plan it first.")
        return self.plan(run.plan_key, run.plan_sha256)

    def unpinned_plan(self, run_id: str) -> Plan:
        """The plan stored for a run whose hash nobody wrote down yet. Raises ArtifactMissing."""
        return Plan.model_validate_json(self.store.get(plan_key(run_id)))

    def put_estimate(self, run_id: str, estimate: Estimate) -> None:
        """Store what a run will take; one that is there stands."""
        with suppress(ArtifactExists):
            self.store.put_once(estimate_key(run_id), canonical(estimate.document()))

    def estimate(self, run_id: str) -> Estimate | None:
        """What a run was estimated to take; None where nobody said."""
        from trueup.model.estimate import Estimate  # no task needs it

        try:
            return Estimate.model_validate_json(self.store.get(estimate_key(run_id)))
        except ArtifactMissing:
            return None

    def check(
        self,
        key: str,
        expected_sha256: str,
        known: str = "as was planned",
        remedy: str = "It was changed after it was hashed: do not run it; plan again.",
    ) -> bytes:
        """The bytes at a key, if they are what was hashed. Raises ArtifactMissing, ArtifactError.

        `known` says by what the hash is known, and `remedy` what to do where it is another.
        """
        data = self.store.get(key)
        if sha256(data) != expected_sha256:
            raise ArtifactError(
                f"{key} has SHA-256 {sha256(data)}, not {expected_sha256} {known}.", remedy=remedy
            )
        return data

    def put_canary(self, canary: Canary) -> Subject:
        """Store what a canary came to, under its own hash, and give what an approval has to name."""
        from trueup.model.gate import Subject, SubjectKind

        data = canonical(canary.document())
        digest = sha256(data)
        key = f"runs/{canary.run_id}/gates/canary-{digest[:12]}.json"
        self.store.put_once(key, data)
        return Subject(kind=SubjectKind.CANARY, key=key, sha256=digest)

    def put_brief(self, run_id: str, brief: Brief) -> Brief:
        """Store what partitions are named from, once; called again, the brief that is there."""
        key = brief_key(run_id)
        try:
            self.store.put_once(key, canonical(brief.document()))
        except ArtifactExists:
            return Brief.model_validate_json(self.store.get(key))
        return brief

    def brief(self, key: str, expected_sha256: str) -> Brief:
        """The brief, if it is the one that was hashed. Raises ArtifactMissing, ArtifactError."""
        return Brief.model_validate_json(self.check(key, expected_sha256))

    def put_named(self, run_id: str, launch: int, named: Named) -> None:
        """Store what a launch named. Raises ArtifactExists for other content there."""
        self.store.put_once(named_key(run_id, launch), canonical(named.document()))

    def named(self, run_id: str, launch: int) -> Named | None:
        """What a launch named; None where it left nothing."""
        try:
            return Named.model_validate_json(self.store.get(named_key(run_id, launch)))
        except ArtifactMissing:
            return None

    def partitions(self, ref: ObjectRef) -> list[Partition]:
        """The partitions of a plan or dispatch, in its order. Raises ArtifactMissing, ArtifactError."""
        return _lines(self.check(ref.key, ref.sha256))

    def put_dispatch(self, dispatch: Dispatch, partitions: bytes, slices: bytes) -> None:
        """Store a dispatch: its partitions, and the slices that a Distributed Map reads."""
        self.store.put_once(dispatch.partitions.key, partitions)
        self.store.put_once(dispatch.slices_key, slices)

    def slices(self, key: str) -> list[Slice]:
        """The slices of a dispatch, from where they are stored. Raises ArtifactMissing."""
        return [Slice.model_validate(one) for one in json.loads(self.store.get(key))]

    def slice(self, slice_: Slice) -> list[Partition]:
        """The partitions of a slice, a byte range of the dispatch. Raises ArtifactMissing, ArtifactError."""
        data = self.store.get_range(slice_.key, slice_.offset, slice_.length)
        try:
            found = _lines(data)
        except ValueError as error:
            raise _changed(slice_, "lines that are no partitions") from error
        if len(found) != slice_.partitions:
            raise _changed(slice_, f"{len(found)} partitions")
        return found

    def put_result(self, contract: ResultContract) -> str:
        """Store a contract once and give its key. Raises ArtifactExists for other content there."""
        key = result_key_of(
            contract.run_id, contract.phase, contract.slice_id, contract.launch, contract.task_arn
        )
        self.store.put_once(key, contract.model_dump_json(by_alias=True).encode())
        return key

    def put_rejects(self, run_id: str, phase: Phase, partition_id: str, name: str, data: bytes) -> str:
        """Store rejects, as JSON Lines, and give their location."""
        key = rejects_prefix(run_id, phase, partition_id) + name
        self.store.put(key, data)
        return self.store.location(key)


def _changed(slice_: Slice, found: str) -> ArtifactError:
    return ArtifactError(
        f"Slice {slice_.slice_id} has {found} in {slice_.key}, not {slice_.partitions} partitions.",
        remedy="The dispatch was changed after it was made: make a new one.",
    )


def _lines(data: bytes) -> list[Partition]:
    return [Partition.model_validate_json(line) for line in data.splitlines() if line]
