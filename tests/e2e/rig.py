"""A stack whose runs have faults ahead: how tests start those, and what is to be seen of them."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from trueup.local.faults import Fault, Strike
from trueup.local.stack import Stack
from trueup.model.ledger import AuditEntry, PartitionItem, Run
from trueup.model.states import Phase, RunStatus
from trueup.starting import execution_name

from .watching import ended, wait_until

AT = "2026-01-01T00:00:00Z"
AT_ONCE = 10
"""Runs that two cores bear."""
SECONDS = 300.0
_days = itertools.count()


@dataclass(frozen=True, slots=True)
class Window:
    """Days that no other run of the session has."""

    days: tuple[date, ...]

    @property
    def request(self) -> dict[str, str]:
        """As a request names it."""
        return {"from": str(self.days[0]), "to": str(self.days[-1] + timedelta(1))}

    @property
    def partitions(self) -> list[str]:
        """The ids of its partitions."""
        return [f"date={day}" for day in self.days]


def window(days: int) -> Window:
    """A window of so many days."""
    first = date(2000, 1, 1)
    return Window(tuple(first + timedelta(next(_days)) for _ in range(days)))


def harm(launch: int | str, point: str, nth: int = 1, do: str = "kill", **more: Any) -> dict[str, Any]:
    """What a launch, or "every" one, does to itself at a point; the words of the job `rows`."""
    return {"launch": launch, "point": point, "nth": nth, "do": do, **more}


@dataclass(frozen=True, slots=True)
class Case:
    """A run of the job `rows`, and what goes wrong in it."""

    name: str = ""
    job: str = "rows"
    faults: Sequence[Fault] = ()
    harms: list[dict[str, Any]] = field(default_factory=list)
    params: Mapping[str, Any] = field(default_factory=dict)
    days: int = 1
    prepare: Callable[[str], object] = lambda run_id: None
    """Called with the run's id before anything of it is started."""

    def named(self, name: str) -> Case:
        """The same under a name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class Begun:
    """A run over a window of its own."""

    run_id: str
    window: Window
    run: Run | None = None

    @property
    def status(self) -> RunStatus:
        """The end that it came to."""
        assert self.run is not None, "it was not waited for"
        return self.run.status


@dataclass(frozen=True, slots=True)
class Rig:
    """The stack."""

    up: Stack

    def start(
        self,
        job: str,
        faults: Sequence[Fault] = (),
        prepare: Callable[[str], object] = lambda run_id: None,
        **request: Any,
    ) -> str:
        """Start a run as a schedule would, so that its name is known before, and give it."""
        schedule = f"s{uuid.uuid4().hex}"
        run_id = f"{schedule}-{AT.replace(':', '')}"
        self.up.faults.add(*(fault.model_copy(update={"run": run_id}) for fault in faults))
        prepare(run_id)
        answer = self.up.invoke(
            "start", {"schedule": schedule, "scheduledTime": AT, "request": {"job": job, **request}}
        )
        assert run_id == answer.get("runId"), answer
        return run_id

    def begin(self, case: Case, days: Window | None = None, **request: Any) -> Begun:
        """Start a case, over days of its own unless they are given."""
        chosen = days or window(case.days)
        params = {"harms": case.harms, **case.params}
        asked = {"params": params, **chosen.request, **request}
        return Begun(self.start(case.job, case.faults, case.prepare, **asked), chosen)

    def ended(self, begun: Begun) -> Begun:
        """The same once it has come to its end."""
        return replace(begun, run=ended(self.up, begun.run_id, SECONDS))

    def items(self, begun: Begun) -> list[PartitionItem]:
        """Every partition as the ledger has it."""
        found = self.up.ledger.partitions.get_many(begun.run_id, Phase.APPLY, begun.window.partitions)
        return list(found.values())

    def words(self, run_id: str) -> list[Strike]:
        """What befell the words of a run's tasks, once all that is late has arrived."""
        struck = [one for one in self.up.faults.strikes(run_id) if one.fault.startswith("callback-")]
        wait_until(lambda: all(one.answers for one in struck if one.fault == "callback-late"), SECONDS)
        return struck

    def launches(self, run_id: str) -> dict[int, tuple[str, str]]:
        """How each launch ended and what was decided, as the audit has it; in the order of the launches."""
        told = [entry for entry in self.up.ledger.audit.of(run_id) if entry.verb == "launch-ended"]
        found = {_launch(entry): (entry.why, str(entry.after)) for entry in told}
        assert len(told) == len(found), "a launch was told of twice"
        return dict(sorted(found.items()))

    def failures(self, run_id: str) -> list[tuple[str, str]]:
        """Error and cause of every failure in the histories of a run's executions."""
        details = [
            one
            for event in self.history(run_id)
            for name, one in event.items()
            if name.endswith("EventDetails") and isinstance(one, dict) and "error" in one
        ]
        return [(one["error"], one.get("cause", "")) for one in details]

    def history(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The events of the execution that serves a run, of those that it started, and of their children."""
        client = self.up.client("stepfunctions")
        for arn in self._executions(client, run_id):
            pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
            for page in pages:
                yield from page["events"]

    def execution(self, run_id: str) -> str:
        """The ARN of the execution that serves a run."""
        machine = self.up.deployed.outputs["Backfill"]
        return f"{machine.replace(':stateMachine:', ':execution:')}:{execution_name(run_id, 1)}"

    def _executions(self, client: Any, run_id: str) -> Iterator[str]:
        yield self.execution(run_id)
        (machine,) = [
            arn for arn in self.up.deployed.of_type("AWS::StepFunctions::StateMachine") if "partitions" in arn
        ]
        pages = client.get_paginator("list_executions")
        for page in pages.paginate(stateMachineArn=machine):
            for one in page["executions"]:
                if one["name"].startswith(run_id):
                    yield one["executionArn"]
                    yield from self._children(client, one["executionArn"])

    def _children(self, client: Any, arn: str) -> Iterator[str]:
        pages = client.get_paginator("list_executions")
        for run in client.list_map_runs(executionArn=arn)["mapRuns"]:
            for page in pages.paginate(mapRunArn=run["mapRunArn"]):
                yield from (one["executionArn"] for one in page["executions"])


def together(rig: Rig, cases: Iterable[Case], at_once: int = AT_ONCE) -> Iterator[tuple[Case, Begun]]:
    """Run cases side by side, some at once, and give each with its run once that has come to its end."""
    left = iter(cases)
    while some := list(itertools.islice(left, at_once)):
        begun = [(case, rig.begin(case)) for case in some]
        for case, one in begun:
            yield case, rig.ended(one)


def _launch(entry: AuditEntry) -> int:
    return int(entry.subject.rpartition(" ")[2])
