"""What the machines need to start a task, besides its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.model.job import JobFile
from trueup.model.plan import CodeIdentity

# A task leaves when its minutes are over; what comes on top is its cold start, its last batch and ECS's own
# slowness at both ends.
_MARGIN_SECONDS = 900
_HEARTBEAT_SECONDS = 300


def task_input(job: JobFile, code: CodeIdentity, network: Mapping[str, Any]) -> dict[str, Any]:
    """Task definition, limits in seconds, and the network that ECS puts the task in."""
    return {
        "definition": code.task_definition,
        "wait": job.task.wait,
        "timeoutSeconds": int(job.task.minutes * 60) + _MARGIN_SECONDS,
        "heartbeatSeconds": _HEARTBEAT_SECONDS,
        "network": dict(network),
    }
