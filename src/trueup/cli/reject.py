"""`trueup reject`: end a run at a gate."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.calling import Address, Person, RunId, client
from trueup.cli.deciding import GateName, Sha, decide
from trueup.cli.output import Json, print_json

EXAMPLE = "trueup reject flights-summary-20260706T010000Z-abcd apply --sha 3f9a1c07 --reason 'wrong window'"


def command(
    run: RunId,
    gate: GateName,
    reason: Annotated[str, typer.Option(help="Why; the run ends with it.")],
    sha: Sha = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Reject what a run asks about at a gate: the run ends CANCELLED, with the reason."""
    told = decide(client(api, person), run, gate, "reject", sha, reason, quiet=json)
    if json:
        print_json(told)
    else:
        print(f"Rejected: {run} ends with that reason.")
