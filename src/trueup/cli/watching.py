"""A run's progress for people: as lines, and followed to its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli.calling import Client, run_path
from trueup.cli.exits import of_run
from trueup.cli.output import duration, shown_person, tell, verified
from trueup.cli.patience import AT_ONCE, ON_THE_WAY
from trueup.texts import printable_lines

if TYPE_CHECKING:
    from rich.console import Console

EVERY = 2.0
Every = Annotated[float, typer.Option(min=0.0, max=86_400.0, help="Seconds between two looks.")]

_OVER = frozenset({"SUCCEEDED", "FAILED", "ABORTED", "CANCELLED", "PAUSED"})


def follow(there: Client, run: str, every: float, *, quiet: bool) -> Any:
    """Look at a run until it ends, pauses or waits at a gate, show it, and give it as it then stands."""
    if quiet or not sys.stdout.isatty():
        return _follow_in_lines(there, run, every, quiet)
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        for detail in _looks(there, run, every):
            live.update(Text("\n".join(fitting(detail, live.console))), refresh=True)
    return detail


def _follow_in_lines(there: Client, run: str, every: float, quiet: bool) -> Any:
    """One line for each change, for logs and pipes."""
    said = ""
    for detail in _looks(there, run, every):
        line = summary(detail)
        if not quiet and line != said:
            tell(line)
        said = line
    return detail


def _looks(there: Client, run: str, every: float) -> Iterator[Any]:
    before = None
    while True:
        # That one look fails says nothing of the run, which goes on.
        patience = AT_ONCE if before is None else ON_THE_WAY
        look = there.get(run_path(run), patience=patience)
        detail = before = never_back(before, look)
        yield detail
        if detail["run"]["status"] in _OVER or detail["gate"]:
            return
        time.sleep(every)


def never_back(before: Any, detail: Any) -> Any:
    """A look at a run, its progress no smaller than that of the look before it.

    What tasks reported counts as done by their word, and for a moment not at all: from when their task is
    proved stopped until each partition is judged. Only a new phase, or ended partitions that are to be worked
    again, take progress back.
    """
    if before is None or before["phase"] != detail["phase"] or _ended(detail) < _ended(before):
        return detail
    kept = {
        name: max(before[name], detail[name], key=lambda one: one["share"]) for name in ("partitions", "work")
    }
    return {**detail, **kept}


def _ended(detail: Any) -> int:
    return sum(detail["byState"].values())


def leave_with(detail: Any) -> None:
    """Exit as the run stands."""
    at_gate = bool(detail["gate"])
    raise typer.Exit(of_run(detail["run"]["status"], detail.get("verdict"), at_gate=at_gate))


def summary(detail: Any) -> str:
    """A run in one line."""
    run, done = detail["run"], detail["partitions"]
    text = f"{run['status']}: {done['done']:,.0f} of {done['total']:,.0f} partitions"
    if detail["eta"]["seconds"]:
        text += f", about {duration(detail['eta']['seconds'])} left"
    if detail["gate"]:
        return f"{text} (waits for {detail['waitsFor']})"
    found = detail.get("verification") or {}
    if (found.get("runId") or found.get("verdict")) and run["status"] in ("RUNNING", "SUCCEEDED"):
        return f"{text}; {verified(found)}"
    # That all is well needs no reason.
    return text if run["status"] == "SUCCEEDED" or not run["reason"] else f"{text} ({run['reason']})"


def lines(detail: Any) -> Iterator[str]:
    """A run as it stands, in full."""
    yield from _as_a_whole(detail)
    yield from _tasks(detail)


def fitting(detail: Any, console: Console) -> list[str]:
    """A run as it stands, with as many tasks as a terminal has room for, and how many more there are."""
    shown, tasks = ([*map(printable_lines, found(detail))] for found in (_as_a_whole, _tasks))
    # The row below stays free, for the cursor.
    room = console.height - 1 - sum(_rows(line, console) for line in shown)
    for number, task in enumerate(tasks):
        room -= _rows(task, console)
        is_last = number == len(tasks) - 1
        if room < (0 if is_last else 1):
            return [*shown, f"  and {len(tasks) - number:,} more"]
        shown.append(task)
    return shown


def _rows(line: str, console: Console) -> int:
    from rich.text import Text

    return len(Text(line).wrap(console, console.width))


def _as_a_whole(detail: Any) -> Iterator[str]:
    run = detail["run"]
    yield f"{run['runId']}  {run['status']}" + (f" ({run['reason']})" if run["reason"] else "")
    yield f"{run['job']}, {run['window']}, phase {detail['phase']}, asked by {shown_person(run['requester'])}"
    yield from _progress(detail)
    yield from _states(detail)
    if detail.get("verification"):
        yield verified(detail["verification"])
    if detail["waitsFor"]:
        yield f"waits for {detail['waitsFor']}"
    yield _spending(detail)


def _progress(detail: Any) -> Iterator[str]:
    partitions, work = detail["partitions"], detail["work"]
    yield (
        f"partitions {partitions['done']:,.0f} of {partitions['total']:,.0f} ({partitions['share']:.0%}), "
        f"work {work['share']:.0%}, {detail['recordsPerSecond']:,.0f} records a second"
    )
    eta = detail["eta"]
    left = "not known yet" if eta["seconds"] is None else duration(eta["seconds"])
    yield f"time left {left} ({eta['basis']})"


def _states(detail: Any) -> Iterator[str]:
    states = ", ".join(f"{number:,} {state}" for state, number in detail["byState"].items() if number)
    records = detail["records"]
    yield f"ended {states or 'none yet'}"
    yield (
        f"read {records['read']:,} = used {records['used']:,} + skipped {records['skipped']:,} "
        f"+ rejected {records['rejected']:,}"
    )
    yield (
        f"produced {records['produced']:,} = written {records['written']:,} + unchanged "
        f"{records['unchanged']:,} + refused {records['refused']:,}"
    )
    if detail["replayed"]:
        yield f"worked again after a task died, about {detail['replayed']:,}"


def _tasks(detail: Any) -> Iterator[str]:
    """The tasks at work: those that are slow or silent, those that wait, then all others."""
    for task in sorted(detail["tasks"], key=lambda one: (not one["straggler"], not one["waiting"])):
        share = "" if task["share"] is None else f" {task['share']:.0%}"
        notes = [
            note for note in (task["straggler"], task["waiting"] and f"waits: {task['waiting']}") if note
        ]
        yield (
            f"  slice {task['sliceId']} launch {task['launch']}: {task['partition'] or 'between partitions'}"
            f"{share}, {task['recordsPerSecond']:,.0f}/s" + "".join(f"; {note}" for note in notes)
        )


def _spending(detail: Any) -> str:
    spending = detail["spending"]
    estimated = "" if spending["estimated"] is None else f" of {spending['estimated']:.4f} estimated"
    return f"dollars {spending['dollars']:.4f}{estimated} ({spending['basis']})"
