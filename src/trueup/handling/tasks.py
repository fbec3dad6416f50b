"""What the machines need to start a task, besides its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.model.jobs import AnyJob
from trueup.model.plan import CodeIdentity

# A task leaves when its minutes are over; what comes on top is its cold start, its last batch and ECS's own
# slowness at both ends.
_MARGIN_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Tasks:
    """How tasks are started here.

    `network` is where ECS puts them; `heartbeat_seconds` how long one that is awaited by its word may be
    silent.
    """

    network: Mapping[str, Any]
    heartbeat_seconds: int = 300

    def input(self, job: AnyJob, code: CodeIdentity) -> dict[str, Any]:
        """Task definition, limits in seconds, and the network, as the machines carry them."""
        return {
            "definition": code.task_definition,
            "wait": job.task.wait,
            "timeoutSeconds": int(job.task.minutes * 60) + _MARGIN_SECONDS,
            "heartbeatSeconds": self.heartbeat_seconds,
            "network": dict(self.network),
        }
