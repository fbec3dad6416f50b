"""`trueup demo`: a year of real flights, killed on the way, and every record accounted for."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from trueup.cli.exits import DONE, FAILED
from trueup.cli.output import Json, print_json, print_table

RECORDS = ("read", "used", "skipped", "rejected", "produced", "written", "unchanged", "refused", "replayed")

EXAMPLE = "trueup demo"


def command(
    as_json: Json = False,
    seed: Annotated[int | None, typer.Option(help="Decides which tasks are killed.")] = None,
) -> None:
    """Backfill a year of real flights twice, with tasks killed on the way, and account for every record.

    Starts MiniStack and PostgreSQL from their wheels, and leaves nothing behind.
    """
    from trueup.local.demo import run_demo

    # By itself SIGTERM would end us where we stand: tasks would go on for a while, and their logs stay.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    figures = run_demo(seed=seed, note=lambda line: print(line, file=sys.stderr if as_json else sys.stdout))
    if as_json:
        print_json(figures)
    else:
        _show(figures)
    raise typer.Exit(DONE if figures["status"] == "SUCCEEDED" else FAILED)


def _show(figures: dict[str, Any]) -> None:
    names = list(figures["jobs"])
    jobs = list(figures["jobs"].values())
    rows = [("partitions planned", *(str(job["partitions"]["planned"]) for job in jobs))]
    rows += [("partitions accepted", *(str(job["partitions"]["accepted"]) for job in jobs))]
    for name in RECORDS:
        label = "records worked again, at most" if name == "replayed" else f"records {name}"
        rows.append((label, *(f"{job['records'][name]:,}" for job in jobs)))
    rows += [("tasks launched", *(str(job["launches"]) for job in jobs))]
    rows += [("tasks killed", *(str(job["kills"]) for job in jobs))]
    rows += [("seconds", *(str(job["seconds"]) for job in jobs))]
    rows += [("table equals an independent count", *("yes" if job["tableEqual"] else "NO" for job in jobs))]
    print_table(["", *names], rows, right=names)
