"""`trueup withdraw`: take back what was signed as known."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from trueup.cli.calling import Address, Person, RunId, client, run_path
from trueup.cli.output import Json, print_json, shown_person, shown_time
from trueup.errors import UsageError

EXAMPLE = 'trueup withdraw cases-20260706T010000Z-abcd 3f9a1c07d2e4 --why "the migration is through"'


def command(
    run: RunId,
    known: Annotated[str, typer.Argument(help="The id that `trueup known` shows.", metavar="ID")],
    why: Annotated[str, typer.Option(help="Why it does not count any more; on the audit trail.")],
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Take back what was signed as known about the report of a run: from the next run on it is drift again.

    Runs that are planned already keep what they know. It takes the role that signing takes, and one person.
    """
    if not known:
        raise UsageError("ID is empty.", remedy="Give the id that `trueup known` shows.")
    path = run_path(run, "known", quote(known, safe=""), "withdraw")
    told: Any = client(api, person).post(path, {"why": why})
    if json:
        print_json(told)
        return
    back = told["withdrawn"]
    who, at = shown_person(back["who"]), shown_time(back["at"])
    print(f"{told['number']:,} differences are not known any more: withdrawn by {who} at {at} UTC.")
