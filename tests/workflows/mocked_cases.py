"""What each case of the mock configuration has to come to: one line of the table for one line of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueup.exits import Exit
from trueup.platform import Ended

PLAN, NEXT, NAME = "Plan the run", "What next?", "Let the job name its partitions"
SETTLE, WORK = "Open or settle the phase", "Work the partitions"
WAIT, VERIFIED = "Wait until the tasks have stopped", "Wait for the verification"
ASK, OVER, FAILED = "Ask a person", "Run is over", "Run has failed"

NUMBER, HOW = "Take a launch number", "How does the task report?"
EXIT, WORD = "Run the task", "Run the task and wait for its word"
ACCEPT, NOW = "Accept what it did", "What now?"
LITTLE, STOPS = "Wait a little", "Wait until it has stopped"
DONE, CLOSED, LOST = "Slice is done", "Run takes no more tasks", "Slice has failed"

PLANNED, SETTLED = (PLAN, NEXT), (SETTLE, NEXT)
NAMED = (*PLANNED, NAME)
WORKED, ASKED = (WORK, *SETTLED), (ASK, *SETTLED)
BY_EXIT, BY_WORD, ACCEPTED = (NUMBER, HOW, EXIT), (NUMBER, HOW, WORD), (ACCEPT, NOW)
ONCE, TWICE = (*BY_EXIT, *ACCEPTED), (*BY_EXIT, *ACCEPTED, LITTLE, *BY_EXIT, *ACCEPTED)
WORD_ONCE, WORD_TWICE = (*BY_WORD, *ACCEPTED), (*BY_WORD, *ACCEPTED, LITTLE, *BY_WORD, *ACCEPTED)

SUCCEEDED, FAILS = "SUCCEEDED", "FAILED"


@dataclass(frozen=True)
class Case:
    """`retried`: the visits that take more than one attempt. `heard`: what is told of its first task."""

    machine: str
    name: str
    path: Sequence[str]
    status: str = SUCCEEDED
    error: str | None = None
    retried: Sequence[tuple[str, int]] = ()
    heard: Ended | None = None

    def __str__(self) -> str:
        return f"{self.machine}-{self.name}"

    @property
    def given(self) -> dict[str, Any]:
        """The execution's input."""
        return RUN if self.machine != "slice" else slice_input("callback" if WORD in self.path else "exit")


RUN = {"runId": "flights-1", "generation": 1}
ORDER = {
    "runId": "flights-1", "generation": 1, "job": "flights-summary", "phase": "apply",
    "planKey": "runs/flights-1/plan.json", "planSha256": "ab" * 32, "dispatch": 3,
    "slice": {"sliceId": 0, "key": "runs/flights-1/partitions", "offset": 0, "length": 80, "partitions": 2,
              "weight": 2},
}  # fmt: skip


def slice_input(wait: str) -> dict[str, Any]:
    """What the fan-out hands to each slice."""
    network = {"AwsvpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "DISABLED"}}
    task = {
        "definition": "arn:aws:ecs:eu-west-1:123456789012:task-definition/trueup-flights-summary-write:7",
        "wait": wait, "timeoutSeconds": 4500, "heartbeatSeconds": 300, "network": network,
    }  # fmt: skip
    return {"order": ORDER, "task": task}


def stopped(code: int | None, reason: str = "Essential container in task exited", **more: Any) -> Ended:
    """The end of a task whose description came as the cause."""
    return Ended(**{"exit_code": code, "stop_code": "EssentialContainerExited", "reason": reason} | more)


NO_ROOM = 'AmazonECS.Unknown: {"Failures": [{"Reason": "RESOURCE:ENI"}], "Tasks": []}'
TOO_LONG = "ECS.InvalidParameterException: Container Overrides length must be at most 8192"
DENIED = "ECS.AccessDeniedException: User is not authorized to perform: ecs:RunTask"
KILLED = "Essential container in task exited; OutOfMemoryError: Container killed due to memory usage"
UNPULLED = "CannotPullContainerError: pull access denied"
SAID = "the task said so"

BACKFILL = (
    Case("backfill", "WorksAndEnds", (*PLANNED, *SETTLED, *WORKED, OVER)),
    Case("backfill", "WorksTwice", (*PLANNED, *SETTLED, *WORKED, *WORKED, OVER)),
    Case("backfill", "RehearsesThenApplies", (*PLANNED, *SETTLED, *WORKED, *SETTLED, *WORKED, OVER)),
    Case("backfill", "WaitsUntilTasksHaveStopped",
         (*PLANNED, *SETTLED, *WORKED, WAIT, *SETTLED, WAIT, *SETTLED, OVER)),
    Case("backfill", "IsVerified",
         (*PLANNED, *SETTLED, *WORKED, VERIFIED, *SETTLED, VERIFIED, *SETTLED, OVER)),
    Case("backfill", "IsApproved", (*PLANNED, *SETTLED, *ASKED, *WORKED, OVER)),
    Case("backfill", "IsApprovedAfterRehearsing",
         (*PLANNED, *SETTLED, *WORKED, *SETTLED, *ASKED, *WORKED, OVER)),
    # Whoever has the token can wake it; what it is told next is what the ledger says.
    Case("backfill", "IsWokenWithoutADecision", (*PLANNED, *SETTLED, *ASKED, *ASKED, *WORKED, OVER)),
    Case("backfill", "IsApprovedAfterItsCanary",
         (*PLANNED, *SETTLED, *WORKED, *ASKED, *SETTLED, *WORKED, OVER)),
    Case("backfill", "IsRejected", (*PLANNED, *SETTLED, *ASKED, OVER)),
    Case("backfill", "NobodyDecides", (*PLANNED, *SETTLED, *ASKED, FAILED), FAILS, "RunFailed"),
    Case("backfill", "AskFailsInPassing",
         (*PLANNED, *SETTLED, *ASKED, *WORKED, OVER), retried=[(ASK, 2 + 1)]),
    Case("backfill", "AskNeverWorks",
         (*PLANNED, *SETTLED, *ASKED, FAILED), FAILS, "RunFailed", [(ASK, 1 + 20)]),
    Case("backfill", "ServesAnEarlierGeneration", (*PLANNED, OVER)),
    Case("backfill", "JobNamesItsPartitions",
         (*NAMED, *PLANNED, *SETTLED, *WORKED, OVER), heard=Ended(exit_code=Exit.DONE)),
    Case("backfill", "NamingFailsInPassing", (*NAMED, *PLANNED, *SETTLED, *WORKED, OVER),
         retried=[(NAME, 6 + 1)], heard=Ended(exit_code=Exit.DONE)),
    Case("backfill", "NamingFindsNoRoom", (*NAMED, *NAMED, *PLANNED, *SETTLED, *WORKED, OVER),
         retried=[(NAME, 1 + 22)], heard=Ended(reason=NO_ROOM, launch_refused=True)),
    Case("backfill", "NamingFails", (*NAMED, *NAMED, *PLANNED, *SETTLED, *WORKED, OVER), heard=stopped(70)),
    Case("backfill", "RunFails", (*PLANNED, *SETTLED, *WORKED, FAILED), FAILS, "RunFailed"),
    # A word that the machine does not know ends it: it never guesses.
    Case("backfill", "IsToldSomethingNew", (*PLANNED, FAILED), FAILS, "RunFailed"),
    Case("backfill", "PlanFailsInPassing",
         (*PLANNED, *SETTLED, *WORKED, OVER), retried=[(PLAN, 6 + 1)]),
    Case("backfill", "PlanFailsInPassingOtherwise",
         (*PLANNED, *SETTLED, *WORKED, OVER), retried=[(PLAN, 4 + 1)]),
    Case("backfill", "PlanNeverWorks",
         (PLAN,), FAILS, "Lambda.TooManyRequestsException", [(PLAN, 1 + 6)]),
    Case("backfill", "PlanIsWrong", (PLAN,), FAILS, "KeyError", [(PLAN, 1 + 6)]),
    Case("backfill", "SettleFailsInPassing",
         (*PLANNED, *SETTLED, *WORKED, OVER), retried=[(SETTLE, 6 + 1), (SETTLE, 4 + 1)]),
    Case("backfill", "SettleNeverWorks",
         (*PLANNED, SETTLE), FAILS, "StoreUnavailable", [(SETTLE, 1 + 6)]),
    Case("backfill", "FanOutFailsInPassing",
         (*PLANNED, *SETTLED, *WORKED, OVER), retried=[(WORK, 4 + 1)]),
    Case("backfill", "FanOutNeverStarts",
         (*PLANNED, *SETTLED, *WORKED, FAILED), FAILS, "RunFailed", [(WORK, 1 + 10)]),
    # Redriven after the fan-out was started: its name is taken, and the ledger knows how far it got.
    Case("backfill", "FanOutWasStartedBefore", (*PLANNED, *SETTLED, *WORKED, OVER)),
    Case("backfill", "FanOutFails", (*PLANNED, *SETTLED, *WORKED, OVER)),
    Case("backfill", "FanOutTimesOut", (*PLANNED, *SETTLED, *WORKED, OVER)),
)  # fmt: skip

LAG, QUANTILES = "Wait for what is in flight", "Ask both sides for their quantiles"
_OTHERWISE = {"IsVerified", "RehearsesThenApplies", "IsApprovedAfterRehearsing", "IsApprovedAfterItsCanary"}


def _reconciled(case: Case) -> Case:
    """The case as the machine of reconciliations goes through it: only who names the partitions differs."""
    path = tuple(QUANTILES if name == NAME else name for name in case.path)
    retried = [(QUANTILES if name == NAME else name, attempts) for name, attempts in case.retried]
    return replace(case, machine="reconcile", path=path, retried=retried)


RECONCILE = (
    Case("reconcile", "WaitsForTheLag", (*PLANNED, *SETTLED, *WORKED, LAG, *SETTLED, *WORKED, OVER)),
    Case("reconcile", "LooksAtARepairThatFailed",
         (*PLANNED, *SETTLED, *WORKED, LAG, *SETTLED, *WORKED, FAILED), FAILS, "RunFailed"),
    *(_reconciled(case) for case in BACKFILL if case.name not in _OTHERWISE),
)  # fmt: skip

SLICE = (
    Case("slice", "Exit0", (*ONCE, DONE), heard=Ended(exit_code=Exit.DONE)),
    Case("slice", "Exit64", (*ONCE, LOST), FAILS, "SliceFailed", heard=stopped(64)),
    Case("slice", "Exit70", (*TWICE, DONE), heard=stopped(70)),
    Case("slice", "Exit75", (*TWICE, DONE), heard=stopped(75)),
    Case("slice", "Exit137", (*TWICE, DONE), heard=stopped(137, KILLED)),
    Case("slice", "SpotInterruption", (*TWICE, DONE),
         heard=stopped(143, "Your Spot Task was interrupted.", stop_code="SpotInterruption")),
    Case("slice", "TaskNeverBegins", (*TWICE, DONE),
         heard=stopped(None, UNPULLED, stop_code="TaskFailedToStart")),
    Case("slice", "TaskTimesOut", (*TWICE, DONE), heard=Ended(reason="States.Timeout: The task timed out.")),
    Case("slice", "LaunchFailsInPassing",
         (*ONCE, DONE), retried=[(EXIT, 6 + 1)], heard=Ended(exit_code=Exit.DONE)),
    Case("slice", "LaunchFindsNoRoom",
         (*TWICE, DONE), retried=[(EXIT, 1 + 22)], heard=Ended(reason=NO_ROOM, launch_refused=True)),
    Case("slice", "LaunchCanNeverWork",
         (*ONCE, LOST), FAILS, "SliceFailed", [(EXIT, 1 + 22)], heard=Ended(reason=TOO_LONG)),
    Case("slice", "LaunchIsDenied", (*ONCE, LOST), FAILS, "SliceFailed", heard=Ended(reason=DENIED)),
    Case("slice", "WordIsGood", (*WORD_ONCE, DONE), heard=Ended(exit_code=Exit.DONE)),
    Case("slice", "WordIsThatItLeaves", (*WORD_TWICE, DONE), heard=Ended(exit_code=75, reason=SAID)),
    Case("slice", "WordIsThatInputIsWrong",
         (*WORD_ONCE, LOST), FAILS, "SliceFailed", heard=Ended(exit_code=64, reason=SAID)),
    Case("slice", "HeartbeatIsMissed", (*WORD_TWICE, DONE),
         heard=Ended(reason="States.HeartbeatTimeout: No heartbeat within 300 seconds.")),
    Case("slice", "WordNeverComes", (*WORD_TWICE, DONE),
         heard=Ended(reason="States.Timeout: The task timed out.")),
    Case("slice", "LaunchForAWordFailsInPassing",
         (*WORD_ONCE, DONE), retried=[(WORD, 6 + 1)], heard=Ended(exit_code=Exit.DONE)),
    Case("slice", "LaunchForAWordFindsNoRoom", (*WORD_TWICE, DONE), retried=[(WORD, 1 + 22)],
         heard=Ended(reason="ECS.ThrottlingException: Rate exceeded", launch_refused=True)),
    Case("slice", "GateIsShut", (NUMBER, CLOSED)),
    Case("slice", "GateShutsAfterALaunch", (*ONCE, LITTLE, NUMBER, CLOSED), heard=stopped(75)),
    Case("slice", "NumberFailsInPassing", (*ONCE, DONE), retried=[(NUMBER, 7 + 1)]),
    Case("slice", "NumberNeverComes",
         (NUMBER,), FAILS, "DynamoDB.ThrottlingException", [(NUMBER, 1 + 8)]),
    Case("slice", "TaskHasToStopFirst", (*ONCE, STOPS, *ACCEPTED, STOPS, *ACCEPTED, DONE)),
    Case("slice", "RunIsClosedMeanwhile", (*ONCE, CLOSED)),
    Case("slice", "AcceptFailsInPassing", (*ONCE, DONE), retried=[(ACCEPT, 8 + 1)]),
    Case("slice", "AcceptNeverWorks",
         (*BY_EXIT, ACCEPT), FAILS, "Runtime.ExitError", [(ACCEPT, 1 + 8)]),
    # A word that the machine does not know ends it: it never guesses.
    Case("slice", "AcceptAnswersSomethingNew", (*ONCE, LOST), FAILS, "SliceFailed"),
)  # fmt: skip

CASES = (*BACKFILL, *RECONCILE, *SLICE)
MACHINES = ("backfill", "reconcile", "slice")
"""Those that every endpoint can take."""
