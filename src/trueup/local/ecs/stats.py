"""What a container uses, as `$ECS_CONTAINER_METADATA_URI_V4/stats` tells it: Docker's statistics.

Source: developer guide, "Task metadata endpoint version 4 for tasks on Fargate"; the fields are those of
Docker's API, "Get container stats". Read from /proc, so there are numbers on Linux alone; elsewhere, and for
a container that does not run, the answer is null, as on Fargate for a container without statistics.
Networks and disks are not counted: a process here shares those of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trueup.local.ecs.describing import instant
from trueup.local.ecs.tasks import Task

PROC = Path("/proc")
NANOSECONDS = 1_000_000_000
_MIB = 1024 * 1024

Document = dict[str, Any]


def container_stats(task: Task, now: float) -> Document | None:
    """Of a task's container."""
    used = None if task.pid is None else _used(task.pid)
    if used is None:
        return None
    cpu, memory, processes = used
    return {
        "read": instant(now),
        "preread": instant(task.times["startedAt"]),
        "id": task.container.runtime_id,
        "name": task.container.name,
        "num_procs": 0,
        "pids_stats": {"current": processes},
        "cpu_stats": {"cpu_usage": {"total_usage": cpu}, "online_cpus": os.cpu_count() or 1},
        "precpu_stats": {"cpu_usage": {"total_usage": 0}},
        "memory_stats": {"usage": memory, "limit": int(task.memory) * _MIB},
    }


def task_stats(task: Task, now: float) -> Document:
    """Of all containers of a task, by their ids."""
    return {task.container.runtime_id: container_stats(task, now)}


def _used(group: int) -> tuple[int, int, int] | None:
    """Nanoseconds of CPU and bytes of memory of a group's processes, and their number; None without any."""
    found = list(_processes(group))
    if not found:
        return None
    return sum(cpu for cpu, _ in found), sum(memory for _, memory in found), len(found)


def _processes(group: int) -> Iterator[tuple[int, int]]:
    tick, page = NANOSECONDS // os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name of the program, in parentheses, may have spaces; the fields behind it have none.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == group:
            yield (int(fields[11]) + int(fields[12])) * tick, int(fields[21]) * page
