"""`trueup estimate`: what a run would take, planned in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli.output import Json, print_json, print_table
from trueup.errors import RequestError, UsageError

if TYPE_CHECKING:
    from trueup.model.job import JobFile
    from trueup.planning.estimate import Estimate

MOST_FILE_BYTES = 2**20


def command(
    job: Annotated[str, typer.Argument(help="The job's name.")],
    start: Annotated[str | None, typer.Option("--from", help="Where the window begins; included.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Where the window ends; not included.")] = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="A parameter, as name=value.")] = None,
    keys: Annotated[str | None, typer.Option(help="Partitions, as a,b,c or @FILE with one a line.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate a run that writes nothing.")] = False,
    jobs: Annotated[Path, typer.Option(help="The folder that holds containers/*/job.yaml.")] = Path(),
    json: Json = False,
) -> None:
    """Say what a run would take and cost; nothing is created."""
    from trueup.jobfile import catalogue, find

    found = find(catalogue(jobs), job)
    data: dict[str, Any] = {"job": job, "requestId": "estimate", "requester": "estimate", "dryRun": dry_run}
    data["params"] = read_params(found, param or [])
    if start is not None:
        data["from"] = start
    if end is not None:
        data["to"] = end
    if keys is not None:
        data["keys"] = read_keys(keys)
    result = _estimate(found, data)
    if json:
        print_json(result.document())
    else:
        _print(result)


def read_params(job: JobFile, options: list[str]) -> dict[str, Any]:
    """The parameters of `--param name=value` options, as the job's schema types them."""
    from trueup.planning import read_param

    params: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or not name:
            raise RequestError(
                f"{option!r} is not a parameter.", remedy="Write it as name=value.", field="--param"
            )
        if name in params:
            raise RequestError(f"{name} is given twice.", remedy="Give it once.", field="--param")
        params[name] = read_param(job, name, text)
    return params


def read_keys(option: str) -> list[str]:
    """The keys of a `--keys` option: `a,b,c`, or `@FILE` with one key a line."""
    if not option.startswith("@"):
        return [key for key in option.split(",") if key]
    path = Path(option[1:])
    try:
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
        lines = data.decode("utf-8").splitlines()
    except OSError as error:
        raise _unread(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unread(path, "it is no text in UTF-8") from error
    except ValueError as error:
        raise _unread(path, str(error)) from error
    if len(data) > MOST_FILE_BYTES:
        raise _unread(path, f"it is larger than {MOST_FILE_BYTES:,} bytes")
    return [line.strip() for line in lines if line.strip()]


def _unread(path: Path, why: str) -> UsageError:
    return UsageError(f"--keys: {path} cannot be read: {why}.", remedy="Give a text file, one key a line.")


def _estimate(job: JobFile, data: dict[str, Any]) -> Estimate:
    from datetime import UTC, datetime

    from trueup.model.plan import CodeIdentity
    from trueup.model.states import Phase
    from trueup.planning import make_dispatch, make_plan, partitions, read_partitions
    from trueup.planning.estimate import estimate
    from trueup.requests import check_request

    job, request, _ = check_request(data, {job.name: job})
    named = [] if request.keys is None else list(request.keys)
    _can_be_planned_here(job, named)
    parts = list(partitions(job, request, listing=_as_listing(job, named), named=named))
    code = CodeIdentity(task_definition="not-deployed:0", image_digest=f"sha256:{'0' * 64}")
    now = datetime.now(UTC)
    plan, lines = make_plan(
        job, request, parts, run_id="estimate", read_code=code, write_code=code, created_at=now
    )
    phase = Phase.REHEARSE if request.dry_run else Phase.APPLY
    dispatch, _, _ = make_dispatch(plan, read_partitions(lines), phase=phase, number=1)
    return estimate(job, parts, dispatch.slices, dry_run=request.dry_run)


def _can_be_planned_here(job: JobFile, keys: list[str]) -> None:
    if job.partitions.by in ("s3-prefix", "job") and not keys:
        what = "what lies in S3" if job.partitions.by == "s3-prefix" else "what the job's own code names"
        raise RequestError(
            f"the partitions of {job.name} are {what}, and an estimate looks at neither.",
            remedy="Give --keys, or start a dry run.",
            field="--keys",
        )


def _as_listing(job: JobFile, keys: list[str]) -> list[tuple[str, int]]:
    if job.partitions.by != "s3-prefix":
        return []
    prefix = job.partitions.prefix.removeprefix("s3://").partition("/")[2]
    labels = [key.removeprefix(f"{job.partitions.key}=") for key in keys]
    # Sizes are not known, so each counts as the job file's seconds at the pace that bytes are given.
    size = round(job.partitions.seconds * 5_000_000)
    return [(prefix + label, size) for label in labels]


def _print(result: Estimate) -> None:
    print(f"{result.job}: {result.partitions:,} partitions in {result.slices:,} slices")
    print(f"from {result.first} to {result.last}")
    rows = [(one.name, _amount(one.value), one.unit, _usd(one.usd)) for one in result.figures]
    rows.append(("total", "", "", _usd(result.dollars)))
    print_table(["what", "how much", "unit", "USD"], rows, right=["how much", "USD"])
    print("How it was worked out:")
    for one in result.figures:
        print(f"  {one.name}: {one.basis}")
    print(f"  prices: list prices of us-east-1 as of {result.prices_as_of}, without free tiers")
    print(f"Guard {result.guard.value}: cannot prevent {result.cannot_prevent}.")


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _usd(amount: float | None) -> str:
    return "" if amount is None else f"{amount:.4f}"
