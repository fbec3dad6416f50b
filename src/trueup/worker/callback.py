"""What may wait for a task's word, and what the task says to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trueup.artifacts import result_key_of
from trueup.exits import TASK_ENDED, Exit
from trueup.model.base import sha256
from trueup.model.result import ResultContract


class Callback(Protocol):
    """The state that waits. None of these raises: what is not heard is found out by its silence."""

    def beat(self) -> None:
        """Say that the task is alive."""

    def succeed(self, result: Mapping[str, Any]) -> None:
        """Say that the slice is finished, and where its result is."""

    def fail(self, error: str, cause: Mapping[str, Any]) -> None:
        """Say that the task leaves early, and how."""


class NoCallback:
    """Nobody waits but for the exit code."""

    def beat(self) -> None:
        """Say nothing."""

    def succeed(self, result: Mapping[str, Any]) -> None:
        """Say nothing."""

    def fail(self, error: str, cause: Mapping[str, Any]) -> None:
        """Say nothing."""


def tell(callback: Callback, code: Exit, contract: ResultContract | None) -> None:
    """The task's last word: where its result is and its hash, or the exit code with which it leaves."""
    if code is Exit.DONE and contract is not None:
        key = result_key_of(
            contract.run_id, contract.phase, contract.slice_id, contract.launch, contract.task_arn
        )
        data = contract.model_dump_json(by_alias=True).encode()
        callback.succeed({"key": key, "sha256": sha256(data)})
    else:
        callback.fail(TASK_ENDED, {"exitCode": int(code)})
