"""The container's process: `python -m trueup.worker`. Environment in, exit code out."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from trueup.artifacts import Artifacts
from trueup.clock import SystemClock
from trueup.errors import ArtifactError, TrueupError, UsageError
from trueup.exits import Exit
from trueup.jobs import Backfill, Reconcile
from trueup.ledger import Ledger
from trueup.loading import load
from trueup.logs import log_as_json
from trueup.metrics import EmbeddedMetrics
from trueup.model.base import Value
from trueup.model.naming import NamingOrder
from trueup.model.plan import CodeIdentity, TaskOrder
from trueup.model.states import Phase
from trueup.worker.callback import Callback, NoCallback, tell
from trueup.worker.loop import Worker, leave_now
from trueup.worker.stopping import Control
from trueup.worker.tools import BEAT_SECONDS, CALLBACK_SECONDS, CHECKPOINT_SECONDS, Identity, Tools

log = logging.getLogger("trueup.worker")

ORDER, NAMING = "TRUEUP_ORDER", "TRUEUP_NAMING"
"""The variables that say what to do: work a slice, or name the partitions of a run."""

Environment = Mapping[str, str]
Order = TypeVar("Order", bound=Value)


def main(environment: Environment = os.environ) -> int:
    """Run the task that the environment orders, and give its exit code. Raises nothing."""
    control = Control()
    listen(control)
    try:
        log_as_json()
        callback = make_callback(environment)
    except Exception:
        log.exception("a bug, before anything was begun")
        return Exit.FAULT
    return work(environment, control, callback)


def work(environment: Environment, control: Control, callback: Callback) -> int:
    """The same, once there is somebody to tell how it ended."""
    code, contract = Exit.FAULT, None
    try:
        if NAMING in environment:
            return _name(environment, control)
        worker = _worker(environment, control, callback)
        code, contract = worker.run(), worker.contract
        if worker.is_the_second:
            return code
    except (UsageError, ArtifactError) as wrong:
        log.error("the input is wrong: %s", wrong)
        code = Exit.BAD_INPUT
    except TrueupError as failed:
        log.error("the task cannot begin: %s", failed)
    except BaseException:  # Cancelled, panicked: whoever waits for a word is told before anything else.
        log.exception("a bug, or an end from within the job's code")
    tell(callback, code, contract)
    return code


def _worker(environment: Environment, control: Control, callback: Callback) -> Worker:
    order = read_order(environment, ORDER, TaskOrder)
    known = {"run": order.run_id, "slice": order.slice.slice_id, "launch": order.launch}
    # Asked at each line: the heart speaks of the partition that the loop is at.
    log_as_json(lambda: {**known, "partition": control.partition})
    tools = replace(make_tools(environment, control, order.job, order.phase), callback=callback)
    return Worker(read_class(environment, order, tools), order, tools, no_progress=_leaving(callback))


def _name(environment: Environment, control: Control) -> Exit:
    """Name the partitions of a run. Whoever waits for it waits for its exit, and reads what it stored."""
    from trueup.worker.naming import name_partitions  # with what plans, which no other task needs

    order = read_order(environment, NAMING, NamingOrder)
    known = {"run": order.run_id, "launch": order.launch}
    log_as_json(lambda: known)
    tools = make_tools(environment, control, order.job, Phase.PLAN)
    brief = tools.artifacts.brief(order.brief_key, order.brief_sha256)
    return name_partitions(load(brief.job, code_folder(environment)), order, brief, tools)


def _leaving(callback: Callback) -> Callable[[str], None]:
    """How to leave while the loop hangs: whoever waits for a word gets it first."""

    def leave(reason: str) -> None:
        tell(callback, Exit.FAULT, None)
        leave_now(reason)

    return leave


def make_callback(environment: Environment) -> Callback:
    """Who waits for this task's word; nobody but its exit code where there is no task token."""
    token = environment.get("TRUEUP_TASK_TOKEN")
    if not token:
        return NoCallback()
    # Here, as in `make_tools`: a task that is awaited by its exit never needs Step Functions.
    from trueup.aws import connect
    from trueup.aws.callbacks import TaskToken

    return TaskToken(connect("stepfunctions"), token)


def listen(control: Control) -> None:
    """Make SIGTERM (ECS, Spot) and SIGINT a wish to stop, which the loop grants at its next batch."""

    def ask(number: int, frame: object) -> None:
        control.signal = signal.Signals(number).name

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)


def read_order(environment: Environment, variable: str, kind: type[Order]) -> Order:
    """An order from its variable. Raises UsageError."""
    try:
        return kind.model_validate_json(_needed(environment, variable))
    except ValidationError as error:
        raise UsageError(
            f"{variable} does not say what to do: {error}",
            remedy="Tasks are started by trueup's state machine.",
        ) from error


def make_tools(environment: Environment, control: Control, job: str, phase: Phase) -> Tools:
    """Stores and clocks for real. Raises UsageError where the environment lacks something."""
    # Here, so that the loop can be imported, and its job tested, without a word of AWS.
    from trueup.artifacts.s3 import S3Store, connect_s3
    from trueup.ledger.dynamo import DynamoTable, connect_dynamodb

    table, bucket = _needed(environment, "TRUEUP_TABLE"), _needed(environment, "TRUEUP_BUCKET")
    identity = who_am_i(environment)
    clock = SystemClock()
    # Ten words in the time that the state waits for one.
    word = _seconds(environment, "TRUEUP_HEARTBEAT_SECONDS", 10 * CALLBACK_SECONDS) / 10
    return Tools(
        ledger=Ledger(DynamoTable(connect_dynamodb(), table), clock),
        artifacts=Artifacts(S3Store(connect_s3(), bucket)),
        identity=identity,
        clock=clock,
        control=control,
        metrics=EmbeddedMetrics({"job": job, "phase": phase.value}, clock),
        checkpoint_seconds=_seconds(environment, "TRUEUP_CHECKPOINT_SECONDS", CHECKPOINT_SECONDS),
        beat_seconds=min(BEAT_SECONDS, word),
        callback_seconds=word,
    )


def who_am_i(environment: Environment) -> Identity:
    """The task's ARN and code, as the ECS metadata endpoint (version 4) gives them.

    Raises UsageError where there is no such endpoint or it does not say, TrueupError where it does not
    answer.
    """
    import urllib.request  # once a task, and slow to import

    address = _needed(environment, "ECS_CONTAINER_METADATA_URI_V4")
    try:
        with urllib.request.urlopen(f"{address}/task", timeout=5) as answer:  # noqa: S310 - ECS's own address
            return identity_of(json.load(answer))
    except OSError as error:
        raise TrueupError(
            f"The metadata endpoint {address} did not answer: {error}.",
            remedy="Fargate has it from platform version 1.4.0 on.",
        ) from error


def identity_of(task: Mapping[str, Any]) -> Identity:
    """The identity in a task document of the metadata endpoint; trueup's tasks have one container.

    Raises UsageError where the document lacks something.
    """
    try:
        arn = task["TaskARN"]
        prefix = arn.rpartition(":task/")[0]
        definition = f"{prefix}:task-definition/{task['Family']}:{task['Revision']}"
        digest = task["Containers"][0]["ImageID"]
        return Identity(arn, CodeIdentity(task_definition=definition, image_digest=digest))
    except (LookupError, TypeError, AttributeError, ValidationError) as error:
        raise UsageError(
            f"The task's metadata do not say who it is: {type(error).__name__}: {error}.",
            remedy="Refer to the image by its digest, and to the task definition by its revision.",
        ) from error


def read_class(environment: Environment, order: TaskOrder, tools: Tools) -> type[Backfill] | type[Reconcile]:
    """The job's class, as the plan names it. Raises UsageError, ArtifactError, StoreUnavailable."""
    plan = tools.artifacts.plan(order.plan_key, order.plan_sha256)
    return load(plan.job, code_folder(environment))


def code_folder(environment: Environment) -> Path:
    """Where the job's code lies: the image's working directory, unless the environment says otherwise."""
    return Path(environment.get("TRUEUP_CODE") or Path.cwd())


def _needed(environment: Environment, name: str) -> str:
    try:
        return environment[name]
    except KeyError:
        raise UsageError(
            f"{name} is not set.", remedy="The task definition sets it; see template.yaml."
        ) from None


def _seconds(environment: Environment, name: str, default: float) -> float:
    text = environment.get(name)
    try:
        return float(text) if text else default
    except ValueError:
        raise UsageError(
            f"{name} is {text!r}.", remedy="Give a number of seconds, or leave it out."
        ) from None
