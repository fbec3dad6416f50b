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
    wide: Annotated[
        bool, typer.Option("--wide", help="Also the work that was estimated, and where each is read from.")
    ] = False,
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
    if wide:
        columns[1:1] = ["input", "work (s)"]
    rows = [_row(one, wide=wide) for one in found]
    print_table(columns, rows, right=["work (s)", "read", "written", "rejected", "refused"])


def _row(one: dict[str, Any], *, wide: bool) -> tuple[str, ...]:
    records = one["records"]
    figures = [f"{records[name]:,}" for name in ("read", "written", "rejected", "refused")]
    error = one["error"]
    told = f"{error['kind']}: {error['message']}" if error else one["reason"] or ""
    planned = (one["input"] or "", f"{one['weight'] or 0:,.1f}") if wide else ()
    return one["partitionId"], *planned, one["status"], *figures, shown_time(one["updatedAt"]), told
