"""What can go wrong on purpose: one value for each kind of fault, and the file that holds them.

docs/faults.md says of each what happens; a test holds its table and these classes together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from trueup.errors import UsageError
from trueup.model.base import Name, Value
from trueup.yamlfile import dotted, read_yaml

LONGEST = 86_400.0


def _range(value: object) -> object:
    """One number is a range without width; text that looks like a number is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | list | tuple):
        raise ValueError("give seconds, such as 2, or two ends, such as [0.5, 4]")
    return (value, value) if isinstance(value, int | float) else value


def _ends(value: tuple[float, float]) -> tuple[float, float]:
    if value[0] > value[1]:
        raise ValueError("the later end has to be the second")
    return value


_MOST_BYTES = 2**20
_Second = Annotated[float, Field(ge=0, le=LONGEST)]
Seconds = Annotated[tuple[_Second, _Second], BeforeValidator(_range), AfterValidator(_ends)]
"""A time, or the ends between which the seed chooses one."""
Positive = Annotated[int, Field(ge=1)]


class Which(Value):
    """Whom a fault strikes, and how often; what is not given is not asked for."""

    fault: str
    times: Positive | None = None
    probability: Annotated[float, Field(gt=0, le=1)] = 1.0
    run: str | None = None


class OfLaunches(Which):
    """A fault of tasks."""

    job: Name | None = None
    launches: tuple[Positive, ...] | None = None


class Refused(OfLaunches):
    """RunTask says no: one throttle in its three disguises, or no capacity in two."""

    fault: Literal["throttled", "throttled-parameter", "throttled-failure", "capacity", "capacity-failure"]


class ColdStart(OfLaunches):
    """A task stays in PROVISIONING for some time more."""

    fault: Literal["cold-start"]
    seconds: Seconds


class CannotPull(OfLaunches):
    """A task's image cannot be pulled."""

    fault: Literal["cannot-pull"]


class AtMoment(OfLaunches):
    """Something befalls a task at a moment: seconds after it is RUNNING, or with its n-th checkpoint.

    At a checkpoint it strikes when the ledger has it and the task has not heard of that yet.
    """

    after: Seconds | None = None
    checkpoint: Positive | None = None

    @model_validator(mode="after")
    def _one_moment(self) -> Self:
        if self.checkpoint is not None and self.after is not None:
            raise ValueError("`after` and `checkpoint` are two moments: give one of them")
        return self


class Struck(AtMoment):
    """A task is killed from nowhere, loses its host, or is taken by Spot."""

    fault: Literal["kill", "crash", "interrupt"]


class Exited(AtMoment):
    """A task ends with an exit code, without a word."""

    fault: Literal["exit"]
    code: Annotated[int, Field(ge=0, le=255)] = 1


class Frozen(AtMoment):
    """A task lives, and does nothing, for ever or for some seconds."""

    fault: Literal["freeze"]
    thaw: Seconds | None = None


class OfCalls(OfLaunches):
    """A call to DynamoDB or S3: of tasks, or of a function where one is named (`*`: of any)."""

    service: Literal["dynamodb", "s3"] | None = None
    operation: str | None = None
    function: str | None = None

    @model_validator(mode="after")
    def _one_caller(self) -> Self:
        if self.function is not None and (self.job, self.run, self.launches) != (None, None, None):
            raise ValueError("the calls of a `function` belong to no job, run or launch: leave those out")
        return self


class CallRefused(OfCalls):
    """A call is throttled, or the service fails; nothing was done."""

    fault: Literal["call-throttled", "call-failed"]


class CallDelayed(OfCalls):
    """A call takes longer, or its connection is closed after so long, and nothing was done."""

    fault: Literal["call-slow", "call-unanswered"]
    seconds: Seconds = (1.0, 1.0)


class CallAnswerLost(OfCalls):
    """A call did its work, and its answer does not arrive."""

    fault: Literal["call-answer-lost"]


class OfCallbacks(OfLaunches):
    """A word of a task to the state that waits for it: the one named, or its last one."""

    word: Literal["Success", "Failure", "Heartbeat"] | None = None


class CallbackMishap(OfCallbacks):
    """A word is lost, or said twice."""

    fault: Literal["callback-lost", "callback-twice"]


class CallbackLate(OfCallbacks):
    """A word arrives late; the task is told at once that it was taken."""

    fault: Literal["callback-late"]
    seconds: Seconds


class FunctionFailed(Which):
    """A function that a machine calls seems to have failed.

    `before`: nothing was done. `meanwhile`: it still goes on. `after`: all was done.
    """

    fault: Literal["function-died", "function-timed-out"]
    function: str | None = None
    when: Literal["before", "meanwhile", "after"] = "after"


class AnswerLost(Which):
    """A machine's call of a service other than Lambda did its work, and its answer does not arrive."""

    fault: Literal["answer-lost"]
    call: Literal["runTask", "updateItem"] | None = None


Fault = (
    Refused
    | ColdStart
    | CannotPull
    | Struck
    | Exited
    | Frozen
    | CallRefused
    | CallDelayed
    | CallAnswerLost
    | CallbackMishap
    | CallbackLate
    | FunctionFailed
    | AnswerLost
)


_Any = Annotated[Fault, Field(discriminator="fault")]


class FaultPlan(Value):
    """A list of faults, and the seed by which everything is chosen that is left to chance."""

    seed: int = 0
    faults: tuple[_Any, ...] = ()


def fault(kind: str, **fields: Any) -> Fault:
    """One fault: `fault("kill", job="rows", after=2)`. Raises UsageError."""
    return as_plan({"faults": [{"fault": kind, **fields}]}, kind).faults[0]


def read_plan(path: Path) -> FaultPlan:
    """The plan in a file, YAML or JSON. Raises UsageError with every mistake and its place."""
    try:
        document = read_yaml(_text(path))
    except (OSError, ValueError) as error:  # the latter of bytes that are no text, and of a path that is none
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"The faults in {path} cannot be read: {why}.",
            remedy="Name a text file of faults; docs/faults.md shows one.",
        ) from error
    if document.problems:
        wrong = "\n".join(f"{path}:{one.line}: {one}" for one in document.problems)
        raise UsageError(wrong, remedy="docs/faults.md shows such a file.")
    return as_plan(document.data, str(path))


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES:,} bytes")
    return data.decode("utf-8")


def as_plan(data: Any, where: str = "the faults") -> FaultPlan:
    """Plain data as a plan. Raises UsageError with every mistake and its place."""
    try:
        return FaultPlan.model_validate(data)
    except ValidationError as error:
        wrong = "\n".join(_explained(one, where) for one in error.errors())
        raise UsageError(wrong, remedy="docs/faults.md names every fault and its fields.") from error


_NO_MAPPING = frozenset({"model_type", "model_attributes_type", "dict_type"})


def _explained(one: ErrorDetails, where: str) -> str:
    """One mistake, for people, after its place; a file that is wrong as a whole is named alone."""
    place = ": ".join(filter(None, (where, dotted(one["loc"]))))
    if one["type"] in _NO_MAPPING:
        needs = "`fault` and its fields" if one["loc"] else "`faults`, a list, and perhaps `seed`"
        return f"{place}: this has to be a mapping, with {needs}"
    if one["type"] == "tuple_type":
        return f"{place}: this has to be a list"
    return f"{place}: {one['msg'].removeprefix('Value error, ')}"
