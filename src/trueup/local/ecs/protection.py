"""Protection from scaling in: a task that works says so, and its service passes it over.

Sources: developer guide, "Protect your Amazon ECS tasks from being terminated by scale-in events"; API
reference, GetTaskProtection and UpdateTaskProtection; the reasons are those of "Amazon ECS API failure
reasons". A task that a person stops is stopped, protected or not.
"""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.errors import invalid
from trueup.local.ecs.tasks import Task

DEFAULT_MINUTES = 120
MIN_MINUTES, MAX_MINUTES = 1, 2880
MINUTE = 60.0

MISSING = "MISSING"
NOT_VALID = "TASK_NOT_VALID"
BLOCKED = "DEPLOYMENT_BLOCKED"

Document = dict[str, Any]


def minutes_of(given: object) -> int:
    """For how long a task shall be protected. Raises ApiError where AWS sets a limit."""
    if given is None:
        return DEFAULT_MINUTES
    if not isinstance(given, int) or isinstance(given, bool) or not MIN_MINUTES <= given <= MAX_MINUTES:
        raise invalid(f"expiresInMinutes must be between {MIN_MINUTES} and {MAX_MINUTES}")
    return given


def unfit(task: Task | None) -> str | None:
    """Why a task has no protection to speak of: nobody knows it, or it is no service's. None where it may."""
    if task is None:
        return MISSING
    return None if task.service and task.lives else NOT_VALID


def blocked(task: Task, siblings: list[Task], desired: int, now: float) -> bool:
    """Whether protecting it would leave its service with more protected tasks than it shall have."""
    others = sum(other.protected(now) for other in siblings if other is not task and other.lives)
    return others + 1 > desired


def told(task: Task, now: float) -> Document:
    """A task's protection as the API tells it."""
    if not task.protected(now):
        return {"taskArn": task.arn, "protectionEnabled": False}
    return {"taskArn": task.arn, "protectionEnabled": True, "expirationDate": task.protected_until}
