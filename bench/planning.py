"""Planning and packing many partitions, as the two Lambdas do it: request, plan, lines and back, dispatch.

`python -m bench.planning PARTITIONS` does it in a process of its own and prints seconds and peak memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from bench.figures import MIB, Figure, in_own_process, peak_bytes, rounded, seconds
from trueup.model.job import JobFile
from trueup.model.plan import CodeIdentity, Dispatch, Partition
from trueup.model.request import Request
from trueup.model.states import Phase
from trueup.planning import make_dispatch, make_plan, partitions, read_partitions

PARTITIONS = 100_000
MOST_SECONDS = 15.0
MOST_MIB = 512.0

SIZE = 1_000
CODE = CodeIdentity(
    task_definition="arn:aws:ecs:eu-west-1:000000000000:task-definition/bench:1",
    image_digest="sha256:" + "0" * 64,
)
JOB_FILE = JobFile.model_validate(
    {
        "name": "planning",
        "class": "bench.planning:Job",
        "partitions": {
            "by": "key-range",
            "key": "id",
            "size": SIZE,
            "input": "s3://bench/rows/{low}-{high}.csv",
        },
        "target": {"name": "nowhere", "guard": "none"},
        "limits": {"maxConcurrency": 64},
    }
)


def measure(number: int = PARTITIONS) -> Iterator[Figure]:
    """Seconds and memory of planning so many partitions."""
    found = in_own_process("planning", number)
    took, peak = rounded(found["seconds"]), round(found["peak"] / MIB, 1)
    bare = f"{number:,} bare Partition values, built in a loop"
    yield Figure(
        "planning",
        took,
        "s",
        bare,
        rounded(found["bareSeconds"]),
        f"at most {MOST_SECONDS:g} s",
        took <= MOST_SECONDS,
    )
    yield Figure(
        "planning memory",
        peak,
        "MiB",
        f"{bare}, which are kept",
        round(found["barePeak"] / MIB, 1),
        f"at most {MOST_MIB:g} MiB",
        peak <= MOST_MIB,
    )


def dispatch_of(number: int) -> Dispatch:
    """The first dispatch of a run over so many partitions, by way of what lies in S3 in between."""
    request = Request(
        job=JOB_FILE.name, request_id="bench", requester="bench", start="0", end=str(number * SIZE)
    )
    plan, data = make_plan(
        JOB_FILE,
        request,
        partitions(JOB_FILE, request),
        run_id="planning-bench",
        read_code=CODE,
        write_code=CODE,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    dispatch, _, _ = make_dispatch(plan, read_partitions(data), phase=Phase.APPLY, number=0)
    return dispatch


def bare(number: int) -> list[Partition]:
    """As many values as a plan has, and nothing else."""
    return [
        Partition(
            partition_id=f"id={low}-{low + SIZE - 1}",
            low=str(low),
            high=str(low + SIZE),
            input=f"s3://bench/rows/{low}-{low + SIZE}.csv",
            weight=10.0,
        )
        for low in range(0, number * SIZE, SIZE)
    ]


def main(number: int) -> None:
    """Build the values, then plan, and print both; what was built is let go of before."""
    bare_seconds = seconds(lambda: bare(number))
    bare_peak = peak_bytes()  # before planning, since a peak only grows
    took = seconds(lambda: _planned(number))
    print(
        json.dumps(
            {"seconds": took, "peak": peak_bytes(), "bareSeconds": bare_seconds, "barePeak": bare_peak}
        )
    )


def _planned(number: int) -> None:
    planned = sum(one.partitions for one in dispatch_of(number).slices)
    if planned != number:
        raise RuntimeError(f"the slices hold {planned} partitions, not {number}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
