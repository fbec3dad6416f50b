"""What a container writes arrives in CloudWatch Logs: all of it, in order, also after its death.

Sources are pages of the ECS developer guide and the API reference, by title.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from trueup.local.ecs.awslogs import BATCH_EVENTS, EVENT_BYTES, TRIES, AwsLogs, Lines
from trueup.local.ecs.tasks import StopCode, Task

from .ecs_cases import Case, on_a_loop

OPTIONS = {"awslogs-group": "/jobs", "awslogs-region": "us-east-1", "awslogs-stream-prefix": "job-write"}


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"said {code}"}}, "PutLogEvents")


class Logs:
    """CloudWatch Logs; `fails` so many times when it is asked to take events."""

    class exceptions:  # noqa: N801  as boto3 spells it
        class ResourceAlreadyExistsException(ClientError):
            pass

    def __init__(self, *groups: str, fails: int = 0) -> None:
        self.groups = set(groups)
        self.streams: dict[str, list[dict[str, Any]]] = {}
        self.fails = fails
        self.largest = 0

    def create_log_group(self, **asked: str) -> None:
        if asked["logGroupName"] in self.groups:
            told = {"Error": {"Code": "ResourceAlreadyExistsException", "Message": "it is there"}}
            raise self.exceptions.ResourceAlreadyExistsException(told, "CreateLogGroup")
        self.groups.add(asked["logGroupName"])

    def create_log_stream(self, **asked: str) -> None:
        if asked["logGroupName"] not in self.groups:
            raise refused("ResourceNotFoundException")
        self.streams[asked["logStreamName"]] = []

    def put_log_events(self, **asked: Any) -> None:
        if self.fails:
            self.fails -= 1
            raise refused("ServiceUnavailableException")
        events = asked["logEvents"]
        # PutLogEvents: 1 MiB with 26 bytes an event, none of them empty, in order of time.
        assert 1_048_576 >= sum(len(one["message"].encode()) + 26 for one in events)
        assert all(one["message"] for one in events)
        self.largest = max(self.largest, len(events))
        self.streams[asked["logStreamName"]] += events

    def lines(self) -> list[str]:
        (events,) = self.streams.values()
        assert sorted(one["timestamp"] for one in events) == [one["timestamp"] for one in events]
        return [one["message"] for one in events]


class Hasty:
    """Time passes by itself, and backwards where it can."""

    def __init__(self) -> None:
        self._now = 1_800_000_000.0

    def now(self) -> float:
        self._now -= 1
        return self._now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.001)


async def written(logs: Logs, path: Path, *pieces: bytes, **options: str) -> Task:
    """A task that writes pieces, one after the other, and ends."""
    case = Case()
    case.register(logConfiguration={"logDriver": "awslogs", "options": {**OPTIONS, **options}})
    task = await case.run()
    driver = AwsLogs(logs, Hasty())
    await driver.begin(task, path)
    with path.open("ab", buffering=0) as file:
        for piece in pieces:
            file.write(piece)
            await asyncio.sleep(0.005)
    driver.ended(task)
    deadline = time.monotonic() + 20
    while driver._following:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)
    await driver.close()
    return task


@on_a_loop
async def test_every_line_arrives_in_the_stream_of_its_task(tmp_path: Path) -> None:
    """Send Amazon ECS logs to CloudWatch: prefix/container/task-id."""
    logs = Logs("/jobs")
    task = await written(logs, tmp_path / "log", b"one\ntw", b"o\n\nthr\xc3", b"\xa9e\n", b"no end")
    assert [f"job-write/main/{task.task_id}"] == list(logs.streams)
    assert ["one", "two", "thrée", "no end"] == logs.lines()


@on_a_loop
async def test_what_is_much_comes_in_batches_that_are_taken(tmp_path: Path) -> None:
    logs = Logs("/jobs")
    many = [f"{number}" for number in range(3 * BATCH_EVENTS)]
    await written(logs, tmp_path / "log", "\n".join(many).encode(), b"\n", b"\xff" * 900_000, b"\nend")
    assert many == logs.lines()[: len(many)]
    assert BATCH_EVENTS == logs.largest
    *_, last = logs.lines()
    assert "end" == last
    assert 900_000 == sum(len(line) for line in logs.lines()[len(many) : -1])


@on_a_loop
async def test_a_service_that_fails_for_a_while_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = Logs("/jobs", fails=TRIES - 1)
    await written(logs, tmp_path / "log", b"one\n", b"two\n")
    assert ["one", "two"] == logs.lines()
    assert [] == caplog.messages


@on_a_loop
async def test_a_service_that_fails_for_good_is_told_and_where_the_rest_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = Logs("/jobs", fails=1000)
    task = await written(logs, tmp_path / "log", b"one\n", b"two\n")
    (told,) = caplog.messages
    assert f"took no more of job-write/main/{task.task_id}, of which {tmp_path / 'log'} has all" in told
    assert "said ServiceUnavailableException" in told


def shouted(options: dict[str, str], logs: Logs) -> Task:
    """A task of a Fargate with that CloudWatch, once it came as far as it gets."""

    async def run() -> Task:
        case = Case(cloudwatch=logs)
        case.register(logConfiguration={"logDriver": "awslogs", "options": {**OPTIONS, **options}})
        task = await case.run()
        for _ in range(100):
            await asyncio.sleep(0.005)
            if task.stopped or case.launcher.processes:
                break
        await case.fargate.close()
        return task

    return asyncio.run(run())


def test_a_group_that_is_not_there_is_why_the_task_cannot_start() -> None:
    task = shouted({}, Logs())
    assert task.stop is not None
    assert StopCode.FAILED_TO_START is task.stop.code
    assert "failed to create Cloudwatch log stream" in task.stop.reason
    assert "ResourceNotFoundException" in task.stop.reason


@pytest.mark.parametrize("groups", [(), ("/jobs",)])
def test_a_group_is_made_where_the_definition_says_so(groups: tuple[str, ...]) -> None:
    """Send Amazon ECS logs to CloudWatch: awslogs-create-group."""
    logs = Logs(*groups)
    task = shouted({"awslogs-create-group": "true"}, logs)
    assert [f"job-write/main/{task.task_id}"] == list(logs.streams)


def test_a_definition_without_the_driver_makes_no_stream() -> None:
    logs = Logs("/jobs")

    async def run() -> None:
        case = Case(cloudwatch=logs)
        await case.run()
        await case.fargate.close()

    asyncio.run(run())
    assert {} == logs.streams


TEXT = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20), max_size=20)


@given(TEXT, st.lists(st.integers(0, 400), max_size=10))
def test_lines_are_the_same_wherever_the_reading_cuts_them(texts: list[str], cuts: list[int]) -> None:
    data, lines, found, start = "\n".join(texts).encode(), Lines(), [], 0
    for cut in sorted(cuts):
        found += lines.take(data[start:cut] if cut > start else b"")
        start = max(start, cut)
    found += lines.take(data[start:])
    found += lines.take(b"", last=True)
    assert [text for text in texts if text] == found


@pytest.mark.parametrize("size", [EVENT_BYTES - 1, EVENT_BYTES, EVENT_BYTES + 1, 3 * EVENT_BYTES])
def test_a_long_line_comes_in_pieces(size: int) -> None:
    lines = Lines()
    found = lines.take(b"x" * size) + lines.take(b"\n") + lines.take(b"", last=True)
    assert "x" * size == "".join(found)
    assert EVENT_BYTES >= max(len(piece) for piece in found)
    assert b"" == lines.rest
