"""One backfill by worker processes on this machine, killed at random on the way."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from trueup.accepting import Acceptance, Answer, Launch
from trueup.artifacts import Artifacts
from trueup.clock import SystemClock
from trueup.errors import StoreUnavailable, TrueupError
from trueup.ledger import Ledger
from trueup.local.fleet import Fleet
from trueup.model.base import sha256
from trueup.model.job import JobFile
from trueup.model.ledger import Counts, Run
from trueup.model.plan import CodeIdentity, Slice
from trueup.model.request import Request
from trueup.model.states import Phase
from trueup.settling import Settlement
from trueup.starting import Code, Starter

WORKERS = 4


@dataclass(frozen=True, slots=True)
class Kills:
    """How often tasks at work are killed: one after each pause of these seconds, up to so many in a run."""

    shortest: float = 1.0
    longest: float = 3.0
    most: int = 12


@dataclass(slots=True)
class Backfilled:
    """What became of a run."""

    run: Run
    counts: Counts
    launches: int = 0
    kills: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Backfilling:
    """Runs jobs with worker processes. `note` hears what happens, in a line each."""

    ledger: Ledger
    artifacts: Artifacts
    fleet: Fleet
    rng: random.Random
    kills: Kills = field(default_factory=Kills)
    note: Callable[[str], None] = print

    def run(self, job: JobFile, folder: Path, request: Request, secrets: Mapping[str, str]) -> Backfilled:
        """Start a run and bring it to its end.

        Raises RequestError, LockHeld; TrueupError where a slice did not make it.
        """
        started = time.monotonic()
        code = local_code(job, folder)
        starter = Starter(self.ledger, self.artifacts, SystemClock(), self.rng)
        run, plan = starter.start(job, request, Code(code, code))
        run = starter.lock(run)
        slices = starter.dispatch(run, Phase.APPLY, 1, 0).slices
        self.note(f"{run.run_id}: {plan.partition_count} partitions in {len(slices)} slices")
        work = _Work(self, run, code, folder, secrets, list(slices))
        with _Killer(self, run.run_id) as killer:
            work.until_done()
        acceptance = Acceptance(self.ledger, self.artifacts, self.fleet, SystemClock())
        Settlement(self.ledger, self.artifacts, acceptance).settle(run.run_id, Phase.APPLY)
        return Backfilled(
            run=self.ledger.runs.get(run.run_id),
            counts=self.ledger.verdicts.counts(run.run_id),
            launches=work.launches,
            kills=killer.killed,
            seconds=time.monotonic() - started,
        )


class _Killer:
    """Kills tasks that have registered, and so are at work, until the block is left."""

    def __init__(self, parent: Backfilling, run_id: str) -> None:
        self._parent = parent
        self._run_id = run_id
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)
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
        # Where the ledger is gone, the fan-out says so; one message is enough.
        with suppress(StoreUnavailable):
            self._kill_until_over()

    def _kill_until_over(self) -> None:
        kills, rng = self._parent.kills, self._parent.rng
        while self.killed < kills.most and not self._over.wait(rng.uniform(kills.shortest, kills.longest)):
            at_work = [task.task for task in self._parent.ledger.tasks.of(self._run_id)]
            if at_work and self._parent.fleet.kill(rng.choice(at_work)):
                self.killed += 1


class _Work:
    """The fan-out of one run: a few tasks at a time, launched again until nothing is left."""

    def __init__(
        self,
        parent: Backfilling,
        run: Run,
        code: CodeIdentity,
        folder: Path,
        secrets: Mapping[str, str],
        slices: list[Slice],
    ) -> None:
        self._parent = parent
        self._run = run
        self._code = code
        self._folder = folder
        self._secrets = secrets
        self._waiting = slices
        self._alive: dict[str, Launch] = {}
        self._acceptance = Acceptance(parent.ledger, parent.artifacts, parent.fleet, SystemClock())
        self.launches = 0

    def until_done(self) -> None:
        """Launch, wait, accept, launch again."""
        while self._waiting or self._alive:
            while self._waiting and len(self._alive) < WORKERS:
                self._launch(self._waiting.pop(0))
            self._accept_next()

    def _launch(self, slice_: Slice) -> None:
        run, parent = self._run, self._parent
        number = parent.ledger.runs.next_launch(run.run_id, run.generation)
        launch = Launch(run.run_id, run.generation, Phase.APPLY, slice_, number)
        arn = parent.fleet.start(launch.order(run), self._code, self._folder, self._secrets)
        self._alive[arn] = launch
        self.launches += 1

    def _accept_next(self) -> None:
        exited = self._parent.fleet.next_exit()
        launch = self._alive.pop(exited.arn)
        answer = self._acceptance.accept(launch, exited.ended)
        if exited.ended.stop_code == "SpotInterruption":
            self._parent.note(f"  launch {launch.launch} was killed; slice {launch.slice.slice_id}: {answer}")
        if answer is Answer.AGAIN:
            self._waiting.append(launch.slice)
        elif answer is not Answer.DONE:
            raise TrueupError(
                f"Slice {launch.slice.slice_id} of {self._run.run_id} ended {answer}: {exited.ended}.",
                remedy="The ledger's items and the tasks' logs say why.",
            )


def local_code(job: JobFile, folder: Path) -> CodeIdentity:
    """The identity of code that lies in a folder: the digest of its files stands for the image's."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    digest = sha256(b"\0".join(part for path in files for part in (path.name.encode(), path.read_bytes())))
    arn = f"arn:aws:ecs:us-east-1:000000000000:task-definition/trueup-{job.name}-write:1"
    return CodeIdentity(task_definition=arn, image_digest=f"sha256:{digest}")
