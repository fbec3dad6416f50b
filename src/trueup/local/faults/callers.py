"""Who makes a call: told by the application id that every AWS SDK sends in its User-Agent.

Source: SDKs and Tools Reference Guide, "Application ID": `AWS_SDK_UA_APP_ID`, at most 50 characters, is sent
as `app/<id>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trueup.local.faults.board import Subject

_VARIABLE = "AWS_SDK_UA_APP_ID"
_SENT = re.compile(r"(?:^|\s)app/(\S+)")


@dataclass(slots=True)
class Caller:
    """A task or a function, and how many checkpoints a task made."""

    subject: Subject
    task: str = ""
    """The task's ARN; a function has none."""
    checkpoints: int = 0


class Callers:
    """Those who were sent through the gateway. Every method is for any thread."""

    def __init__(self) -> None:
        self._known: dict[str, Caller] = {}

    def introduce(self, subject: Subject, task: str = "") -> dict[str, str]:
        """Know a caller; gives what its environment has to say."""
        identifier = f"task-{task.rpartition('/')[2]}" if task else f"function-{subject.function}"
        self._known[identifier] = Caller(subject, task)
        return {_VARIABLE: identifier}

    def find(self, user_agent: str) -> Caller | None:
        """Who sent this User-Agent; None where it is nobody who was introduced."""
        sent = _SENT.search(user_agent)
        return self._known.get(sent[1]) if sent else None
