"""Taking repairs back: which run's can be, and what earlier undos of it have settled already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trueup.artifacts import Artifacts, repair_key
from trueup.errors import ArtifactError, ArtifactMissing, RequestError
from trueup.ledger import Ledger
from trueup.model.base import sha256
from trueup.model.history import EarlierRun
from trueup.model.jobs import AnyJob
from trueup.model.ledger import Run
from trueup.model.repair import RepairReport
from trueup.model.states import RUN_ENDS, Phase
from trueup.reporting.repairs import Repairs


class Undos:
    """Reads what a repair came to, and what was taken back of it."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def undoable(self, job: AnyJob, undo: str) -> Run:
        """The run of that id, if something of it can be taken back.

        Raises RequestError where nothing can be, or another undo of it is not over; NotFound.
        """
        undone = self._ledger.runs.get(undo)
        if undone.job != job.name:
            raise _no(f"{undo} is a run of {undone.job}.", f"Ask for {undone.job}.")
        if undone.status not in RUN_ENDS:
            raise _no(f"{undo} is {undone.status.value}.", "Wait until it has ended, or cancel it.")
        worked = self._ledger.partitions.all(undo, Phase.REPAIR) if undone.repairs else ()
        if not any(item.may_have_written for item in worked):
            why = "no row was touched, and there is nothing to take back."
            raise _no(f"{undo} repaired nothing: {why}", "Name a run whose report says what it repaired.")
        try:
            self._must_leave_something(undone)
        except ArtifactError as gone:
            raise _no(gone.what, gone.remedy) from gone
        return undone

    def _must_leave_something(self, undone: Run) -> None:
        before = self._before(undone)
        for one in before:
            if one.status not in RUN_ENDS:
                raise _no(
                    f"{one.run_id} takes {undone.run_id} back already, and is {one.status.value}.",
                    "Wait until it has ended, or cancel it; what it does not do can be taken back then.",
                )
        to_undo, reports = self.told(undone).to_undo, list(self._reports(before))
        if reports and sum(one.settled for one in reports) >= to_undo:
            names = ", ".join(one.run_id for one in reports)
            raise _no(
                f"{undone.run_id} was taken back by {names}: nothing is left of it.",
                f"`trueup report {reports[-1].run_id}` says what became of each row.",
            )

    def told(self, undone: Run) -> RepairReport:
        """What a repair came to; made now where its run ended before anybody made it.

        Raises ArtifactError where it cannot be told: then nothing can be taken back.
        """
        try:
            report = Repairs(self._ledger, self._artifacts).of(undone)
        except ArtifactMissing as gone:
            raise ArtifactError(
                f"What {undone.run_id} repaired cannot be told any more, and nothing was taken back: "
                f"{gone.what}",
                remedy="Look whether a lifecycle rule removed it: the bucket keeps versions.",
            ) from gone
        if report is None:
            raise ArtifactError(
                f"{undone.run_id} may have written rows, and no approval of it is on record: "
                "nothing was taken back.",
                remedy=f"Find out who changed the ledger: `trueup gates {undone.run_id}`.",
            )
        return report

    def earlier(self, run: Run) -> Iterator[EarlierRun]:
        """The undos before this one that did something, pinned by what they came to. Raises ArtifactError."""
        undone = self._ledger.runs.get(str(run.undoes))
        for one in self._reports(self._before(undone, run)):
            data = self._artifacts.store.get(repair_key(one.run_id))
            yield EarlierRun(run_id=one.run_id, sha256=sha256(data))

    def _before(self, undone: Run, run: Run | None = None) -> list[Run]:
        """The runs that were asked to take a repair back, up to one of them."""
        names = list(undone.undone_by)
        if run is not None and run.run_id in names:
            names = names[: names.index(run.run_id)]
        return [self._ledger.runs.get(name) for name in names]

    def _reports(self, undos: Iterable[Run]) -> Iterator[RepairReport]:
        """What undos came to; one that nobody approved did nothing."""
        for one in undos:
            if (report := Repairs(self._ledger, self._artifacts).of(one)) is not None:
                yield report


def _no(what: str, remedy: str) -> RequestError:
    return RequestError(what, remedy=remedy, field="undo")
