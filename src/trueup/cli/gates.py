"""`trueup gates`: what waits for a person, and what a run's gates ask about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Person, client, run_path
from trueup.cli.exits import DONE, WAITS
from trueup.cli.output import Json, print_json, print_table, shown_person, shown_time, tell

EXAMPLE = "trueup gates flights-summary-20260706T010000Z-abcd"
SHOWN = 8
"""So many characters of a hash are shown, and typed."""


def command(
    run: Annotated[
        str | None, typer.Argument(help="The run's id; without it, all that wait.", metavar="[RUN]")
    ] = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Show what waits for a person, or the gates of a run with what they ask about.

    Exits 3 while something waits, else 0.
    """
    gates = client(api, person).get("/gates" if run is None else run_path(run, "gates"))["gates"]
    if json:
        print_json({"gates": gates})
    elif run is None:
        print_table(["run", "gate", "asks about", "asked by", "until"], map(_row, gates))
    else:
        tell("\n\n".join("\n".join(lines(gate)) for gate in gates) or f"{run} came to no gate.")
    raise typer.Exit(WAITS if any(gate["status"] == "OPEN" for gate in gates) else DONE)


def lines(gate: Any) -> Iterator[str]:
    """A gate, what it asks about and what was decided."""
    yield f"{gate['runId']}  gate {gate['name']}  {gate['status']}"
    yield f"{gate['job']}, asked by {shown_person(gate['requester'])}"
    width = max((len(fact["name"]) for fact in gate["facts"]), default=0)
    for fact in gate["facts"]:
        yield f"  {fact['name']:<{width}}  {fact['value']}"
    yield f"{gate['kind']} {gate['location']}"
    yield f"SHA-256 {gate['sha256']}"
    if gate["status"] == "OPEN":
        yield f"{', '.join(gate['roles']) or 'everybody but the requester'} may decide"
        yield f"until {shown_time(gate['expiresAt'])}, with trueup approve {gate['runId']} {gate['name']}"
    elif gate["decidedBy"]:
        said = f": {gate['comment']}" if gate["comment"] else ""
        yield f"decided by {shown_person(gate['decidedBy'])} at {shown_time(gate['decidedAt'])}{said}"


def _row(gate: dict[str, Any]) -> tuple[str, ...]:
    about = f"{gate['kind']} {gate['sha256'][:SHOWN]}"
    return (
        gate["runId"],
        gate["name"],
        about,
        shown_person(gate["requester"]),
        shown_time(gate["expiresAt"]),
    )
