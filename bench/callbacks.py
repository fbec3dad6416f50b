"""The memory of executions that wait for a callback, all of which then comes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from bench.figures import Figure, rounded
from bench.machines import MOST_SECONDS, POLL_SECONDS, engine
from trueup.local.aws import client, ministack

EXECUTIONS = 1_000
MOST_MIB = 200


def machine(queue: str) -> dict[str, Any]:
    """Sends its token to a queue and waits."""
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}},
        "TimeoutSeconds": 3600,
        "HeartbeatSeconds": 600,
        "End": True,
    }
    return {"StartAt": "Ask", "States": {"Ask": task}}


def measure(executions: int = EXECUTIONS) -> Iterator[Figure]:
    """What the engine holds while all wait, beside what it holds before the first is started."""
    with ministack(["sqs"]) as endpoint, engine({"sqs": endpoint}) as ours:
        sqs = client("sqs", endpoint)
        queue = sqs.create_queue(QueueName="callbacks")["QueueUrl"]
        arn = ours.create("callbacks", machine(queue))
        before = ours.memory()
        started = [ours.start(arn, {}) for _ in range(executions)]
        tokens = take(sqs, queue, executions)
        held = ours.memory()
        for token in tokens:
            ours.api.send_task_success(taskToken=token, output="{}")
        for execution in started:
            ours.wait(execution)
    yield Figure(
        "callbacks memory",
        rounded(held),
        "MiB",
        f"the same process before the first of {executions:,} executions",
        rounded(before),
        f"at most {MOST_MIB} MiB",
        held <= MOST_MIB,
    )


def take(sqs: Any, queue: str, count: int) -> list[str]:
    """The tokens of so many messages."""
    tokens: list[str] = []
    end = time.monotonic() + MOST_SECONDS
    while len(tokens) < count:
        if time.monotonic() > end:
            raise RuntimeError(f"only {len(tokens)} of {count} executions have asked for a callback")
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        tokens += [json.loads(message["Body"])["token"] for message in messages]
        if not messages:
            time.sleep(POLL_SECONDS)
    return tokens
