"""How a launch ended, read from what its state was left with: an answer, or an error and its cause."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trueup.exits import TASK_ENDED, Exit
from trueup.platform import Ended

# Throttling and capacity, in the disguises in which they were met: they say nothing against the slice.
_NO_ROOM = re.compile(
    r"rate exceeded|throttl|request ?limit ?exceeded|too many (concurrent )?requests|capacity is unavailable"
    r"|insufficient capacity|RESOURCE:|you.ve reached the limit|limit on the number of|try again",
    re.IGNORECASE,
)
_TRANSIENT = frozenset(
    {"AmazonECS.Unknown", "ECS.ThrottlingException", "ECS.ServerException", "ECS.SdkClientException"}
)
_REASON = 1000


def ended_of(left: Mapping[str, Any]) -> Ended:
    """What a state's answer (`taskArn`; `key` and `sha256`) or error (`Error`, `Cause`) says of the end."""
    error, cause = str(left.get("Error", "")), str(left.get("Cause") or "")
    if not error:
        return Ended(exit_code=Exit.DONE)
    if error == TASK_ENDED:
        return Ended(exit_code=_document(cause).get("exitCode"), reason="the task said so")
    if error == "States.TaskFailed":
        return _of_task(_document(cause), cause)
    reason = f"{error}: {cause}"[:_REASON] if cause else error
    if error.startswith(("ECS.", "AmazonECS.")):
        return Ended(reason=reason, launch_refused=error in _TRANSIENT or bool(_NO_ROOM.search(cause)))
    return Ended(reason=reason)


def told(ended: Ended) -> str:
    """The end of a launch as the trail has it."""
    if ended.launch_refused:
        return f"the launch was refused: {ended.reason}"
    return "exit code 0" if ended == Ended(exit_code=Exit.DONE) else str(ended)


def _of_task(task: Mapping[str, Any], cause: str) -> Ended:
    """From the task's description, as `.sync` gives it: PascalCase keys, one container."""
    container: Mapping[str, Any] = next(iter(task.get("Containers") or []), {})
    said = [task.get("StoppedReason"), container.get("Reason")]
    reason = "; ".join(part for part in said if part) or (None if task else cause)
    code, stop_code = container.get("ExitCode"), task.get("StopCode")
    return of_stopped(Ended(exit_code=code, stop_code=stop_code, reason=reason))


def of_stopped(ended: Ended) -> Ended:
    """The end of a stopped task, as its platform told it, sorted: for want of room, no task ever began."""
    never_began = ended.stop_code == "TaskFailedToStart" and ended.exit_code is None
    refused = never_began and bool(_NO_ROOM.search(ended.reason or ""))
    reason = ended.reason and ended.reason[:_REASON]
    return ended.model_copy(update={"reason": reason, "launch_refused": refused})


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}  # A cause is text that anybody may write; one that says nothing leaves the end unknown.
    return found if isinstance(found, dict) else {}
