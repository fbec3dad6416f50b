"""Faults given while the stack runs.

GET    /_faults   every fault as it was given, with how often it struck so far
POST   /_faults   {"faults": […]}, as in a file: give more
DELETE /_faults   take all of them back
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueup.errors import UsageError
from trueup.local.faults.board import Board
from trueup.local.faults.model import Fault, as_plan
from trueup.local.stepfunctions.values import from_text

PATH = "/_faults"


def answer(board: Board, method: str, body: bytes, added: Callable[[], None]) -> tuple[int, dict[str, Any]]:
    """Status and document of the answer; `added` is called after faults were given."""
    try:
        if method == "POST":
            board.add(_faults(body))
            added()
        elif method == "DELETE":
            board.clear()
        elif method != "GET":
            return 405, {"error": f"{method} is none of GET, POST, DELETE."}
    except UsageError as error:
        return 400, {"error": str(error)}
    except ValueError as error:
        return 400, {"error": f"The body has to be JSON: {error}"}
    return 200, board.told()


def _faults(body: bytes) -> tuple[Fault, ...]:
    plan = as_plan(from_text(body), "body")
    if "seed" in plan.model_fields_set:
        raise UsageError("The seed is chosen when the stack starts.", remedy="Leave it out.")
    return plan.faults
