"""The tables and buckets that the suites run on: in memory, on moto in this process, on a MiniStack."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from trueup.artifacts.s3 import S3Store
from trueup.artifacts.store import MemoryStore, Store
from trueup.ledger.dynamo import DynamoTable
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Table
from trueup.local.aws import client, ministack
from trueup.local.stores import BUCKET, TABLE, create_ledger_table

pytest.register_assert_rewrite("trueup.testing.suites")

KINDS = ["memory", "moto", "ministack"]


class OneAtATime:
    """A client whose calls wait for each other: moto is not atomic under threads."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*args: Any, **options: Any) -> Any:
            with self._lock:
                return method(*args, **options)

        return call if callable(method) else method


@pytest.fixture(scope="session")
def moto_clients() -> Iterator[dict[str, Any]]:
    """DynamoDB and S3 of moto, with the table and the bucket."""
    # Credentials are the clients' own: the environment of other tests stays as it is.
    with mock_aws(config={"core": {"mock_credentials": False}}):
        yield _prepared({name: OneAtATime(client(name, endpoint=None)) for name in ("dynamodb", "s3")})


@pytest.fixture(scope="session")
def ministack_clients() -> Iterator[dict[str, Any]]:
    """DynamoDB and S3 of a MiniStack that runs as long as the session, with the table and the bucket."""
    with ministack(["dynamodb", "s3"]) as endpoint:
        yield _prepared({name: client(name, endpoint) for name in ("dynamodb", "s3")})


def _prepared(clients: dict[str, Any]) -> dict[str, Any]:
    create_ledger_table(clients["dynamodb"])
    clients["s3"].create_bucket(Bucket=BUCKET)
    return clients


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest) -> Table:
    """A table of each kind. Those of a kind share their items, so tests use names of their own."""
    if request.param == "memory":
        return MemoryTable()
    dynamodb = request.getfixturevalue(f"{request.param}_clients")["dynamodb"]
    if request.param == "ministack":
        return DynamoTable(dynamodb, TABLE)
    # moto copies the whole table with every transaction, so each test has a small one.
    name = f"table-{uuid.uuid4().hex}"
    create_ledger_table(dynamodb, name)
    return DynamoTable(dynamodb, name)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Store:
    """A store of each kind. Those of a kind share their objects."""
    if request.param == "memory":
        return MemoryStore()
    clients = request.getfixturevalue(f"{request.param}_clients")
    return S3Store(clients["s3"], BUCKET)
