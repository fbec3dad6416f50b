"""`trueup estimate`: what a run would take, planned in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli.options import End, Keys, Param, Start, read_keys, typed_params
from trueup.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from trueup.model.estimate import Estimate

EXAMPLE = (
    "trueup estimate flights-summary --from 2013-01-01 --to 2014-01-01 "
    "--param bucket=my-flights --param table=my-table"
)


def command(
    job: Annotated[str, typer.Argument(help="The job's name.")],
    start: Start = None,
    end: End = None,
    param: Param = None,
    keys: Keys = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate a run that writes nothing.")] = False,
    jobs: Annotated[Path, typer.Option(help="The folder that holds containers/*/job.yaml.")] = Path(),
    json: Json = False,
) -> None:
    """Say what a run would take and cost; nothing is created."""
    from trueup.estimating import estimate_request
    from trueup.jobfile import catalogue, find

    found = find(catalogue(jobs), job)
    data: dict[str, Any] = {"job": job, "dryRun": dry_run}
    data["params"] = typed_params(found.parameters, param or [])
    if start is not None:
        data["from"] = start
    if end is not None:
        data["to"] = end
    if keys is not None:
        data["keys"] = read_keys(keys)
    result = estimate_request(data, {found.name: found})
    if json:
        print_json(result.document())
    else:
        _print(result)


def _print(result: Estimate) -> None:
    print(f"{result.job}: {result.partitions:,} partitions in {result.slices:,} slices")
    print(f"from {result.first} to {result.last}")
    if result.first_input is not None:
        print(f"reading from {result.first_input} to {result.last_input}")
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
