"""The real things behind the handlers, made once a process from the environment that template.yaml sets."""

from __future__ import annotations

import os
import random
from functools import cache, partial
from pathlib import Path

import trueup
from trueup.accepting import Acceptance
from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store, connect_s3, list_sizes
from trueup.artifacts.store import place
from trueup.aws import connect
from trueup.aws.ecs import Ecs
from trueup.aws.executions import StateMachine
from trueup.aws.logs import TaskLogs
from trueup.aws.people import TaskTokens, Topic
from trueup.clock import SystemClock
from trueup.gating import Gating
from trueup.handling.accept import Accepting
from trueup.handling.api import Api, Services
from trueup.handling.ask import Asking
from trueup.handling.close import Closing
from trueup.handling.plan import Planning
from trueup.handling.settle import Settling
from trueup.handling.start import Starting
from trueup.handling.sweep import Sweeping
from trueup.handling.tasks import Tasks
from trueup.jobfile import read_catalogue
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable, connect_dynamodb
from trueup.model.jobs import AnyJob
from trueup.naming import Naming
from trueup.reporting import Reports
from trueup.reporting.comparison import Comparisons
from trueup.settling import Settlement
from trueup.starting import Starter
from trueup.watching import GateViews, Lists, Watch


@cache
def starting() -> Starting:
    """For `start`."""
    return Starting(_ledger(), _starter(), _executions(), _jobs())


@cache
def planning() -> Planning:
    """For `plan`."""
    listing = partial(list_sizes, connect_s3())
    naming = Naming(_ledger(), _artifacts())
    stack = os.environ["TRUEUP_STACK"]
    return Planning(_ledger(), _starter(), naming, _ecs(), _jobs(), stack, listing, _tasks())


@cache
def accepting() -> Accepting:
    """For `accept`."""
    return Accepting(_ledger(), _artifacts(), _acceptance(), _ecs())


@cache
def settling() -> Settling:
    """For `settle`."""
    gating = _gating()
    return Settling(_ledger(), _artifacts(), _settlement(), _starter(), _tasks(), gating, _arrived)


@cache
def asking() -> Asking:
    """For `ask`."""
    return Asking(_ledger(), _waiting(), Topic(connect("sns"), os.environ["TRUEUP_TOPIC"]))


@cache
def closing() -> Closing:
    """For `close`."""
    return Closing(_ledger(), _settlement(), _executions())


@cache
def sweeping() -> Sweeping:
    """For `sweep`."""
    return Sweeping(_ledger(), _settlement(), _executions(), closing(), _gating())


@cache
def api() -> Api:
    """For `api`."""
    watch = Watch(_ledger(), _artifacts(), SystemClock())
    lists = Lists(_ledger(), _artifacts())
    gates = GateViews(_ledger(), _artifacts())
    services = Services(_ledger(), watch, lists, _reports(), _logs(), starting(), gates, _gating(), _jobs())
    return Api(services)


@cache
def _ledger() -> Ledger:
    return Ledger(DynamoTable(connect_dynamodb(), os.environ["TRUEUP_TABLE"]), SystemClock())


@cache
def _artifacts() -> Artifacts:
    return Artifacts(S3Store(connect_s3(), os.environ["TRUEUP_BUCKET"]))


@cache
def _ecs() -> Ecs:
    return Ecs(connect("ecs"), os.environ.get("TRUEUP_CLUSTER", "default"), os.environ["TRUEUP_STACK"])


@cache
def _executions() -> dict[str, StateMachine]:
    machines = {"backfill": os.environ["TRUEUP_BACKFILL"], "reconcile": os.environ["TRUEUP_RECONCILE"]}
    return {kind: StateMachine(connect("stepfunctions"), arn) for kind, arn in machines.items()}


def _logs() -> TaskLogs:
    return TaskLogs(connect("logs"), os.environ["TRUEUP_TASK_LOG"])


@cache
def _jobs() -> dict[str, AnyJob]:
    # The layer carries it beside the package, wherever the layer is.
    return read_catalogue((Path(trueup.__file__).parents[1] / "catalogue.json").read_bytes())


def _arrived(location: str) -> bool:
    key = place(location)[1]
    return any(found == key for found, _ in list_sizes(connect_s3(), location))


def _starter() -> Starter:
    return Starter(_ledger(), _artifacts(), SystemClock(), random.SystemRandom())


def _acceptance() -> Acceptance:
    return Acceptance(_ledger(), _artifacts(), _ecs(), SystemClock())


def _settlement() -> Settlement:
    made = _comparisons()
    return Settlement(_ledger(), _artifacts(), _acceptance(), _reports().of, made.verdict, made.is_through)


def _gating() -> Gating:
    return Gating(_ledger(), _artifacts(), SystemClock(), _waiting())


@cache
def _waiting() -> TaskTokens:
    return TaskTokens(connect("stepfunctions"))


def _reports() -> Reports:
    return Reports(_ledger(), _artifacts())


def _comparisons() -> Comparisons:
    return Comparisons(_ledger(), _artifacts())


def _tasks() -> Tasks:
    vpc = {
        "Subnets": os.environ["TRUEUP_SUBNETS"].split(","),
        "SecurityGroups": os.environ["TRUEUP_SECURITY_GROUPS"].split(","),
        "AssignPublicIp": os.environ["TRUEUP_PUBLIC_IP"],
    }
    return Tasks({"AwsvpcConfiguration": vpc}, int(os.environ["TRUEUP_HEARTBEAT_SECONDS"]))
