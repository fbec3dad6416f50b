"""`trueup demo`: a year of real flights, killed on the way, every record counted, and damage repaired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from trueup.cli.exits import DONE, FAILED
from trueup.cli.output import Json, print_json, print_table, program, say, shown_person
from trueup.cli.signals import leave_on_sigterm

RECORDS = ("read", "used", "skipped", "rejected", "produced", "written", "unchanged", "refused", "replayed")
FIGURES = {
    "launches": "launches",
    "tasks started": "tasks",
    "tasks killed": "kills",
    "executions": "executions",
    "state transitions": "transitions",
    "seconds": "seconds",
}

EXAMPLE = "trueup demo"
REPORTS = Path(".trueup", "demo")


def command(
    as_json: Json = False,
    seed: Annotated[
        int | None, typer.Option(help="Decides what chance would: which tasks are killed.")
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Let every kind of fault strike, not only the death of tasks.")
    ] = False,
    reports: Annotated[Path, typer.Option(help="The folder for the reports of the runs.")] = REPORTS,
) -> None:
    """Backfill a year of real flights twice, with tasks killed on the way, and account for every record.

    Then 25 items of one table are damaged, found by a reconciliation, approved by a second person, repaired
    and looked at again.
    Starts the local stack as `trueup up` does, has its machines do all that, and leaves nothing behind but
    the reports of the runs. Ends by saying where these are, and how to go on.
    """
    from trueup.local.demo import run_demo
    from trueup.local.demo_faults import DEATHS, EVERYTHING

    leave_on_sigterm()
    chosen = EVERYTHING if faults else DEATHS
    figures = run_demo(seed=seed, note=lambda line: say(line, aside=as_json), reports=reports, faults=chosen)
    figures["next"] = going_on()
    if as_json:
        print_json(figures)
    else:
        _show(figures)
        if figures["reconcile"] is not None:
            _show_reconciled(figures["reconcile"])
        if faults:
            _show_faults(figures["faults"])
        _show_what_is_next(figures)
    raise typer.Exit(DONE if figures["status"] == "SUCCEEDED" else FAILED)


def _show(figures: dict[str, Any]) -> None:
    names = list(figures["jobs"])
    jobs = list(figures["jobs"].values())
    rows = [("partitions planned", *(str(job["partitions"]["planned"]) for job in jobs))]
    rows += [("partitions accepted", *(str(job["partitions"]["accepted"]) for job in jobs))]
    for name in RECORDS:
        label = "records worked again, about" if name == "replayed" else f"records {name}"
        rows.append((label, *(f"{job['records'][name]:,}" for job in jobs)))
    for label, name in FIGURES.items():
        rows.append((label, *(str(job[name]) for job in jobs)))
    rows += [("table equals an independent count", *("yes" if job["tableEqual"] else "NO" for job in jobs))]
    print_table(["", *names], rows, right=names)


def _show_reconciled(found: dict[str, Any]) -> None:
    damaged, drift = found["damaged"], found["drift"]
    rows = [("items damaged on purpose", str(sum(damaged.values())))]
    rows += [(f"found {name}", str(number)) for name, number in drift.items()]
    rows += [("repaired", str(found["repaired"])), ("right at a later look", str(found["verified"]))]
    rows += [
        ("verdict", str(found["verdict"])),
        ("approved by", shown_person(found["approvedBy"] or "nobody")),
    ]
    rows += [("table as before the damage", "yes" if found["tableRestored"] else "NO")]
    rows += [("seconds", str(found["seconds"]))]
    print_table(["", "flights-reconcile"], rows, right=["flights-reconcile"])


def _show_faults(told: dict[str, Any]) -> None:
    print(f"Faults by seed {told['seed']}:")
    rows = [
        (
            fault.pop("fault"),
            str(fault.pop("struck")),
            ", ".join(f"{name} {value}" for name, value in fault.items()),
        )
        for fault in told["faults"]
    ]
    print_table(["fault", "struck", "as given"], rows, right=["struck"])


def going_on() -> list[str]:
    """Commands for a stack of one's own: the first one stays, the others are for a second shell."""
    window = "--from 2013-01-01 --to 2013-02-01 --param bucket=flights --param table=flights-summary"
    return [
        f"{program()} up --flights > stack.env",
        ". ./stack.env",
        f"{program()} start flights-summary {window} --wait",
    ]


def _show_what_is_next(figures: dict[str, Any]) -> None:
    up, *others = figures["next"]
    runs = [*figures["jobs"].values(), *filter(None, [figures["reconcile"]])]
    if kept := [run["report"] for run in runs if run["report"]]:
        print("The reports of the runs, pages for a browser:")
        print("\n".join(f"  {report}" for report in kept))
    print("Go on with a stack of your own, which stays until Ctrl-C:")
    print(f"  {up}")
    print("and once it says that it is up, start a run from a second shell in this folder:")
    for command in others:
        print(f"  {command}")
