"""`trueup demo`: a year of real flights, killed on the way, and every record accounted for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trueup.cli.exits import DONE, FAILED
from trueup.cli.output import Json, print_json, print_table, say
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


def command(
    as_json: Json = False,
    seed: Annotated[
        int | None, typer.Option(help="Decides what chance would: which tasks are killed.")
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Let every kind of fault strike, not only the death of tasks.")
    ] = False,
) -> None:
    """Backfill a year of real flights twice, with tasks killed on the way, and account for every record.

    Starts the local stack as `trueup up` does, has its machines do both jobs, and leaves nothing behind.
    """
    from trueup.local.demo import run_demo
    from trueup.local.demo_faults import DEATHS, EVERYTHING

    leave_on_sigterm()
    chosen = EVERYTHING if faults else DEATHS
    figures = run_demo(seed=seed, note=lambda line: say(line, aside=as_json), faults=chosen)
    if as_json:
        print_json(figures)
    else:
        _show(figures)
        if faults:
            _show_faults(figures["faults"])
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
