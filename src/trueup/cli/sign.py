"""`trueup sign`: accept differences of a report as known, until a date."""

from __future__ import annotations

import json as json_
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Person, RunId, client, run_path
from trueup.cli.comparison import fetched, show
from trueup.cli.deciding import Sha, named_hash
from trueup.cli.output import Json, print_json, shown_time
from trueup.errors import UsageError
from trueup.model.base import canonical, sha256

EXAMPLE = 'trueup sign cases-20260706T010000Z-abcd --key 4711 --until 2027-01-31 --why "it rounds"'


def command(
    run: RunId,
    until: Annotated[str, typer.Option(help="Until when: a day, which is not included, or an instant.")],
    why: Annotated[str, typer.Option(help="Why this may differ; on the audit trail and in reports.")],
    key: Annotated[
        list[str] | None,
        typer.Option(help='A key, such as 4711 or ["a","7"]; without any, all that is confirmed.'),
    ] = None,
    sha: Sha = None,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Sign differences of a report as known until a date, by the first characters of the report's hash.

    Later runs count them apart, call them no drift and do not repair them, as long as they stay as they are.
    Whoever asked for the run cannot sign.
    """
    word = {"until": _instant(until), "why": why, "keys": [_key(one) for one in key] if key else None}
    there = client(api, person)
    found = fetched(there, run, "comparison", None, "when all is compared")
    # What is hashed is what is shown: had the stored report another hash, the word would be refused.
    digest = sha256(canonical(found))
    if not json:
        show(found)
        print(f"SHA-256 {digest}")
    named_hash(run, "report", digest, sha, "sign")
    told: Any = there.post(run_path(run, "known"), {"sha256": digest, **word})
    if json:
        print_json(told)
    else:
        print(f"{told['number']:,} differences are known until {shown_time(told['until'])} UTC.")


def _instant(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise UsageError(
            f"--until: {text!r} is no day and no instant.", remedy="Write it like 2027-01-31."
        ) from wrong
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _key(text: str) -> list[str]:
    """A key of one column as it is, one of several as a JSON array of texts."""
    if not text.startswith("["):
        return [text]
    try:
        parts = json_.loads(text)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise UsageError(f"--key: {text} is no array of texts.", remedy='Write it like ["a","7"].')
    return parts
