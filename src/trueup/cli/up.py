"""`trueup up`: the local stack, until Ctrl-C."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli.output import Json, print_json, say
from trueup.cli.signals import leave_on_sigterm
from trueup.errors import UsageError

if TYPE_CHECKING:
    from trueup.local.parts import Parts
    from trueup.local.stack import Stack

_BETWEEN_LOOKS = 2.0
"""Seconds."""

EXAMPLE = "trueup up --flights"

TimeScale = Annotated[
    float,
    typer.Option(
        metavar="FACTOR", envvar="WAIT_TIME_SCALE", help="For waits and retries of machines, not for limits."
    ),
]


def command(
    as_json: Json = False,
    aws: Annotated[
        str | None, typer.Option(metavar="URL", help="An emulator of your own in place of MiniStack.")
    ] = None,
    containers: Annotated[
        bool,
        typer.Option(help="Run tasks as containers of the engine that DOCKER_HOST names, not as processes."),
    ] = False,
    faults: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What shall go wrong: see docs/faults.md.")
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FOLDER", help="A folder in which tasks of this image run; repeatable."),
    ] = None,
    mocks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", envvar="SFN_MOCK_CONFIG", help="Answers for machines, by test case."),
    ] = None,
    time_scale: TimeScale = 1.0,
    flights: Annotated[bool, typer.Option(help="Put the year of flights of the demo into S3.")] = False,
    jobs: Annotated[
        Path,
        typer.Option(exists=True, file_okay=False, help="A folder with containers/*/job.yaml of your own."),
    ] = Path(),
) -> None:
    """Start the local stack, say where it is, and keep it up until Ctrl-C.

    Deploys template.yaml to MiniStack, with PostgreSQL, ECS and Step Functions beside it. Standard output are
    lines for a shell; what happens is told on standard error. Everything goes with the command, and the
    command with any of it. Jobs of the current folder are deployed too.
    """
    from trueup.local.faults import FaultPlan, read_plan
    from trueup.local.flights import days
    from trueup.local.stack import Options, stack
    from trueup.local.stores import put_days
    from trueup.local.targets import FLIGHTS_BUCKET

    leave_on_sigterm()
    plan = read_plan(faults) if faults else FaultPlan()
    deployed = job_files(jobs)
    options = Options(
        aws=aws,
        containers=containers,
        images=images(image or [], containers=containers),
        mocks=readable(mocks),
        scale=positive(time_scale),
        faults=plan,
        jobs=jobs,
    )
    with stack(options, note=partial(say, aside=True)) as up:
        if flights:
            say(f"{put_days(up.client('s3'), FLIGHTS_BUCKET, days())} days of flights are in S3.", aside=True)
        _tell_where(up, as_json=as_json)
        with suppress(KeyboardInterrupt):
            stay(up.parts, jobs, deployed)


def _tell_where(up: Stack, *, as_json: bool) -> None:
    """On standard output, at once: whoever started the command may read from a pipe."""
    if as_json:
        print_json(_told(up))
    else:
        print("\n".join(_lines(_told(up))))
    sys.stdout.flush()
    say("The stack is up. Ctrl-C ends it.", aside=True)


def stay(parts: Parts, jobs: Path, deployed: Mapping[Path, bytes]) -> None:
    """Until one of the servers ends, or Ctrl-C; job files that are changed meanwhile are told, once each.

    Raises LocalStackError where a server ended.
    """
    while True:
        parts.wait(_BETWEEN_LOOKS)
        now = job_files(jobs)
        for file in sorted(now.keys() | deployed.keys()):
            if now.get(file) != deployed.get(file):
                say(f"{file} was changed; the stack has it as it was. Start `up` again for it.", aside=True)
        deployed = now


def images(given: list[str], *, containers: bool) -> dict[str, Path]:
    """The folders of images that were named on the command line. Raises UsageError."""
    if given and containers:
        raise UsageError(
            "--image is for tasks that are processes.",
            remedy="With --containers build or pull the image with your engine, and leave --image out.",
        )
    found = {}
    for text in given:
        name, _, folder = text.partition("=")
        if not name or not folder or not Path(folder).is_dir():
            raise UsageError(
                f"--image takes NAME=FOLDER with a folder that is there, not {text!r}.",
                remedy="Give one like --image my-image=containers/my-image.",
            )
        found[name] = Path(folder)
    return found


def readable(mocks: Path | None) -> Path | None:
    """A mock configuration that can be read. Raises UsageError where it cannot."""
    from trueup.local.stepfunctions.mocking import MockConfiguration, MockError

    try:
        if mocks:
            MockConfiguration.read(mocks)
    except MockError as error:
        raise UsageError(
            f"{str(error)[0].upper()}{str(error)[1:]}.",
            remedy="Correct the file that --mocks, or SFN_MOCK_CONFIG, names.",
        ) from error
    return mocks


def positive(scale: float) -> float:
    """A factor for time. Raises UsageError where it is none."""
    if 0 < scale < math.inf:
        return scale
    raise UsageError(
        f"--time-scale takes a number above 0 (also in WAIT_TIME_SCALE), not {scale}.",
        remedy="Give one like 0.1, by which a wait of ten seconds takes one.",
    )


def job_files(folder: Path) -> dict[Path, bytes]:
    """Job files and what they say; without those that cannot be read, of which the deployment tells."""
    found = {}
    for file in folder.glob("containers/*/job.yaml"):
        with suppress(OSError):
            found[file] = file.read_bytes()
    return found


def _told(up: Stack) -> dict[str, Any]:
    resources = up.deployed.of_type
    return {
        "environment": {
            **up.environment(),
            "TRUEUP_API": up.api,
            "TRUEUP_TABLE": up.table,
            "TRUEUP_BUCKET": up.bucket,
            "FLIGHTS_POSTGRES_DSN": up.dsn,
            "TRUEUP_FAULTS": up.faults.address,
        },
        "functions": sorted(resources("AWS::Lambda::Function")),
        "machines": sorted(resources("AWS::StepFunctions::StateMachine")),
        "taskDefinitions": sorted(resources("AWS::ECS::TaskDefinition")),
    }


def _lines(told: dict[str, Any]) -> list[str]:
    exports = [f"export {name}={shlex.quote(value)}" for name, value in told["environment"].items()]
    names = [f"# {kind}: {' '.join(told[kind])}" for kind in ("functions", "machines", "taskDefinitions")]
    return exports + names
