"""Should I stop? Asked in one place, answered with a reason in one grammar."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.clock import Clock
from trueup.exits import Exit
from trueup.model.states import RunStatus


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a task ends early, as `signal: observed relation threshold`.

    The same text is in log, checkpoint and report.
    """

    signal: str
    observed: str
    relation: str
    threshold: str
    exit: Exit = Exit.INTERRUPTED

    def __str__(self) -> str:
        return f"{self.signal}: {self.observed} {self.relation} {self.threshold}"


class Stopped(Exception):
    """The task has to leave now, for this reason.

    `parked`: the run's rate or the sink held it back when that came.
    """

    def __init__(self, stop: Stop, *, parked: bool = False) -> None:
        super().__init__(str(stop))
        self.stop = stop
        self.parked = parked

    @property
    def own_doing(self) -> bool:
        """Whether nobody outside asked, so that leaving without progress is a fault."""
        return self.stop.exit is Exit.FAULT or (self.stop.signal == "deadline" and not self.parked)


class Later(Stopped):
    """This partition has to wait; the task goes on with the others."""


@dataclass(slots=True)
class Control:
    """Between the loop and what runs beside it.

    The signal handler and the heart write the first three, the loop the rest.

    `saved`: this task has recorded something. `progressed_at` is the clock's monotonic time.
    """

    signal: str | None = None
    run_status: RunStatus = RunStatus.RUNNING
    lost: str | None = None
    partition: str | None = None
    waiting: str | None = None
    records: int = 0
    reported: int = 0
    work_reported: float = 0.0
    work_left: float = 0.0
    throttled: int = 0
    saved: bool = False
    progressed_at: float = 0.0


class Stopping:
    """The one place that decides whether the task goes on."""

    def __init__(self, control: Control, clock: Clock, minutes: float) -> None:
        self._control = control
        self._clock = clock
        self._seconds = minutes * 60
        self._started = clock.monotonic()
        self.waited = 0.0

    def ask(self) -> Stop | None:
        """The reason to stop, or None. Ownership first: who lost it may not even save."""
        control, elapsed = self._control, self._clock.monotonic() - self._started
        if control.lost:
            return Stop("ownership", control.lost, "!=", "ours")
        if control.signal:
            return Stop("signal", control.signal, "=", "received")
        if control.run_status is not RunStatus.RUNNING:
            return Stop("run", control.run_status.value, "!=", RunStatus.RUNNING.value)
        if elapsed >= self._seconds:
            return Stop("deadline", f"{elapsed:.0f} s", ">=", f"{self._seconds:.0f} s")
        return None

    def wait(self, seconds: float, why: str, *, parked: bool = True) -> None:
        """Wait, visibly, and no longer than there is reason to go on; `waited` sums it up.

        `parked`: somebody holds the task back, so that no progress is not its fault. Raises Stopped.
        """
        self._control.waiting = why
        started = self._clock.monotonic()
        until = started + seconds
        try:
            while (left := until - self._clock.monotonic()) > 0:
                if stop := self.ask():
                    raise Stopped(stop, parked=parked)
                # Who waits for its turn is not stuck: the loop is alive, and the heart may say so.
                self._control.progressed_at = self._clock.monotonic()
                self._clock.sleep(min(left, 0.5))
        finally:
            self._control.waiting = None
            self.waited += self._clock.monotonic() - started
