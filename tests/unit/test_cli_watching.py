"""A run that is followed: what is shown of its progress does not go back without a reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import stamina

from trueup.cli.watching import follow
from trueup.errors import StoreUnavailable
from trueup.model.counters import Counters
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.model.view import Eta, Progress, RunDetail, RunView, Spending

RUN = RunView(
    run_id="run-1",
    job="numbers",
    status=RunStatus.RUNNING,
    requester="ann",
    created_at=datetime(2026, 7, 6, tzinfo=UTC),
    window="a to z",
    dry_run=False,
    generation=1,
    launches=0,
    target="table",
    guard="none",
)


def look(done: int, ended: int, *, phase: str = "apply", status: str = "RUNNING") -> dict[str, Any]:
    """A look at a run of 10 partitions, as the API gives it."""
    share = Progress(done=done, total=10, share=done / 10)
    return RunDetail(
        run=RUN.model_copy(update={"status": RunStatus(status)}),
        phase=Phase(phase),
        partitions=share,
        work=share,
        by_state={PartitionStatus.ACCEPTED: ended, PartitionStatus.FAILED: 0},
        records=Counters(),
        replayed=0,
        records_per_second=0,
        eta=Eta(basis="nothing was measured"),
        tasks=[],
        spending=Spending(dollars=0, basis="a test"),
    ).document()


class Looks:
    """The API, which answers with one look after the other."""

    def __init__(self, *looks: dict[str, Any]) -> None:
        self._looks = iter(looks)

    def get(self, path: str) -> dict[str, Any]:
        """The next one."""
        return next(self._looks)


def followed(capsys: pytest.CaptureFixture[str], *looks: dict[str, Any]) -> list[int]:
    """How many partitions each line said were done."""
    follow(Looks(*looks, look(10, 10, status="SUCCEEDED")), "run-1", 0, quiet=False)  # type: ignore[arg-type]
    return [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()]


def test_what_tasks_reported_stays_done_until_it_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    reported, proved, judged = look(6, 2), look(2, 2), look(6, 6)
    assert [6, 7, 10] == followed(capsys, reported, proved, judged, look(7, 6))


def test_partitions_that_are_worked_again_take_it_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert [8, 5, 10] == followed(capsys, look(8, 8), look(5, 5))


class Flaking(Looks):
    """An API that answers every other call alone, once it has answered."""

    def __init__(self, *looks: dict[str, Any]) -> None:
        super().__init__(*looks)
        self.calls = 0

    def get(self, path: str) -> dict[str, Any]:
        self.calls += 1
        if self.calls % 2 == 0:
            raise StoreUnavailable("The API answered 429: slow down.")
        return super().get(path)


def test_a_look_that_fails_ends_no_watching(capsys: pytest.CaptureFixture[str]) -> None:
    there = Flaking(look(2, 2), look(6, 6), look(10, 10, status="SUCCEEDED"))
    with stamina.set_testing(True, attempts=2):
        detail = follow(there, "run-1", 0, quiet=False)  # type: ignore[arg-type]
    assert ("SUCCEEDED", 5) == (detail["run"]["status"], there.calls)
    assert 3 == len(capsys.readouterr().out.splitlines())


def test_an_api_that_stays_away_is_told_as_that() -> None:
    there = Flaking(look(2, 2))
    with stamina.set_testing(True, attempts=1), pytest.raises(StoreUnavailable, match="429"):
        follow(there, "run-1", 0, quiet=True)  # type: ignore[arg-type]


def test_a_new_phase_begins_at_its_own_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    assert [9, 0, 10] == followed(capsys, look(9, 9, phase="rehearse"), look(0, 0), look(0, 0))
