"""Transitions a second of executions that go round in loops, several at once beside a single one."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.figures import Figure
from bench.machines import Served, engine

LOOPS = 8
ROUNDS = 2_000
"""Rounds of one loop: four events each, of 25,000 that a history holds."""
LEAST = 5_000

COUNT_DOWN = {
    "StartAt": "Count down",
    "States": {
        "Count down": {
            "Type": "Pass",
            "Parameters": {"left.$": "States.MathAdd($.left, -1)"},
            "Next": "Is it over?",
        },
        "Is it over?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.left", "NumericGreaterThan": 0, "Next": "Count down"}],
            "Default": "Over",
        },
        "Over": {"Type": "Succeed"},
    },
}


def measure(loops: int = LOOPS, rounds: int = ROUNDS) -> Iterator[Figure]:
    """All loops at once, then one alone."""
    with engine() as ours:
        arn = ours.create("loops", COUNT_DOWN)
        together, alone = (round(speed(ours, arn, count, rounds)) for count in (loops, 1))
    reference = "one loop alone"
    yield Figure("loops", together, "transitions/s", reference, alone, f"at least {LEAST}", together >= LEAST)


def speed(ours: Served, arn: str, loops: int, rounds: int) -> float:
    """Transitions a second from the first start to the last end."""
    started = time.perf_counter()
    for execution in [ours.start(arn, {"left": rounds}) for _ in range(loops)]:
        ours.wait(execution)
    return loops * (2 * rounds + 1) / (time.perf_counter() - started)
