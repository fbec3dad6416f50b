"""`trueup jobs`: what can be started."""

from __future__ import annotations

from trueup.cli.calling import Address, Person, client
from trueup.cli.output import Json, print_json, print_table

EXAMPLE = "trueup jobs"


def command(api: Address = None, person: Person = None, json: Json = False) -> None:
    """List the jobs that can be started."""
    found = client(api, person).get("/jobs")
    if json:
        print_json(found)
        return
    columns = ["job", "kind", "partitions", "target", "guard", "dry run", "what it does"]
    rows = [
        (
            job["name"],
            job["kind"],
            job["by"],
            job["target"],
            job["guard"],
            _yes(job["hasDryRun"]),
            job["description"],
        )
        for job in found["jobs"]
    ]
    print_table(columns, rows)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
