"""Calls of one of the stack's functions that come at once share the processes that are ready first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trueup.local.stepfunctions import Answer, ServiceFailure
from trueup.local.turns import TakingTurns

from .virtual_time import run

COLD, WARM = 0.8, 0.05
ACCEPT = "arn:aws:lambda:us-east-1:000000000000:function:trueup-accept"


class Emulator:
    """Gives a call an idle process where there is one, else a new one."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.processes = self.idle = 0

    async def call(self, service: str, action: str, parameters: Any) -> Answer:
        if self.idle:
            self.idle -= 1
        else:
            self.processes += 1
            await asyncio.sleep(COLD)
        await asyncio.sleep(WARM)
        self.idle += 1
        if self.fails:
            raise ServiceFailure("TooManyRequestsException", "Rate Exceeded.")
        return Answer({})


async def sixteen(emulator: Emulator, service: str, action: str, name: str) -> float:
    """How long sixteen calls at once take."""
    calls = TakingTurns(emulator, "trueup-", cores=2)
    called = (calls.call(service, action, {"FunctionName": name}) for _ in range(16))
    await asyncio.gather(*called, return_exceptions=True)
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", [ACCEPT, "trueup-accept"])
def test_as_many_processes_as_cores_answer_all(name: str, fails: bool) -> None:
    emulator = Emulator(fails)
    assert run(sixteen(emulator, "lambda", "invoke", name)) == pytest.approx(COLD + 8 * WARM)
    assert emulator.processes == 2


@pytest.mark.parametrize(
    ("service", "action", "name"),
    [
        ("lambda", "invoke", "somebody-elses"),
        ("lambda", "getFunction", ACCEPT),
        ("scheduler", "invoke", ACCEPT),
        ("lambda", "invoke", "arn:aws:lambda:us-east-1:000000000000:function:not-trueup-accept"),
    ],
)
def test_nothing_else_waits(service: str, action: str, name: str) -> None:
    emulator = Emulator()
    assert run(sixteen(emulator, service, action, name)) == pytest.approx(COLD + WARM)
    assert emulator.processes == 16


def test_functions_do_not_wait_for_one_another() -> None:
    async def three() -> float:
        calls = TakingTurns(Emulator(), "trueup-", cores=1)
        names = ("trueup-start", "trueup-plan", "trueup-settle")
        await asyncio.gather(*(calls.call("lambda", "invoke", {"FunctionName": name}) for name in names))
        return asyncio.get_running_loop().time()

    assert run(three()) == pytest.approx(COLD + WARM)
