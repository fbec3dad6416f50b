"""A run that is followed: what is shown of its progress does not go back without a reason."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
import stamina
from rich.console import Console

from trueup.aws.api import Reply
from trueup.cli.calling import Client
from trueup.cli.patience import patiently
from trueup.cli.watching import fitting, follow, lines
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


class Looks(Client):
    """The API, which answers with one look after the other."""

    def __init__(self, *looks: dict[str, Any]) -> None:
        self._api = self  # type: ignore[assignment]
        self._looks = iter(looks)

    def call(self, *asked: Any) -> Reply:
        """The next one."""
        return Reply(200, "application/json", json.dumps(next(self._looks)).encode())


def followed(capsys: pytest.CaptureFixture[str], *looks: dict[str, Any]) -> list[int]:
    """How many partitions each line said were done."""
    follow(Looks(*looks, look(10, 10, status="SUCCEEDED")), "run-1", 0, quiet=False)
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

    def call(self, *asked: Any) -> Reply:
        self.calls += 1
        if self.calls % 2 == 0:
            raise StoreUnavailable("The API answered 429: slow down.")
        return super().call(*asked)


def test_a_look_that_fails_ends_no_watching(capsys: pytest.CaptureFixture[str]) -> None:
    there = Flaking(look(2, 2), look(6, 6), look(10, 10, status="SUCCEEDED"))
    with stamina.set_testing(True, attempts=2):
        detail = follow(there, "run-1", 0, quiet=False)
    assert ("SUCCEEDED", 5) == (detail["run"]["status"], there.calls)
    assert 3 == len(capsys.readouterr().out.splitlines())


def test_an_api_that_stays_away_is_told_as_that() -> None:
    there = Flaking(look(2, 2))
    with stamina.set_testing(True, attempts=1), pytest.raises(StoreUnavailable, match="429"):
        follow(there, "run-1", 0, quiet=True)


def test_that_the_api_stays_away_is_told_after_the_third_failure_and_it_is_asked_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def ask() -> int:
        asked.append(1)
        if len(asked) <= failures:
            raise StoreUnavailable("The API answered 500: away.")
        return len(asked)

    said = []
    for failures in (2, 3, 5):
        asked.clear()
        with stamina.set_testing(True, attempts=6):
            assert failures + 1 == patiently(ask, 300)
        said.append(capsys.readouterr().err)
    told = "The API answered 500: away. trueup goes on asking, for 5 min in all.\n"
    assert ["", told, told] == said


def test_a_new_phase_begins_at_its_own_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    assert [9, 0, 10] == followed(capsys, look(9, 9, phase="rehearse"), look(0, 0), look(0, 0))


# In full


def task(number: int, **more: Any) -> dict[str, Any]:
    """A task at work, as the API gives it."""
    at = "2026-01-01T00:00:00Z"
    known = {"phase": "apply", "task": "arn", "registeredAt": at, "beatAt": at}
    known |= {"sliceId": number, "launch": number + 1, "partition": f"date=2013-01-{number + 1:02d}"}
    return {**known, "share": 0.5, "recordsPerSecond": 1234.0, "straggler": None, "waiting": None, **more}


def whole(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A run with everything that the API says of it."""
    run = look(5, 5)["run"] | {"runId": "job-1", "reason": None, "job": "job", "window": "all"}
    records = dict.fromkeys(("read", "used", "skipped", "rejected"), 0)
    produced = dict.fromkeys(("produced", "written", "unchanged", "refused"), 0)
    return {
        **look(5, 5),
        "run": {**run, "requester": "arn:aws:iam::1:user/ann"},
        "waitsFor": None,
        "recordsPerSecond": 99.0,
        "eta": {"seconds": 720, "basis": "measured on 5 partitions"},
        "records": {**records, **produced},
        "replayed": 0,
        "spending": {"dollars": 1.25, "estimated": 2.5, "basis": "list prices"},
        "tasks": list(tasks),
        **more,
    }


SLOW = task(28, straggler="slow: a quarter of the others' pace")
WAITS = task(29, waiting="the table is busy")
MANY = [*map(task, range(28)), SLOW, WAITS]


def test_a_run_is_told_with_its_time_left_its_dollars_its_stragglers_and_what_tasks_wait_for() -> None:
    told = list(lines(whole(task(1), WAITS, SLOW, waitsFor="task 3")))
    assert "time left 12 min (measured on 5 partitions)" in told
    assert "waits for task 3" in told
    assert told.index("dollars 1.2500 of 2.5000 estimated (list prices)") == len(told) - 4
    assert [
        "  slice 28 launch 29: date=2013-01-29 50%, 1,234/s; slow: a quarter of the others' pace",
        "  slice 29 launch 30: date=2013-01-30 50%, 1,234/s; waits: the table is busy",
        "  slice 1 launch 2: date=2013-01-02 50%, 1,234/s",
    ] == told[-3:]
    assert "time left not known yet (measuring)" in lines(whole(eta={"seconds": None, "basis": "measuring"}))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 24), (200, 12), (80, 50)])
def test_what_matters_most_of_many_tasks_fits_a_terminal(width: int, height: int) -> None:
    console = Console(file=StringIO(), width=width, height=height)
    told = fitting(whole(*MANY), console)
    assert sum(len(console.render_lines(line)) for line in told) < height
    (spent,) = (number for number, line in enumerate(told) if line.startswith("dollars "))
    tasks = [line for line in told[spent + 1 :] if line.startswith("  slice ")]
    if height >= 24:
        assert "slow" in tasks[0]
        assert "waits" in tasks[1]
    left = len(MANY) - len(tasks)
    assert (f"  and {left} more" if left else tasks[-1]) == told[-1]
    assert bool(left) == (height < 50)


def test_all_tasks_are_shown_where_they_just_fit() -> None:
    one = whole(*map(task, range(5)))
    rows = len(list(lines(one)))
    wide = {"file": StringIO(), "width": 200}
    assert list(lines(one)) == fitting(one, Console(height=rows + 1, **wide))
    assert "  and 2 more" == fitting(one, Console(height=rows, **wide))[-1]


class Terminal(StringIO):
    """A terminal that keeps what it was told to show."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_on_a_terminal_the_tasks_are_cut_and_not_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name, value in {"COLUMNS": "80", "LINES": "24", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    ended = whole(*MANY, run={**whole()["run"], "status": "SUCCEEDED"})
    follow(Looks(ended), "run-1", 0, quiet=False)
    shown = terminal.getvalue()
    assert "dollars 1.2500" in shown
    assert "waits: the table is busy" in shown
    assert " more" in shown
    assert "…" not in shown
