"""A Distributed Map whose children call nothing, beside the same on MiniStack and on moto.

`python -m bench.fan_out CHILDREN` runs it on moto, in this process, and prints the seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench.figures import Figure, in_own_process, rounded
from bench.machines import ROLE, Served, engine, served_by
from trueup.local.aws import client, ministack

CHILDREN = 10_000
MOTO_CHILDREN = 1_000
"""moto's workers recurse: with many more it ends in a RecursionError."""
MOST_SECONDS = 5
MOST_MIB = 600

CHILD: dict[str, Any] = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "Take it",
    "States": {
        "Take it": {"Type": "Pass", "Next": "Is it a number?"},
        "Is it a number?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$", "NumericGreaterThanEquals": 0, "Next": "Hand it on"}],
            "Default": "Done",
        },
        "Hand it on": {"Type": "Pass", "Next": "Done"},
        "Done": {"Type": "Succeed"},
    },
}
FAN_OUT = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": CHILD,
            "ResultPath": None,
            "End": True,
        }
    },
}


def measure(children: int = CHILDREN, moto_children: int = MOTO_CHILDREN) -> Iterator[Figure]:
    """Seconds and memory beside MiniStack's, and the seconds of fewer children beside moto's."""
    with engine() as ours:
        few = run(ours, moto_children)[0]
    with engine() as ours:
        seconds, memory = run(ours, children)
    with ministack(["stepfunctions"]) as endpoint:
        their_seconds, their_memory = run(served_by(endpoint), children)
    yield Figure(
        "fan-out",
        rounded(seconds),
        "s",
        f"MiniStack, the same {children:,} children",
        rounded(their_seconds),
        f"at most {MOST_SECONDS} s",
        seconds <= MOST_SECONDS,
    )
    yield Figure(
        "fan-out memory",
        rounded(memory),
        "MiB",
        f"MiniStack, the same {children:,} children",
        rounded(their_memory),
        f"at most {MOST_MIB} MiB",
        memory <= MOST_MIB,
    )
    moto = rounded(in_own_process("fan_out", moto_children))
    yield Figure("fan-out, few", rounded(few), "s", f"moto, the same {moto_children:,} children", moto)


def run(served: Served, children: int) -> tuple[float, float]:
    """Seconds from starting to the end, and the most MiB held."""
    machine = served.create("fan-out", FAN_OUT)
    started = time.perf_counter()
    served.wait(served.start(machine, {"items": list(range(children))}))
    return time.perf_counter() - started, served.peak()


def on_moto(children: int) -> float:
    """Seconds from starting to the end, on moto within this process."""
    from moto import mock_aws

    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        api = client("stepfunctions", None)  # type: ignore[arg-type]  # moto stands where AWS would
        made = api.create_state_machine(name="fan-out", definition=json.dumps(FAN_OUT), roleArn=ROLE)
        started = time.perf_counter()
        given = json.dumps({"items": list(range(children))})
        execution = api.start_execution(stateMachineArn=made["stateMachineArn"], input=given)["executionArn"]
        while (status := api.describe_execution(executionArn=execution)["status"]) == "RUNNING":
            time.sleep(0.01)
        if status != "SUCCEEDED":
            raise RuntimeError(f"the Map ended as {status} on moto")
        return time.perf_counter() - started


if __name__ == "__main__":
    print(json.dumps(on_moto(int(sys.argv[1]))))
