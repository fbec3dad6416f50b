"""`trueup evidence`: what a reconciliation leaves, whether it is still what it was, and a copy of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Person, RunId, client
from trueup.cli.exits import FAILED
from trueup.cli.fetching import check_new, evidence_of, fetch
from trueup.cli.output import Json, print_json, print_table, say, shown_person, tell

EXAMPLE = "trueup evidence flights-reconcile-20260706T010000Z-abcd --to evidence"
_WITH_VALUES = ("before-images and outcomes", "repair plan")


def command(
    run: RunId,
    to: Annotated[
        Path | None, typer.Option(help="Download it into this folder, which must be new or empty.")
    ] = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """List the evidence of a reconciliation, and check it: exits with 1 where an object was changed.

    With --to it is downloaded too, through the API, and each file is held against the manifest's SHA-256.
    The folder is there when all is in it and was checked; else nothing is left. `sha256sum -c SHA256SUMS`
    checks it again.
    """
    there = client(api, person)
    if to is not None:
        check_new(to)
    found = evidence_of(there, run)
    changed = found["changed"]
    if not changed and to is not None:
        fetch(there, found, to)
        found = {**found, "folder": str(to)}
    if json:
        print_json(found)
    else:
        _show(found, to)
    if changed:
        if to is not None:
            say(f"Nothing was downloaded: {len(changed)} objects are not what they were.", aside=True)
        raise typer.Exit(FAILED)


def _show(found: dict[str, Any], to: Path | None) -> None:
    manifest = found["manifest"]
    tell(f"{manifest['runId']}  {manifest['verdict'] or manifest['status']}")
    tell(f"manifest {found['location']}  SHA-256 {found['sha256']}")
    for gate in manifest["gates"]:
        who = shown_person(gate["decidedBy"]) if gate["decidedBy"] else "nobody"
        tell(f"gate {gate['name']}: {gate['status']} by {who}, about {gate['subjectSha256']}")
    named = [({"kind": "more of the manifest"} | one) for one in manifest["more"]] + manifest["objects"]
    rows = [(one["kind"], one["sha256"][:12], _mark(one, found), one["location"]) for one in named]
    print_table(["what", "sha-256", "", "where"], rows)
    if "folder" in found:
        tell(f"All of it is in {to}, and is what the manifest says.")
        if any(one["kind"] in _WITH_VALUES for one in manifest["objects"]):
            tell("It holds rows as they were before the repair, in the clear: keep it as you keep the data.")


def _mark(one: dict[str, Any], found: dict[str, Any]) -> str:
    return "CHANGED" if one["location"] in found["changed"] else ""
