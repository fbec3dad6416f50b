"""What plans, dispatches and launches the jobs of the catalogue."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import trueup
from trueup.clock import SystemClock
from trueup.handling.tasks import Tasks
from trueup.handling.wiring.parts import artifacts, ledger, metrics
from trueup.jobfile import read_catalogue
from trueup.model.jobs import AnyJob
from trueup.starting import Starter


@cache
def jobs() -> dict[str, AnyJob]:
    """The catalogue. The layer carries it beside the package, wherever the layer is."""
    return read_catalogue((Path(trueup.__file__).parents[1] / "catalogue.json").read_bytes())


def starter() -> Starter:
    """Whoever writes plans and dispatches."""
    return Starter(ledger(), artifacts(), SystemClock(), random.SystemRandom(), metrics())


def tasks() -> Tasks:
    """How tasks are launched: their network, and their heartbeat in seconds."""
    vpc = {
        "Subnets": os.environ["TRUEUP_SUBNETS"].split(","),
        "SecurityGroups": os.environ["TRUEUP_SECURITY_GROUPS"].split(","),
        "AssignPublicIp": os.environ["TRUEUP_PUBLIC_IP"],
    }
    return Tasks({"AwsvpcConfiguration": vpc}, int(os.environ["TRUEUP_HEARTBEAT_SECONDS"]))
