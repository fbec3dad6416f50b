"""`trueup logs`: what the task said that worked a partition last."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.calling import Address, Limit, Person, RunId, client, run_path
from trueup.cli.output import Json, print_json, shown_time, tell

EXAMPLE = "trueup logs flights-summary-20260706T010000Z-abcd --partition date=2013-01-05"


def command(
    run: RunId,
    partition: Annotated[str, typer.Option(help="The partition whose last task is meant.")],
    phase: Annotated[str | None, typer.Option(help="Of this phase; without it, the one at work.")] = None,
    limit: Limit = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Print the log of the task that worked a partition last, oldest line first."""
    lines = client(api, person).pages(run_path(run, "logs"), "lines", limit, partition=partition, phase=phase)
    if json:
        print_json({"lines": list(lines)})
        return
    for line in lines:
        tell(f"{shown_time(line['at'])} {line['message']}")
