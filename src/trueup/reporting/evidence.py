"""The evidence of a reconciliation: one manifest of hashes, made when its run has ended, then checked."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from trueup.artifacts import (
    Artifacts,
    comparison_key,
    evidence_key,
    more_evidence_key,
    repair_key,
    repair_plan_key,
)
from trueup.artifacts.findings import listed
from trueup.artifacts.store import place
from trueup.artifacts.together import together
from trueup.errors import ArtifactError, ArtifactExists, ArtifactMissing, NotFound
from trueup.ledger import Ledger
from trueup.model.base import canonical, sha256
from trueup.model.evidence import (
    CheckedEvidence,
    Evidence,
    EvidenceKind,
    EvidenceObject,
    EvidencePart,
    GateEvidence,
    MoreEvidence,
)
from trueup.model.ledger import Run
from trueup.model.plan import Plan
from trueup.model.reconcile_report import ObjectList
from trueup.model.states import RUN_ENDS, Phase
from trueup.reporting.comparison import Comparisons
from trueup.reporting.repairs import Repairs
from trueup.watching import tokens
from trueup.watching.room import Room

PART_BYTES = 3 * 2**20
"""In Base64 it is 4 MiB; a Lambda function answers 6 MB at most."""
MOST_IN_MANIFEST = 1_000
MOST_IN_A_PART = 5_000
"""So a part has some 2 MB, and a manifest grows by a line for as many objects."""
_KINDS: dict[Phase, EvidenceKind] = {
    Phase.COMPARE: "findings",
    Phase.CONFIRM: "findings",
    Phase.REPAIR: "before-images and outcomes",
    Phase.VERIFY: "verification",
}


class Evidences:
    """Makes manifests, once each: what is stored first stands."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def keep(self, run: Run) -> None:
        """Store the manifest of a reconciliation that has ended. Raises StoreUnavailable, ArtifactError."""
        if run.kind != "reconcile" or run.status not in RUN_ENDS:
            return
        key = evidence_key(run.run_id)
        if self._artifacts.store.checksum(self._artifacts.store.location(key)) is not None:
            return
        with suppress(ArtifactExists):
            self._artifacts.store.put_once(key, canonical(self._made(run).document()))

    def checked(
        self, run: Run, *, limit: int = MOST_IN_MANIFEST, after: str | None = None
    ) -> CheckedEvidence:
        """A page of the manifest, and what of it is not as it says; with the first page its parts are asked.

        Raises as `_manifest` does, RequestError for a mark that is none.
        """
        data = self._manifest(run)
        manifest = Evidence.model_validate_json(data)
        start = int(tokens.read(after, at=0)["at"])
        shown, end = self._page(manifest, start, limit)
        whole = len(manifest.objects) + sum(one.objects for one in manifest.more)
        return CheckedEvidence(
            location=self._artifacts.store.location(evidence_key(run.run_id)),
            sha256=sha256(data),
            manifest=manifest.model_copy(update={"objects": shown}),
            changed=self._changed([*shown, *(manifest.more if start == 0 else ())]),
            next=tokens.write(at=end) if shown and end < whole else None,
        )

    def _page(self, manifest: Evidence, start: int, limit: int) -> tuple[list[EvidenceObject], int]:
        """As many objects from a place on as one answer holds, and the place behind them."""
        room = Room()
        room.takes(manifest.model_copy(update={"objects": []}))
        shown: list[EvidenceObject] = []
        for behind, one in islice(self._objects_of(manifest, start), limit):
            if not room.takes(one) and shown:
                break
            shown.append(one)
            start = behind
        return shown, start

    def _objects_of(self, manifest: Evidence, start: int = 0) -> Iterator[tuple[int, EvidenceObject]]:
        """The objects that a manifest names, itself and in its parts, from a place on; each with the next.

        A part that is not what the manifest says names nothing.
        """
        yield from enumerate(manifest.objects[start:], start + 1)
        before = len(manifest.objects)
        for part in manifest.more:
            skipped = max(0, start - before)
            lines = self._lines(part) if skipped < part.objects else []
            objects = map(EvidenceObject.model_validate_json, lines[skipped:])
            yield from enumerate(objects, before + skipped + 1)
            before += part.objects

    def _lines(self, part: MoreEvidence) -> list[bytes]:
        with suppress(ArtifactError):
            return self._artifacts.check(place(part.location)[1], part.sha256).splitlines()
        return []

    def _changed(self, objects: Sequence[EvidenceObject | MoreEvidence]) -> dict[str, str]:
        found = together(lambda one: self._artifacts.store.checksum(one.location), objects)
        return {
            one.location: digest or "there is no such object"
            for one, digest in zip(objects, found, strict=True)
            if digest != one.sha256
        }

    def part(self, run: Run, digest: str, offset: int, *, who: str) -> EvidencePart:
        """Bytes of what the manifest names by a hash, or of it itself, once the trail says who reads them.

        Raises NotFound where there is no evidence yet, its manifest has no such hash, or the object is gone.
        """
        kind, location = self._named(run, digest)
        key = place(location)[1]
        try:
            data = self._artifacts.store.get_range(key, offset, PART_BYTES)
        except ArtifactMissing as gone:
            raise NotFound(
                f"{key} is in the manifest of run {run.run_id}, and is there no more.",
                remedy="Look whether a lifecycle rule removed it; the bucket keeps versions.",
            ) from gone
        self._ledger.audit.downloaded(
            run.run_id, digest, who=who, subject=f"evidence: {kind}", location=location, begins=offset == 0
        )
        more = offset + PART_BYTES if len(data) == PART_BYTES else None
        return EvidencePart(sha256=digest, data=base64.b64encode(data).decode(), next=more)

    def _named(self, run: Run, digest: str) -> tuple[str, str]:
        """What the evidence of a hash is, and where it lies; what its manifest does not name is not found."""
        data = self._manifest(run)
        if digest == sha256(data):
            return "manifest", self._artifacts.store.location(evidence_key(run.run_id))
        manifest = Evidence.model_validate_json(data)
        for part in manifest.more:
            if part.sha256 == digest:
                return "manifest", part.location
        for _, one in self._objects_of(manifest):
            if one.sha256 == digest:
                return one.kind, one.location
        raise NotFound(
            f"The evidence of run {run.run_id} has nothing with the SHA-256 {digest}.",
            remedy=f"`trueup evidence {run.run_id}` lists what there is.",
        )

    def _manifest(self, run: Run) -> bytes:
        """The manifest; made now where the run has ended and nobody made it yet.

        Raises NotFound where there is none, StoreUnavailable, ArtifactError.
        """
        try:
            self.keep(run)
            return self._artifacts.store.get(evidence_key(run.run_id))
        except ArtifactMissing as none:
            raise NotFound(
                f"Run {run.run_id} has no evidence.",
                remedy="Wait until it has ended; only reconciliations leave evidence.",
            ) from none

    def _made(self, run: Run) -> Evidence:
        plan = self._artifacts.plan_of(run) if run.is_planned else None
        found, repaired = (made(self._ledger, self._artifacts).of(run) for made in (Comparisons, Repairs))
        last = repaired or found
        gates = [GateEvidence.of(gate) for gate in self._ledger.gates.of(run.run_id)]
        lists = [*(found.lists if found else ()), *(repaired.lists if repaired else ())]
        objects = iter([*self._documents(run, plan), *self._left(lists), *self._plans(run, lists)])
        return Evidence(
            run_id=run.run_id,
            job=run.job,
            status=run.status.value,
            reason=run.reason or "",
            verdict=last.verdict if last else None,
            undoes=run.undoes,
            requester=run.requester,
            plan_sha256=run.plan_sha256,
            read_code=plan.read_code if plan else None,
            write_code=plan.write_code if plan else None,
            gates=gates,
            tasks=sorted({life.task for life in self._ledger.tasks.lives(run.run_id) if life.task}),
            objects=list(islice(objects, MOST_IN_MANIFEST)),
            more=list(self._more(run, objects)),
        )

    def _more(self, run: Run, objects: Iterator[EvidenceObject]) -> Iterator[MoreEvidence]:
        """Store what a manifest has no room for."""
        while some := list(islice(objects, MOST_IN_A_PART)):
            data = b"".join(canonical(one.document()) + b"\n" for one in some)
            key = more_evidence_key(run.run_id, sha256(data))
            self._artifacts.store.put_once(key, data)
            location = self._artifacts.store.location(key)
            yield MoreEvidence(location=location, sha256=sha256(data), objects=len(some))

    def _documents(self, run: Run, plan: Plan | None) -> Iterator[EvidenceObject]:
        known = plan.known.key if plan is not None and plan.known is not None else ""
        yield from self._there("known differences", [known] if known else [])
        yield from self._there("plan", [run.plan_key] if run.plan_key else [])
        yield from self._there("report", [comparison_key(run.run_id, "json")])
        yield from self._there("repair", [repair_key(run.run_id)])

    def _left(self, lists: Iterable[ObjectList]) -> Iterator[EvidenceObject]:
        """Each list with its objects; of one that is not what it was itself alone, and it is told as that."""
        for one in lists:
            kind = _KINDS[one.phase]
            yield EvidenceObject(kind=kind, location=one.location, sha256=one.sha256)
            with suppress(ArtifactError):
                for there in listed(self._artifacts, one):
                    yield EvidenceObject(kind=kind, location=there.location, sha256=there.sha256)

    def _plans(self, run: Run, lists: Iterable[ObjectList]) -> Iterator[EvidenceObject]:
        """A part of the plan for each object that it was made from."""
        source = Phase.REPAIR if run.undoes else Phase.CONFIRM
        keys = (
            repair_plan_key(run.run_id, one.partition_id, part)
            for one in lists
            if one.phase is source
            for part in range(one.objects)
        )
        yield from self._there("repair plan", keys)

    def _there(self, kind: EvidenceKind, keys: Iterable[str]) -> Iterator[EvidenceObject]:
        """Those of some objects that are there."""
        locations = list(map(self._artifacts.store.location, keys))
        found = together(self._artifacts.store.checksum, locations)
        for location, digest in zip(locations, found, strict=True):
            if digest:
                yield EvidenceObject(kind=kind, location=location, sha256=digest)
