"""`trueup known`: which differences of a job are signed as known."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.calling import Address, Person, client
from trueup.cli.output import Json, print_json, print_table, shown_person, shown_time

EXAMPLE = "trueup known flights-reconcile"


def command(
    job: Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")],
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """List the differences of a job that are signed as known, with who signed them and until when."""
    found = client(api, person).get("/known", job=job)
    if json:
        print_json(found)
        return
    rows = [
        (
            one["knownId"],
            f"{one['number']:,}",
            shown_person(one["who"]),
            shown_time(one["until"]),
            one["runId"],
            one["why"],
        )
        for one in found["known"]
    ]
    print_table(["id", "keys", "by", "until (UTC)", "report of", "why"], rows)
