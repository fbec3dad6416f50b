"""AWS: its clients; and tasks (ECS), executions and callbacks (Step Functions) behind the ports of others."""

from __future__ import annotations

from functools import cache, cached_property
from threading import Lock
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trueup.errors import StoreUnavailable

_session = cache(botocore.session.get_session)
# botocore makes clients of one session one after the other, and lets any thread use them.
_making = Lock()


def connect(service: str, *, attempts: int = 6, connections: int = 16, **more: Any) -> Any:
    """A client that finds its service by the standard environment; `more` is botocore's Config.

    It is made when it is first used: each costs a tenth of a second of CPU, and a function that starts cold
    has several that it rarely needs.
    """
    retries = {"mode": "standard", "total_max_attempts": attempts}
    return _Client(service, Config(retries=retries, max_pool_connections=connections, **more))


class _Client:
    def __init__(self, service: str, config: Config) -> None:
        self._service = service
        self._config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    @cached_property
    def _made(self) -> Any:
        with _making:
            return _session().create_client(self._service, config=self._config)


def code_of(error: Exception) -> str:
    """What a service calls an error; empty for one that came from nowhere near it."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def unavailable(service: str, error: ClientError | BotoCoreError) -> StoreUnavailable:
    """The error for a service that did not do what was asked."""
    return StoreUnavailable(
        f"{service} did not do what was asked: {error}.", remedy="Check the role and the network; ask again."
    )
