"""`trueup evidence`: what a reconciliation leaves, and whether all of it is still what it was."""

from __future__ import annotations

from typing import Any

import typer

from trueup.cli.calling import Address, Person, RunId, client, run_path
from trueup.cli.exits import FAILED
from trueup.cli.output import Json, print_json, print_table, shown_person

EXAMPLE = "trueup evidence flights-reconcile-20260706T010000Z-abcd"


def command(run: RunId, api: Address = None, person: Person = None, json: Json = False) -> None:
    """List the evidence of a reconciliation, and check it: exits with 1 where an object was changed."""
    found = client(api, person).get(run_path(run, "evidence"))
    changed = found["changed"]
    if json:
        print_json(found)
    else:
        _show(found)
    if changed:
        raise typer.Exit(FAILED)


def _show(found: dict[str, Any]) -> None:
    manifest = found["manifest"]
    print(f"{manifest['runId']}  {manifest['verdict'] or manifest['status']}")
    print(f"manifest {found['location']}  SHA-256 {found['sha256']}")
    for gate in manifest["gates"]:
        who = shown_person(gate["decidedBy"]) if gate["decidedBy"] else "nobody"
        print(f"gate {gate['name']}: {gate['status']} by {who}, about {gate['subjectSha256']}")
    rows = [
        (one["kind"], one["sha256"][:12], _mark(one, found), one["location"]) for one in manifest["objects"]
    ]
    print_table(["what", "sha-256", "", "where"], rows)


def _mark(one: dict[str, Any], found: dict[str, Any]) -> str:
    return "CHANGED" if one["location"] in found["changed"] else ""
