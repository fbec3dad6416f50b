"""`trueup rejects`: the records that a run could not use."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.calling import Address, Limit, Person, RunId, client, run_path
from trueup.cli.output import Json, print_json

EXAMPLE = "trueup rejects flights-summary-20260706T010000Z-abcd --partition date=2013-01-05"


def command(
    run: RunId,
    partition: Annotated[str | None, typer.Option(help="Of this partition only.")] = None,
    phase: Annotated[str | None, typer.Option(help="Of this phase; without it, the one at work.")] = None,
    limit: Limit = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Print rejected records and refused rows, one JSON object a line with the partition that it is from."""
    found = client(api, person).pages(
        run_path(run, "rejects"), "rejects", limit, partition=partition, phase=phase
    )
    if json:
        print_json({"rejects": list(found)})
        return
    for one in found:
        line = {"partition": one["partitionId"], **one["reject"]}
        print_json(line)
