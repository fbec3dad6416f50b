"""The awslogs driver: what a container writes goes to CloudWatch Logs, as its definition says.

The container writes to a file; a coroutine for each task reads on in it and puts what it finds, one batch
after the other. So nothing is held in memory but that batch, and what was written before the end is read
after it.
A stream is `prefix/container/task-id` (developer guide, "Send Amazon ECS logs to CloudWatch").
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.local.ecs.clock import Clock
from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.tasks import Task
from trueup.local.ecs.waiting import cancel, first, soon

log = logging.getLogger(__name__)

DRIVER = "awslogs"
READ_BYTES = 256 * 1024
"""So much is read at once; with 26 bytes an event it is less than the 1 MiB that a call takes."""
EVENT_BYTES = 16 * 1024
"""Longer lines come in pieces of this size, as container runtimes cut them."""
BATCH_EVENTS = 10_000
"""PutLogEvents takes no more (its page in the API reference)."""
LOOK_SECONDS = 0.5
TRIES = 5

Failure = (ClientError, BotoCoreError)


@dataclass(slots=True)
class Lines:
    """Turns what is read, piece by piece, into lines; what has no end yet waits for it."""

    rest: bytes = b""

    def take(self, data: bytes, *, last: bool = False) -> list[str]:
        """The lines that are complete now; with `last` that without an end too. Empty ones are left out."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        if last or len(self.rest) >= EVENT_BYTES:
            lines.append(self.rest)
            self.rest = b""
        return [piece.decode(errors="replace") for line in lines for piece in _pieces(line)]


def _pieces(line: bytes) -> Iterator[bytes]:
    for start in range(0, len(line), EVENT_BYTES):
        yield line[start : start + EVENT_BYTES]


@dataclass(slots=True)
class _Stream:
    """Where one task's lines go."""

    group: str
    name: str
    path: Path
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    latest: int = 0


class AwsLogs:
    """The driver; `client` is a boto3 CloudWatch Logs client, None where there is nowhere to write to."""

    def __init__(self, client: Any | None, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._streams: dict[str, _Stream] = {}
        self._following: set[asyncio.Task[None]] = set()

    async def begin(self, task: Task, path: Path) -> None:
        """Make a task's stream and send what comes into the file, where the definition wants that.

        Raises CannotStart, in the words of a container runtime, where there can be no stream.
        """
        wanted = task.container.definition.get("logConfiguration") or {}
        if self._client is None or wanted.get("logDriver") != DRIVER:
            return
        options = wanted.get("options") or {}
        stream = _Stream(options.get("awslogs-group", ""), stream_of(task, options), path)
        try:
            await asyncio.to_thread(self._create, stream, options)
        except Failure as error:
            raise CannotStart(
                "CannotStartContainerError: failed to initialize logging driver: failed to create Cloudwatch "
                f"log stream: {error}"
            ) from error
        self._streams[task.task_id] = stream
        following = asyncio.create_task(self._follow(stream))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    def _create(self, stream: _Stream, options: Mapping[str, str]) -> None:
        assert self._client is not None
        taken = self._client.exceptions.ResourceAlreadyExistsException
        if options.get("awslogs-create-group") == "true":
            try:
                self._client.create_log_group(logGroupName=stream.group)
            except taken:
                log.debug("%s is there", stream.group)
        self._client.create_log_stream(logGroupName=stream.group, logStreamName=stream.name)

    def ended(self, task: Task) -> None:
        """Nothing more will be written by a task: what is there yet is sent, and the stream left."""
        stream = self._streams.pop(task.task_id, None)
        if stream is not None:
            stream.ended.set()

    async def _follow(self, stream: _Stream) -> None:
        lines, offset = Lines(), 0
        while True:
            over = (
                stream.ended.is_set()
            )  # asked first: so the read that finds nothing more came after the end
            data = await asyncio.to_thread(_read, stream.path, offset)
            offset += len(data)
            for batch in _batches(lines.take(data, last=over and not data)):
                if not await self._put(stream, batch):
                    return
            if not data:
                if over:
                    return
                await self._look_again(stream)

    async def _look_again(self, stream: _Stream) -> None:
        await first(asyncio.create_task(stream.ended.wait()), soon(self._clock.sleep(LOOK_SECONDS)))

    async def _put(self, stream: _Stream, batch: list[str]) -> bool:
        """Whether it arrived, sooner or later; where it did not, that is told."""
        stream.latest = max(stream.latest, int(self._clock.now() * 1000))  # in order, whatever the clock does
        events = [{"timestamp": stream.latest, "message": line} for line in batch]
        for tried in range(1, TRIES + 1):
            try:
                await asyncio.to_thread(self._send, stream, events)
                return True
            except Failure as error:
                if tried == TRIES:
                    log.warning(
                        "CloudWatch Logs took no more of %s, of which %s has all: %s",
                        stream.name,
                        stream.path,
                        error,
                    )
            await self._clock.sleep(LOOK_SECONDS * 2**tried)
        return False

    def _send(self, stream: _Stream, events: list[dict[str, Any]]) -> None:
        assert self._client is not None
        self._client.put_log_events(logGroupName=stream.group, logStreamName=stream.name, logEvents=events)

    async def close(self) -> None:
        """Send nothing more: what is left goes with the stack."""
        if self._following:
            await cancel(*self._following)


def stream_of(task: Task, options: Mapping[str, str]) -> str:
    """The name of a task's stream; without a prefix, which Fargate demands, it is the container's id."""
    prefix = options.get("awslogs-stream-prefix")
    container = task.container
    return f"{prefix}/{container.name}/{task.task_id}" if prefix else container.container_id


def _read(path: Path, offset: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(READ_BYTES)


def _batches(lines: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(lines), BATCH_EVENTS):
        yield lines[start : start + BATCH_EVENTS]
