"""`trueup report`: what became of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Person, RunId, client, run_path
from trueup.cli.comparison import fetched, show_reconciled, told
from trueup.cli.exits import of_verdict
from trueup.cli.output import Json, duration, print_table, shown_person, tell, verified

EXAMPLE = "trueup report flights-summary-20260706T010000Z-abcd --html report.html"

_FIGURES = ("read", "used", "skipped", "rejected", "produced", "written", "unchanged", "refused")


def command(
    run: RunId,
    html: Annotated[Path | None, typer.Option(help="Write the report's page to this file.")] = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Show the report of a run that has ended; exits 4 where it has not.

    For a reconciliation it shows what was found, and what was repaired once it was. It exits with 0 for
    CLEAN, REPAIRED and UNDONE, with 1 for DRIFT, REAPPEARED and UNREPAIRED, and with 4 for the rest.
    For a backfill that was verified it exits so too.
    """
    there = client(api, person)
    detail = there.get(run_path(run))
    if detail["run"]["kind"] == "reconcile":
        show_reconciled(there, detail, html, json=json)
        return
    found = fetched(there, run, "report", html, "when it ends")
    told(found, _show, html, json=json)
    verification = found.get("verification")
    if verification and verification["verdict"]:
        raise typer.Exit(of_verdict(verification["verdict"]))


def _show(found: dict[str, Any]) -> None:
    tell(f"{found['runId']}  {found['status']}" + (f" ({found['reason']})" if found["reason"] else ""))
    tell(f"{found['job']}, {found['window']}, asked for by {shown_person(found['requester'])}")
    rows = [_row(line["status"], line["partitions"], line["records"]) for line in found["states"]]
    rows.append(_row("all", found["partitions"], found["records"]))
    print_table(["state", "partitions", *_FIGURES], rows, right=["partitions", *_FIGURES])
    for kind, reasons in (("skipped", found["skipped"]), ("rejected", found["rejected"]["reasons"])):
        for one in reasons:
            tell(f"{kind} {one['records']:,}: {one['reason']}")
    for one in found["troubles"]:
        error = one["error"]
        tell(f"{one['status']} {one['partitionId']}: {error['message'] if error else one['reason'] or ''}")
    tell(f"{found['launches']:,} launches, {found['unclean']:,} cut; open {duration(found['openSeconds'])}")
    tell(f"asked to slow down {found['throttled']:,} times; worked again, about {found['replayed']:,}")
    spending = found["spending"]
    beside = "" if spending["estimated"] is None else f" of {spending['estimated']:.4f} estimated"
    tell(f"dollars {spending['dollars']:.4f}{beside}")
    if found.get("verification"):
        tell(verified(found["verification"]))


def _row(state: str, partitions: int, records: dict[str, int]) -> tuple[str, ...]:
    return (state, f"{partitions:,}", *(f"{records[name]:,}" for name in _FIGURES))
