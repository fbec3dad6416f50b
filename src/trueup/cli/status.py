"""`trueup status`: how runs stand."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Client, Person, client, run_path
from trueup.cli.output import Json, print_json, print_table, shown_person, shown_time, tell
from trueup.cli.watching import EVERY, Every, follow, leave_with, lines

EXAMPLE = "trueup status flights-summary-20260706T010000Z-abcd"


def command(
    run: Annotated[
        str | None, typer.Argument(help="The run's id; without it, all runs.", metavar="[RUN]")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until the run ends or waits for a person.")
    ] = False,
    every: Every = EVERY,
    job: Annotated[str | None, typer.Option(help="Only runs of this job.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="So many runs at most.")] = 20,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Show how a run stands, or list the newest runs.

    The time left is told once work was measured, and is an estimate: from half-way on the end that it means
    is off by a quarter of what the run takes in all, at most, unless machines change their speed or many die.

    Exits 0 while the run goes on or where it succeeded, 1 where it failed, 3 where it waits for a person, 4
    where it was cancelled.
    """
    there = client(api, person)
    if run is None:
        _list(there, job, limit, json)
        return
    detail = follow(there, run, every, quiet=json) if watch else there.get(run_path(run))
    if json:
        print_json(detail)
    elif not watch:
        tell("\n".join(lines(detail)))
    leave_with(detail)


def _list(there: Client, job: str | None, limit: int, json: bool) -> None:
    runs = list(there.pages("/runs", "runs", limit, job=job))
    if json:
        print_json({"runs": runs})
        return
    columns = ["run", "status", "window", "partitions", "started", "by"]
    print_table(columns, map(_row, runs), right=["partitions"])


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    partitions = "" if run["partitions"] is None else f"{run['partitions']:,}"
    return (
        run["runId"],
        run["status"],
        run["window"],
        partitions,
        shown_time(run["createdAt"]),
        shown_person(run["requester"]),
    )
