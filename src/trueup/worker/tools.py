"""What the loop works with. All of it is handed in, so that tests decide time, stores and chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trueup.artifacts import Artifacts
from trueup.clock import Clock, SystemClock
from trueup.errors import UsageError
from trueup.jobs import environment_secret
from trueup.ledger import Ledger
from trueup.metrics import Metrics, NoMetrics
from trueup.model.plan import CodeIdentity
from trueup.worker.callback import Callback, NoCallback
from trueup.worker.stopping import Control

CHECKPOINT_SECONDS = 3.0
BEAT_SECONDS = 10.0
# Step Functions takes 500 such words a second in all; a state waits for one for ten times as long.
CALLBACK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this task is, as its platform says: its ARN, and the code that it was started with."""

    task: str
    code: CodeIdentity

    def expect(self, planned: CodeIdentity) -> None:
        """Raises UsageError where this task runs other code than was planned."""
        if planned != self.code:
            raise UsageError(
                f"This task runs {self.code.task_definition} ({self.code.image_digest}); "
                f"the plan names {planned.task_definition} ({planned.image_digest}).",
                remedy="Start the revision that was planned, or move the run to new code.",
            )


Opener = Callable[..., Any]
"""From what a job file says of a source to the source: `trueup.sources.opening.open_source`, or a test's."""


@dataclass(slots=True)
class Tools:
    """Stores, clock, chance and settings of one task. `checkpoint_seconds` 0 means one checkpoint a batch.

    `sources` opens the sources of a reconciliation; None: by what the job file says.
    """

    ledger: Ledger
    artifacts: Artifacts
    identity: Identity
    clock: Clock = field(default_factory=SystemClock)
    control: Control = field(default_factory=Control)
    metrics: Metrics = field(default_factory=NoMetrics)
    rng: random.Random = field(default_factory=random.Random)
    secret: Callable[[str], str] = environment_secret
    callback: Callback = field(default_factory=NoCallback)
    sources: Opener | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    beat_seconds: float = BEAT_SECONDS
    callback_seconds: float = CALLBACK_SECONDS
