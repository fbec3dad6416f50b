"""`trueup audit`: who did what to a run, and why."""

from __future__ import annotations

from trueup.cli.calling import Address, Limit, Person, RunId, client, run_path
from trueup.cli.output import Json, print_json, print_table, shown_person, shown_time

EXAMPLE = "trueup audit flights-summary-20260706T010000Z-abcd"


def command(
    run: RunId, limit: Limit = None, api: Address = None, person: Person = None, json: Json = False
) -> None:
    """Show a run's trail, oldest first."""
    entries = list(client(api, person).pages(run_path(run, "audit"), "entries", limit))
    if json:
        print_json({"entries": entries})
        return
    rows = [
        (shown_time(one["at"]), shown_person(one["who"]), one["verb"], one["subject"], one["why"])
        for one in entries
    ]
    print_table(["when", "who", "verb", "what", "why"], rows)
