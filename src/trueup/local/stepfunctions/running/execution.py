"""One execution: its status, its history, and the coroutine that runs it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueup.local.stepfunctions.errors import RUNTIME, TIMEOUT, StateError
from trueup.local.stepfunctions.history import HISTORY_FULL, Event, History, HistoryFull, data, failure
from trueup.local.stepfunctions.model import Machine, Number, Workflow
from trueup.local.stepfunctions.running.visit import Strand
from trueup.local.stepfunctions.running.workflow import run_workflow
from trueup.local.stepfunctions.scope import Variables
from trueup.local.stepfunctions.timestamps import iso_millis
from trueup.local.stepfunctions.values import Document, Json

if TYPE_CHECKING:
    from trueup.local.stepfunctions.activities import Activities
    from trueup.local.stepfunctions.chance import Chance
    from trueup.local.stepfunctions.clock import Clock
    from trueup.local.stepfunctions.inspection import Inspection, Mock
    from trueup.local.stepfunctions.integrations.port import Calls, Integration
    from trueup.local.stepfunctions.machines import Revision
    from trueup.local.stepfunctions.mocking import Mocks
    from trueup.local.stepfunctions.running.map_run import MapRun
    from trueup.local.stepfunctions.tokens import Tokens

log = logging.getLogger(__name__)

RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED = "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"
PENDING_REDRIVE = "PENDING_REDRIVE"
REDRIVABLE = (FAILED, TIMED_OUT, ABORTED)
EXPRESS_SECONDS = 300
"""How long an Express execution may last (aws-facts section 1.1)."""


@dataclass(frozen=True, slots=True)
class Services:
    """What executions need from the engine."""

    clock: Clock
    chance: Chance
    tokens: Tokens
    activities: Activities
    integrations: Integration
    calls: Calls
    region: str
    changed: Callable[[Execution], None]
    """Called when an execution's status has changed."""
    logs: Callable[[Execution], Callable[[Event], None] | None]
    """What hears of an execution's events, if anything does."""
    spawn: Callable[[Coroutine[object, object, None]], None]
    """Runs something that outlives the state that asked for it."""
    adopt: Callable[[Execution], None]
    """Makes an execution known by its ARN."""
    open_map_run: Callable[[MapRun], None]
    """Makes a Map Run known by its ARN."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an execution comes from: its machine, or the Map Run that it is a child of."""

    machine_arn: str
    machine_name: str
    revision: Revision
    """What the machine was when it was started."""
    map_run: MapRun | None = None
    version_arn: str | None = None
    alias_arn: str | None = None
    """By which version and alias it was started, when it was."""
    express: bool = False
    trace_header: str | None = None
    """What whoever started it passed to it."""

    @property
    def role_arn(self) -> str:
        """The role that it runs under."""
        return self.revision.role_arn


class Execution:
    """An execution of a workflow. `start` makes it run; `ended` waits for its end."""

    def __init__(
        self,
        services: Services,
        arn: str,
        workflow: Workflow,
        given: Document,
        origin: Origin,
        mocks: Mocks | Mock | None = None,
        name: str | None = None,
    ) -> None:
        self.services = services
        self.arn = arn
        self.name = arn.rpartition(":")[2] if name is None else name
        self.workflow = workflow
        self.input = given
        self.origin = origin
        self.mocks = mocks
        self.status = RUNNING
        self.output: Document | None = None
        self.error: str | None = None
        self.cause: str | None = None
        self.started_at = services.clock.now()
        self.stopped_at: float | None = None
        self.redrive_count = 0
        self.redriven_at: float | None = None
        self.redrive_tokens: deque[str] = deque(maxlen=10)
        self.history = History(services.clock.now)
        self.waits_for_redrive = False
        """Whether its Map Run has been redriven, and has not come to it yet."""
        self.map_runs: list[MapRun] = []
        self.doomed = False
        """Whether it ends at its next transition: its machine is being deleted."""
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self.inspection: Inspection | None = None
        """What watches, where one state is tested alone."""
        self._strand = Strand(self, self.history)
        self._watchers: list[Callable[[Execution], None]] = []

    @property
    def strand(self) -> Strand:
        """Its own path of control."""
        return self._strand

    # What states ask for.

    @property
    def clock(self) -> Clock:
        """The engine's clock."""
        return self.services.clock

    @property
    def chance(self) -> Chance:
        """The engine's chance."""
        return self.services.chance

    @property
    def tokens(self) -> Tokens:
        """The engine's task tokens."""
        return self.services.tokens

    @property
    def integrations(self) -> Integration:
        """What Task states call."""
        return self.services.integrations

    @property
    def region(self) -> str:
        """The region that events name."""
        return self.services.region

    def spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run something that may outlive this execution, if not the engine."""
        self.services.spawn(_finish(work))

    @property
    def told_status(self) -> str:
        """Its status as the API tells it ([dg:redrive-map-run])."""
        return PENDING_REDRIVE if self.waits_for_redrive else self.status

    @property
    def context(self) -> dict[str, Json]:
        """`$$.Execution`."""
        context = {
            "Id": self.arn,
            "Input": self.input.value,
            "StartTime": iso_millis(self.started_at),
            "Name": self.name,
            "RoleArn": self.origin.role_arn,
            "RedriveCount": self.redrive_count,
        }
        if self.redriven_at is not None:
            context["RedriveTime"] = iso_millis(self.redriven_at)
        return context

    @property
    def machine_context(self) -> dict[str, Json]:
        """`$$.StateMachine`."""
        return {"Id": self.origin.machine_arn, "Name": self.origin.machine_name}

    # Its life.

    def start(self) -> None:
        """Begin."""
        details = {**data("input", self.input), "roleArn": self.origin.role_arn}
        self.history.hear = self.services.logs(self)
        self.history.add("ExecutionStarted", 0, "executionStartedEventDetails", details)
        self._go()

    def resume(self) -> None:
        """Begin again at the state that did not succeed (RedriveExecution)."""
        standing = self._strand.standing
        self.waits_for_redrive = False
        self.status, self.error, self.cause, self.stopped_at = RUNNING, None, None, None
        self.redrive_count += 1
        self.redriven_at = self.clock.now()
        self._ended.clear()
        self.history = self.history.reopened()
        details = {"redriveCount": self.redrive_count}
        event = self.history.add(
            "ExecutionRedriven", self.history.last, "executionRedrivenEventDetails", details
        )
        variables = standing.variables.copy() if standing else Variables()
        self._strand = Strand(self, self.history, event, variables, again=standing)
        self._go()

    def stop(self, error: str | None = None, cause: str | None = None) -> None:
        """End it from outside (StopExecution); without effect once it has ended."""
        self._end(ABORTED, "Aborted", StateError(error, cause))

    def cut_off(self) -> None:
        """Stop running without an end: the engine goes away."""
        self.history.closed = True
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until it has ended."""
        await self._ended.wait()

    def when_ended(self, watcher: Callable[[Execution], None]) -> None:
        """Have something called at its next end."""
        self._watchers.append(watcher)

    def _go(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(self._task))
        limit = self._limit()
        if limit is not None:
            timer = asyncio.get_running_loop().call_at(self.clock.deadline(limit), self._time_out)
            self._task.add_done_callback(lambda _: timer.cancel())
        self.services.changed(self)

    def _limit(self) -> Number | None:
        limits: list[Number] = [EXPRESS_SECONDS] if self.origin.express else []
        if isinstance(self.workflow, Machine) and self.workflow.timeout is not None:
            limits.append(self.workflow.timeout)
        return min(limits, default=None)

    async def _run(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])  # what was cut off has to be gone before it goes on
        workflow = self.workflow
        try:
            output = await run_workflow(self._strand, workflow.states, workflow.start_at, self.input)
        except StateError as error:
            self._end(FAILED, "Failed", error)
        except HistoryFull:
            self._end(FAILED, "Failed", StateError(RUNTIME, HISTORY_FULL))
        except Exception as error:  # an error of the engine must not leave the execution running for ever
            log.exception("execution %s", self.arn)
            self._end(FAILED, "Failed", StateError(RUNTIME, f"Internal error: {error!r}"))
        else:
            self.output = output
            self._end(SUCCEEDED, "Succeeded", None)

    def _time_out(self) -> None:
        self._end(TIMED_OUT, "TimedOut", StateError(TIMEOUT))

    def _end(self, status: str, word: str, error: StateError | None) -> None:
        if self.status != RUNNING:
            return
        self.status, self.stopped_at = status, self.clock.now()
        details: dict[str, Json] = data("output", self.output) if self.output and error is None else {}
        if error is not None:
            details = failure(error.error, error.cause)
            if status != TIMED_OUT:  # which the history alone gives a reason for (floci-io/floci#2733)
                self.error, self.cause = error.error, error.cause
        # An end from outside points to nothing (measured on AWS: floci-io/floci#2965).
        previous = 0 if status in (TIMED_OUT, ABORTED) else self._strand.previous
        self.history.close(f"Execution{word}", previous, f"execution{word}EventDetails", details)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._ended.set()
        self.services.changed(self)
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher(self)


async def _finish(work: Callable[[], Awaitable[None]]) -> None:
    await work()
