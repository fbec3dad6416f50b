"""A state machine as it is run: typed states with their paths and templates compiled.

Made by `parsing` when the machine is created; nothing here is changed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from trueup.local.stepfunctions.choice import Predicate
from trueup.local.stepfunctions.intrinsics import Call
from trueup.local.stepfunctions.paths import Path, parse_path
from trueup.local.stepfunctions.templates import Template
from trueup.local.stepfunctions.values import Document, Json

WHOLE = parse_path("$")
"""The default of InputPath and OutputPath; null is None here, and selects an empty object."""

Number = int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrier:
    """One entry of Retry, with the defaults of [dg:concepts-error-handling]."""

    errors: tuple[str, ...]
    interval: Number = 1
    attempts: int = 3
    backoff: Number = 2.0
    max_delay: Number | None = None
    jitter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Catcher:
    """One entry of Catch."""

    errors: tuple[str, ...]
    next: str
    result_path: tuple[str | int, ...] | None = ()
    assign: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What all states have. `next` of None ends the workflow."""

    type: ClassVar[str] = ""

    name: str
    next: str | None = None
    input_path: Path | None = WHOLE
    output_path: Path | None = WHOLE
    assign: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Working(State):
    """A state with a result. `result_path` of None discards it; the empty path replaces the input."""

    parameters: Template | None = None
    result_selector: Template | None = None
    result_path: tuple[str | int, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallible(Working):
    """A state whose failure can be retried and caught."""

    retry: tuple[Retrier, ...] = ()
    catch: tuple[Catcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(Working):
    """Hands on its input, its Result or its Parameters."""

    type: ClassVar[str] = "Pass"
    result: Document | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeed(State):
    """Ends the workflow well."""

    type: ClassVar[str] = "Succeed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(State):
    """Ends the workflow badly."""

    type: ClassVar[str] = "Fail"
    error: str | Path | Call | None = None
    cause: str | Path | Call | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(State):
    """Waits: seconds, or until a moment (seconds since 1970); either given or at a path."""

    type: ClassVar[str] = "Wait"
    seconds: Number | Path | None = None
    until: float | Path | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of Choices."""

    holds: Predicate
    next: str
    assign: Template | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(State):
    """Goes where the first rule that holds points."""

    type: ClassVar[str] = "Choice"
    rules: tuple[Rule, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """What a Task calls; events say `type` and `name` (`sqs`, `sendMessage.waitForTaskToken`)."""

    arn: str
    type: str
    service: str
    action: str
    pattern: str
    """"" request and response, "sync", "sync:2" or "waitForTaskToken"."""

    @property
    def name(self) -> str:
        """The action with its pattern."""
        return f"{self.action}.{self.pattern}" if self.pattern else self.action

    @property
    def is_function(self) -> bool:
        """Whether a Lambda function is named directly; its events are of other types."""
        return self.type == "" and self.service == "lambda"

    @property
    def is_sdk(self) -> bool:
        """Whether any API is called (`aws-sdk:`), and none that Step Functions knows better."""
        return self.type.startswith("aws-sdk:")

    @property
    def is_activity(self) -> bool:
        """Whether workers ask for it; its events are of other types too."""
        return self.service == "activity"

    @property
    def is_callback(self) -> bool:
        """Whether it ends by a task token."""
        return self.is_activity or self.pattern == "waitForTaskToken"

    @property
    def has_token(self) -> bool:
        """Whether there is a task token: a job that is waited for may end by it too [botocore]."""
        return self.is_callback or self.pattern.startswith("sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Fallible):
    """Calls a service."""

    type: ClassVar[str] = "Task"
    resource: Resource
    timeout: int | Path | None = None
    heartbeat: int | Path | None = None
    credentials: Template | None = None
    """`{"RoleArn": …}`: told in the history; calls are made as the local user whatever it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """States with a start: a machine, a branch or what a Map does with each item."""

    start_at: str
    states: Mapping[str, State]
    source: Json = field(default=None, repr=False)
    """The JSON that it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Fallible):
    """Runs branches side by side."""

    type: ClassVar[str] = "Parallel"
    branches: tuple[Workflow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Fallible):
    """Runs a workflow for each item. `parameters` is the ItemSelector."""

    type: ClassVar[str] = "Map"
    processor: Workflow
    items_path: Path = WHOLE
    max_concurrency: int | Path = 0
    distributed: Distributed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributed:
    """What only a Distributed Map has."""

    label: str | None = None
    express: bool = False
    """Whether the children are Express executions."""
    reader: Reader | None = None
    batcher: Batcher | None = None
    writer: Writer | None = None
    tolerated_percentage: Number | Path | None = None
    tolerated_count: int | Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """ItemReader: `action` is getObject or listObjectsV2."""

    action: str
    parameters: Template
    input_type: str = "JSON"
    pointer: str | None = None
    flatten: bool = False
    """Whether the objects that are listed are read, and their items put together."""
    max_items: int | Path | None = None
    csv_headers: tuple[str, ...] | None = None
    csv_delimiter: str = ","


@dataclass(frozen=True, slots=True, kw_only=True)
class Batcher:
    """ItemBatcher."""

    max_items: int | Path | None = None
    max_bytes: int | Path | None = None
    batch_input: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """ResultWriter; without `parameters` nothing is written to S3."""

    parameters: Template | None
    lines: bool = False
    transformation: str = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Workflow):
    """A whole definition."""

    timeout: Number | None = None
    comment: str | None = None
