"""Stores and a warm process for each pytest worker; a table of its own for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import date
from typing import Any

import pytest
from botocore.config import Config

from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable
from trueup.local.aws import REGION, client, ministack
from trueup.local.flights import days
from trueup.local.postgres import postgres
from trueup.local.stores import BUCKET, TABLE, create_ledger_table, put_days
from trueup.local.targets import make_rows_table

from .driving import Stack
from .targets import create_target, create_witness
from .warm import Warm

# The quietest days of the year and their neighbours; the change to summer time.
DAYS = {date(2013, 11, day) for day in range(27, 31)} | {date(2013, 3, day) for day in range(9, 12)}

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def session_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """MiniStack, PostgreSQL and the warm process, with some days of flights in S3."""
    some = {day: data for day, data in days() if day in DAYS}
    with ExitStack() as ups:
        endpoint, dsn = ups.enter_context(ministack(["dynamodb", "s3"])), ups.enter_context(postgres())
        # Closed before MiniStack is asked to end, which waits a while for open connections.
        dynamodb, s3 = (ups.enter_context(closing(_client(name, endpoint))) for name in ("dynamodb", "s3"))
        create_ledger_table(dynamodb)
        s3.create_bucket(Bucket=BUCKET)
        put_days(s3, BUCKET, some.items())
        make_rows_table(dsn)
        create_witness(dsn)
        ledger, artifacts = Ledger(DynamoTable(dynamodb, TABLE)), Artifacts(S3Store(s3, BUCKET))
        given = environment(endpoint)
        warm = ups.enter_context(Warm(given, tmp_path_factory.mktemp("warm") / "log"))
        yield Stack(ledger, artifacts, dynamodb, s3, dsn, given, warm, some)


def _client(service: str, endpoint: str) -> Any:
    """Without botocore's own checks, which take a part of each call's time."""
    return client(service, endpoint, config=Config(parameter_validation=False))


def environment(endpoint: str) -> dict[str, str]:
    """What a task gets; nothing of the tester's own AWS."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


@pytest.fixture
def stack(session_stack: Stack) -> Iterator[Stack]:
    """The stack; no task outlives the test."""
    yield session_stack
    session_stack.warm.end_tasks()


@pytest.fixture
def target(stack: Stack) -> Callable[[str], str]:
    """Makes an empty table for a job, and gives its name."""

    def make(job: str) -> str:
        name = f"kills_{next(_numbers)}"
        create_target(stack, job, name)
        return name

    return make
