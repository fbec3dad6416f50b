"""What goes wrong in Step Functions, by who hears of it.

ApiError          the caller of the API: a name and a message under HTTP 400
DefinitionError   whoever creates a machine: every problem with its place
StateError        the machine: an error name and a cause, for Retry and Catch
EvaluationError   the same, before the state that evaluates has put its name to it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RUNTIME = "States.Runtime"
TIMEOUT = "States.Timeout"
HEARTBEAT = "States.HeartbeatTimeout"
DATA_LIMIT = "States.DataLimitExceeded"
TASK_FAILED = "States.TaskFailed"


class ApiError(Exception):
    """A call is refused. `name` is the exception's name in botocore's model."""

    def __init__(self, name: str, message: str, *, status: int = 400) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message
        self.status = status


MAX_ERROR, MAX_CAUSE = 256, 32_768
"""Characters of an error's name and of its cause: botocore's `SensitiveError` and `SensitiveCause`."""


class StateError(Exception):
    """A state failed. What is longer than the API can tell of it is cut off.

    `alias` is a second name that matches: a missed heartbeat is written as States.Timeout, and both names
    of it are documented (aws-facts section 1.5).
    `unrunnable` is an error of the runtime: the states around the one that could not be run have no event of
    failing with it (measured on AWS: floci-io/floci#2868).
    """

    def __init__(
        self,
        error: str | None,
        cause: str | None = None,
        *,
        alias: str | None = None,
        unrunnable: bool = False,
    ) -> None:
        super().__init__(error, cause)
        self.unrunnable = unrunnable
        self.error = None if error is None else error[:MAX_ERROR]
        self.cause = None if cause is None else cause[:MAX_CAUSE]
        self.alias = alias


class EvaluationError(Exception):
    """A path, function or field has no value here. The state adds its name and event to the message."""

    def __init__(self, message: str, *, error: str = RUNTIME) -> None:
        super().__init__(message)
        self.message = message
        self.error = error


class Missing(Exception):
    """A definite path found nothing. The message is the JSONPath library's, without the path as written."""


class OutOfBounds(Missing):
    """A definite path ends at an element that its array does not have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a definition: ValidateStateMachineDefinition's diagnostic."""

    code: str
    message: str
    location: str | None
    """None where it is nowhere in particular, which AWS writes as null."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message} at {self.location or 'null'}"


class DefinitionError(Exception):
    """A definition cannot be run. Carries all problems, the first found first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(", ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
