"""Tasks of a run that die at random: SIGKILL without a word, as when their host fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from trueup.errors import StoreUnavailable
from trueup.ledger import Ledger
from trueup.local.ecs import Ecs
from trueup.model.ledger import TaskItem


@dataclass(frozen=True, slots=True)
class Kills:
    """How often tasks at work are killed: one after each pause of these seconds, up to so many in a run."""

    shortest: float = 1.0
    longest: float = 3.0
    most: int = 12


class Killer:
    """Kills tasks that have registered, and so are at work, until the block is left. `note` hears of each."""

    def __init__(
        self,
        ecs: Ecs,
        ledger: Ledger,
        run_id: str,
        kills: Kills,
        rng: random.Random,
        note: Callable[[str], None],
    ) -> None:
        self._ecs = ecs
        self._ledger = ledger
        self._run_id = run_id
        self._kills = kills
        self._rng = rng
        self._note = note
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"killer of {run_id}", daemon=True)
        self.killed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        # Where the ledger is gone, who waits for the run says so; one message is enough.
        with suppress(StoreUnavailable):
            self._kill_until_over()

    def _kill_until_over(self) -> None:
        kills, rng = self._kills, self._rng
        while self.killed < kills.most and not self._over.wait(rng.uniform(kills.shortest, kills.longest)):
            at_work = list(self._ledger.tasks.of(self._run_id))
            rng.shuffle(at_work)
            # The dead are on the list until they are proved stopped.
            if any(self._kill(task) for task in at_work):
                self.killed += 1

    def _kill(self, task: TaskItem) -> bool:
        killed = self._ecs.harm(task.task, "crash")
        if killed:
            self._note(f"  killed launch {task.launch} of {self._run_id}, slice {task.slice_id}")
        return killed
