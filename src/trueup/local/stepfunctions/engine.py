"""The engine: machines, executions, Map Runs and tokens of one account and region, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace

from trueup.local.stepfunctions import running
from trueup.local.stepfunctions.activities import Activities
from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.inspection import Mock
from trueup.local.stepfunctions.integrations.dispatch import Dispatch
from trueup.local.stepfunctions.integrations.port import Calls
from trueup.local.stepfunctions.log_groups import LogSink
from trueup.local.stepfunctions.machines import Machines, Revision
from trueup.local.stepfunctions.mocking import MockConfiguration, Mocks
from trueup.local.stepfunctions.model import Machine
from trueup.local.stepfunctions.names import check_name
from trueup.local.stepfunctions.redriving import check_redrivable
from trueup.local.stepfunctions.running.execution import RUNNING, Execution, Origin, Services
from trueup.local.stepfunctions.running.map_run import MapRun
from trueup.local.stepfunctions.status_events import Sink, status_event
from trueup.local.stepfunctions.tokens import Tokens
from trueup.local.stepfunctions.values import Document, from_text, too_large
from trueup.local.stepfunctions.versions import Target, Versions, split

DEFAULT_ACCOUNT = "000000000000"
DEFAULT_REGION = "us-east-1"

__all__ = ["Engine", "Settings", "running"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine is made of besides the services that it calls."""

    region: str = DEFAULT_REGION
    account: str = DEFAULT_ACCOUNT
    clock: Clock = field(default_factory=Clock)
    chance: Chance = field(default_factory=Chance)
    mocks: MockConfiguration | None = None
    sink: Sink | None = None
    """Takes status changes; None drops them."""


class Engine:
    """Runs executions. Everything is called on its event loop."""

    def __init__(self, calls: Calls, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        region, account = self.settings.region, self.settings.account
        self.clock, self.chance = self.settings.clock, self.settings.chance
        self.tokens = Tokens(self.chance)
        self.machines = Machines(self.clock, self.chance, region, account)
        self.versions = Versions(self.machines, self.clock, self.chance)
        self.activities = Activities(self.clock, region, account)
        self.executions: dict[str, Execution] = {}
        self.map_runs: dict[str, MapRun] = {}
        self._by_machine: dict[str, dict[str, Execution]] = {}
        self._express: set[Execution] = set()
        """Express executions that run: nobody can look at them, and nothing of them is kept."""
        self._loose: set[asyncio.Task[None]] = set()
        self._closing = False
        self.log_groups = LogSink(calls)
        self._services = Services(
            clock=self.clock,
            chance=self.chance,
            tokens=self.tokens,
            activities=self.activities,
            integrations=Dispatch(calls, self),
            calls=calls,
            region=region,
            changed=self._changed,
            logs=self.log_groups.listener,
            spawn=self._spawn,
            adopt=self._adopt,
            open_map_run=self._open_map_run,
        )

    # What the API asks for.

    def start_execution(
        self, machine_arn: str, name: str | None, given: str | None, trace: str | None = None
    ) -> Execution:
        """Start an execution of a machine, a version or an alias, or of a mock case of it (`<arn>#<case>`).

        Asked again with the same name and input while it runs, it gives the same execution; otherwise a name
        is taken for good, but for Express executions, of which each is a new one (aws-facts section 1.9).
        Raises ApiError.
        """
        arn, _, case = machine_arn.partition("#")
        target = replace(self.versions.resolve(arn), trace_header=trace)
        self.machines.find_alive(target.machine.arn)
        mocks = self._mocks(target, case) if case else None
        text = "{}" if given is None else given
        document = read_input(text)
        name = check_name(name) if name is not None else self.chance.uuid()
        if target.machine.express:
            return self._begin_express(target, name, document, mocks)
        execution_arn = f"{target.machine.arn.replace(':stateMachine:', ':execution:', 1)}:{name}"
        existing = self.executions.get(execution_arn)
        if existing is not None:
            if existing.status == RUNNING and existing.input.text == text:
                return existing
            raise ApiError("ExecutionAlreadyExists", f"Execution Already Exists: '{execution_arn}'")
        return self._begin(target, execution_arn, document, mocks)

    def delete_machine(self, arn: str) -> None:
        """Delete a machine as soon as its executions have ended, which they do at their next transition
        [botocore]. One that is not there is deleted already.
        """
        running = [one for one in self._executions_of(arn) if one.status == RUNNING]
        if not running:
            self.machines.delete(arn)
            return
        self.machines.find(arn).deleting = True
        left = set(running)

        def ended(execution: Execution) -> None:
            left.discard(execution)
            if not left:
                self.machines.delete(arn)

        for execution in running:
            execution.doomed = True
            execution.when_ended(ended)

    def _executions_of(self, arn: str) -> list[Execution]:
        express = [one for one in self._express if one.origin.machine_arn == arn]
        return [*self._by_machine.get(arn, {}).values(), *express]

    def find_execution(self, arn: str) -> Execution:
        """An execution. Raises ApiError (ExecutionDoesNotExist)."""
        found = self.executions.get(arn)
        if found is None:
            raise ApiError("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        return found

    def executions_of(self, machine_arn: str) -> list[Execution]:
        """The executions of a machine, or of one version or alias of it, newest first.

        Children of its Map Runs are not among them.
        """
        arn, qualifier = split(machine_arn)
        found = reversed(self._by_machine.get(arn, {}).values())
        return [
            execution
            for execution in found
            if qualifier is None or machine_arn in (execution.origin.version_arn, execution.origin.alias_arn)
        ]

    def find_map_run(self, arn: str) -> MapRun:
        """A Map Run. Raises ApiError (ResourceNotFound)."""
        found = self.map_runs.get(arn)
        if found is None:
            raise ApiError("ResourceNotFound", f"Resource not found: '{arn}'")
        return found

    def redrive(self, arn: str, token: str | None = None) -> Execution:
        """Go on with an execution at the state that did not succeed. Raises ApiError.

        Children are redriven by redriving their parent, and a request that comes again with one of the
        last ten client tokens has no effect (aws-facts section 1.4).
        """
        execution = self.find_execution(arn)
        if token is not None and token in execution.redrive_tokens:
            return execution
        check_redrivable(execution)
        if token is not None:
            execution.redrive_tokens.append(token)
        execution.resume()
        return execution

    def rehearse(self, machine: Machine, given: Document, role_arn: str, mock: Mock | None) -> Execution:
        """An execution that nobody can find and that is not started: for a state that is tested alone."""
        prefix = f"arn:aws:states:{self.settings.region}:{self.settings.account}"
        name = self.chance.uuid()
        revision = Revision(role_arn=role_arn, definition="", machine=machine, made_at=self.clock.now())
        origin = Origin(f"{prefix}:stateMachine:{name}", name, revision)
        arn = f"{prefix}:execution:{name}:{name}"
        return Execution(self._services, arn, machine, given, origin, mock)

    def request_id(self) -> str:
        """A new id for an answer."""
        return self.chance.uuid()

    async def close(self) -> None:
        """Cut off whatever runs: the engine goes away, and executions with it."""
        self._closing = True
        for execution in [*self.executions.values(), *self._express]:
            execution.cut_off()
        loose = list(self._loose)
        for task in loose:
            task.cancel()
        await asyncio.gather(*loose, return_exceptions=True)
        await self.log_groups.close()

    # What executions ask for.

    def _begin(self, target: Target, arn: str, document: Document, mocks: Mocks | None) -> Execution:
        execution = self._make(target, arn, document, mocks)
        self._adopt(execution)
        self._by_machine.setdefault(target.machine.arn, {})[arn] = execution
        execution.start()
        return execution

    def _begin_express(self, target: Target, name: str, document: Document, mocks: Mocks | None) -> Execution:
        prefix = target.machine.arn.replace(":stateMachine:", ":express:", 1)
        arn = f"{prefix}:{name}:{self.chance.uuid()}"
        execution = self._make(target, arn, document, mocks, name)
        self._express.add(execution)
        execution.when_ended(self._express.discard)
        execution.start()
        return execution

    def _make(
        self, target: Target, arn: str, document: Document, mocks: Mocks | None, name: str | None = None
    ) -> Execution:
        machine, revision = target.machine, target.revision
        origin = Origin(
            machine.arn,
            machine.name,
            revision,
            version_arn=target.version_arn,
            alias_arn=target.alias_arn,
            express=machine.express,
            trace_header=target.trace_header,
        )
        return Execution(self._services, arn, revision.machine, document, origin, mocks, name)

    def _mocks(self, target: Target, case: str) -> Mocks:
        if self.settings.mocks is None:
            raise ApiError(
                "ValidationException",
                f"'#{case}' asks for a mock case, and no mock configuration was given (SFN_MOCK_CONFIG)",
            )
        return self.settings.mocks.case(target.machine.name, case, target.revision.machine)

    def _adopt(self, execution: Execution) -> None:
        self.executions[execution.arn] = execution

    def _open_map_run(self, run: MapRun) -> None:
        self.map_runs[run.arn] = run

    def _changed(self, execution: Execution) -> None:
        # Children of Map Runs are many; whoever waits for a machine's end waits for the parent's. Of Express
        # executions no status is told ([dg:eventbridge-integration]).
        told = execution.origin.map_run is None and not execution.origin.express
        if self.settings.sink is not None and told:
            self.settings.sink(status_event(execution, self.chance.uuid(), self.settings.account))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        if self._closing:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._loose.add(task)
        task.add_done_callback(self._loose.discard)


def read_input(text: str) -> Document:
    if too_large(text):
        raise ApiError(
            "ValidationException",
            "1 validation error detected: Value at 'input' failed to satisfy constraint: "
            "Member must have length less than or equal to 262144",
        )
    try:
        return Document(from_text(text), text)
    except ValueError as error:
        raise ApiError(
            "InvalidExecutionInput", f"Invalid State Machine Execution Input: '{error}'"
        ) from error
