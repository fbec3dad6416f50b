"""`trueup start`: start a run, and where asked wait for its end."""

from __future__ import annotations

import shlex
import uuid
from typing import Annotated, Any

import typer

from trueup.cli.calling import Address, Client, Person, client
from trueup.cli.options import End, Keys, Param, Start, read_keys, typed_params
from trueup.cli.output import Json, print_json, program, tell
from trueup.cli.patience import AT_ONCE, patiently
from trueup.cli.watching import EVERY, Every, follow, leave_with
from trueup.errors import StoreUnavailable, UsageError

EXAMPLE = (
    "trueup start flights-summary --from 2013-01-01 --to 2014-01-01 "
    "--param bucket=my-flights --param table=my-table --wait"
)


def command(
    job: Annotated[str, typer.Argument(help="The job's name.")],
    start: Start = None,
    end: End = None,
    param: Param = None,
    keys: Keys = None,
    rejects_of: Annotated[
        str | None, typer.Option("--rejects-of", help="The partitions of this run that left rejects.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Rehearse only: nothing is written.")] = False,
    sample: Annotated[int | None, typer.Option(help="Rehearse so many partitions first.")] = None,
    canary: Annotated[
        int | None, typer.Option(help="Apply so many partitions first, and ask before the rest.")
    ] = None,
    undo: Annotated[
        str | None, typer.Option(help="Take back what this run repaired, once somebody approved that.")
    ] = None,
    max_concurrency: Annotated[int | None, typer.Option(help="Run at most so many tasks at once.")] = None,
    comment: Annotated[str, typer.Option(help="Why; on the audit trail.")] = "",
    request_id: Annotated[
        str | None, typer.Option(help="Asking twice with the same id starts one run; drawn where not given.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the run's end or a gate, and exit as it stands.")
    ] = False,
    every: Every = EVERY,
    api: Address = None,
    person: Person = None,
    json: Json = False,
) -> None:
    """Start a run, and say at once how to follow it."""
    there = client(api, person)
    wanted = {
        "job": job,
        "requestId": request_id or f"cli/{uuid.uuid4()}",
        "from": start,
        "to": end,
        "keys": None if keys is None else read_keys(keys),
        "params": _params(there, job, param or []),
        "rejectsOf": rejects_of,
        "dryRun": dry_run or None,
        "sample": sample,
        "canary": canary,
        "undo": undo,
        "maxConcurrency": max_concurrency,
        "comment": comment or None,
    }
    started = _started(there, {name: value for name, value in wanted.items() if value is not None})
    _tell(started, json=json, wait=wait)
    if wait:
        detail = follow(there, started["runId"], every, quiet=json)
        if json:
            print_json(detail)
        leave_with(detail)


def _started(there: Client, wanted: dict[str, Any]) -> Any:
    """The run that was started: asked with one id, so that a lost answer starts no second one."""
    try:
        return patiently(lambda: there.post("/runs", wanted), AT_ONCE)
    except StoreUnavailable as error:
        remedy = (
            f"{error.remedy} The run may have been started: ask again with --request-id "
            f"{shlex.quote(wanted['requestId'])}, and at most one is."
        )
        raise StoreUnavailable(error.what, remedy=remedy.strip()) from error


def _tell(started: dict[str, Any], *, json: bool, wait: bool) -> None:
    if json:
        if not wait:
            print_json(started)
        return
    tell(started["runId"])
    if not wait:
        print(f"Follow it with: {program()} status {started['runId']} --watch")


def _params(there: Client, job: str, options: list[str]) -> dict[str, Any] | None:
    """Typed by the job's schema, which the API knows; nothing is asked where there are none."""
    if not options:
        return None
    jobs = {one["name"]: one for one in there.get("/jobs")["jobs"]}
    if job not in jobs:
        from trueup.jobfile import instead

        raise UsageError(f"no job is called {job!r}.", remedy=instead(job, list(jobs), "There are no jobs."))
    return typed_params(jobs[job]["parameters"], options)
