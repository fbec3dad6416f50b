"""What several functions are made of."""

from __future__ import annotations

import os
from functools import cache

from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store, connect_s3
from trueup.aws import connect
from trueup.aws.ecs import Ecs
from trueup.aws.executions import StateMachine
from trueup.clock import SystemClock
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable, connect_dynamodb
from trueup.metrics import EmbeddedMetrics


@cache
def ledger() -> Ledger:
    """The ledger in the stack's table."""
    return Ledger(DynamoTable(connect_dynamodb(), os.environ["TRUEUP_TABLE"]), SystemClock())


def metrics() -> EmbeddedMetrics:
    """What functions measure, on the standard output that CloudWatch reads."""
    return EmbeddedMetrics({}, SystemClock())


@cache
def artifacts() -> Artifacts:
    """What runs keep in the stack's bucket."""
    return Artifacts(S3Store(connect_s3(), os.environ["TRUEUP_BUCKET"]))


@cache
def ecs() -> Ecs:
    """The cluster that the stack's tasks run in."""
    return Ecs(connect("ecs"), os.environ.get("TRUEUP_CLUSTER", "default"), os.environ["TRUEUP_STACK"])


@cache
def executions() -> dict[str, StateMachine]:
    """The machine of each kind of job."""
    machines = {"backfill": os.environ["TRUEUP_BACKFILL"], "reconcile": os.environ["TRUEUP_RECONCILE"]}
    return {kind: StateMachine(connect("stepfunctions"), arn) for kind, arn in machines.items()}
