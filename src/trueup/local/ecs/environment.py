"""What a task's process finds in its environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.images import Image
from trueup.local.ecs.names import Place
from trueup.local.ecs.tasks import Task

Secrets = Callable[[str], str]
"""Gives the value behind a `valueFrom`. Raises LookupError where there is none."""


def no_secrets(reference: str) -> str:
    """A stack without secrets."""
    raise LookupError(f"there is no {reference}")


async def compose(
    task: Task, image: Image, stack: Mapping[str, str], secrets: Secrets, address: str, place: Place
) -> dict[str, str]:
    """The whole environment. What stands nearer to the task wins; nobody replaces what ECS itself sets.

    Raises CannotStart where a secret cannot be had.
    """
    container = task.container
    return {
        **image.environment,
        **stack,
        **_pairs(container.definition),
        **await _secret_values(container.definition.get("secrets") or [], secrets),
        **_pairs(container.override),
        "AWS_EXECUTION_ENV": "AWS_ECS_FARGATE",
        "AWS_REGION": place.region,
        "AWS_DEFAULT_REGION": place.region,
        "ECS_AGENT_URI": f"{address}/api/{container.runtime_id}",
        "ECS_CONTAINER_METADATA_URI_V4": f"{address}/v4/{container.runtime_id}",
    }


def _pairs(given: Mapping[str, Any]) -> dict[str, str]:
    return {pair["name"]: pair.get("value", "") for pair in given.get("environment") or []}


async def _secret_values(wanted: list[Mapping[str, str]], secrets: Secrets) -> dict[str, str]:
    values = {}
    for secret in wanted:
        try:
            # In a thread: who resolves it may have to call another server.
            values[secret["name"]] = await asyncio.to_thread(secrets, secret["valueFrom"])
        except LookupError as error:
            raise CannotStart(
                "ResourceInitializationError: unable to pull secrets or registry auth: unable to retrieve "
                f"secret {secret['valueFrom']}: {error}"
            ) from error
    return values
