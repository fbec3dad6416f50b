"""The rest of AWS: tasks (ECS), executions and callbacks (Step Functions), behind the ports of others."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trueup.errors import StoreUnavailable


def connect(service: str) -> Any:
    """A client that finds its service by the standard environment, with retries."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 6}, max_pool_connections=16)
    return botocore.session.get_session().create_client(service, config=config)


def code_of(error: Exception) -> str:
    """What a service calls an error; empty for one that came from nowhere near it."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def unavailable(service: str, error: ClientError | BotoCoreError) -> StoreUnavailable:
    """The error for a service that did not do what was asked."""
    return StoreUnavailable(
        f"{service} did not do what was asked: {error}.", remedy="Check the role and the network; ask again."
    )
