"""`trueup partitions`: how far each partition of a run got."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Limit, Person, RunId, client, run_path
from trueup.cli.output import Json, print_json, print_table, shown_time

EXAMPLE = "trueup partitions flights-summary-20260706T010000Z-abcd --state FAILED"


def command(
    run: RunId,
    state: Annotated[str | None, typer.Option(help="Only those in this state, such as FAILED.")] = None,
    phase: Annotated[str | None, typer.Option(help="Of this phase; without it, the one at work.")] = None,
    limit: Limit = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """List a run's partitions in the plan's order, also those that nobody began."""
    state = state.upper() if state else None
    pages = client(api, person).pages(
        run_path(run, "partitions"), "partitions", limit, state=state, phase=phase
    )
    found = list(pages)
    if json:
        print_json({"partitions": found})
        return
    columns = ["partition", "state", "read", "written", "rejected", "refused", "changed", "error"]
    print_table(columns, map(_row, found), right=["read", "written", "rejected", "refused"])


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    records = one["records"]
    figures = [f"{records[name]:,}" for name in ("read", "written", "rejected", "refused")]
    error = one["error"]
    told = f"{error['kind']}: {error['message']}" if error else one["reason"] or ""
    return one["partitionId"], one["status"], *figures, shown_time(one["updatedAt"]), told
