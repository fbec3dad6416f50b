"""`trueup approve`: let a run go on at a gate."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.calling import Address, Person, RunId, client
from trueup.cli.deciding import GateName, Sha, decide
from trueup.cli.output import Json, print_json

EXAMPLE = "trueup approve flights-summary-20260706T010000Z-abcd apply --sha 3f9a1c07"


def command(
    run: RunId,
    gate: GateName,
    sha: Sha = None,
    comment: Annotated[str, typer.Option(help="What you looked at; on the audit trail.")] = "",
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Approve what a run asks about at a gate, by the first characters of its hash.

    It is shown before it is asked for. Whoever asked for the run cannot approve it.
    """
    told = decide(client(api, person), run, gate, "approve", sha, comment, quiet=json)
    if json:
        print_json(told)
    else:
        print(f"Approved. Follow it with: trueup status {run} --watch")
