"""Task tokens: who waits for which callback, and what a late or wrong one is told."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.errors import ApiError, StateError
from trueup.local.stepfunctions.values import Document

TOKEN_BYTES = 480
"""Real tokens are hundreds of characters of Base64 with + / =; ours have 640, to exercise their carriers."""
_MARK = 32


@dataclass(slots=True)
class Waiting:
    """A task that waits for its callback. The future gets the output, or the failure that was sent."""

    token: str
    future: asyncio.Future[Document] = field(default_factory=asyncio.Future)
    beats: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    """Whether the task has ended."""


class Tokens:
    """All task tokens of an engine. Tokens are signed, so that a made-up one is told from a forgotten one."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._key = chance.letters(_MARK).encode()
        self._open: dict[str, Waiting] = {}
        self._closed: set[bytes] = set()

    def issue(self) -> Waiting:
        """A new token, and who waits for it."""
        body = base64.b64decode(self._chance.letters(TOKEN_BYTES - _MARK))
        token = base64.b64encode(body + self._mark(body)).decode()
        waiting = Waiting(token)
        self._open[token] = waiting
        return waiting

    def close(self, waiting: Waiting) -> None:
        """The task has ended: whoever calls from now on is late."""
        waiting.closed = True
        if self._open.pop(waiting.token, None) is not None:
            self._closed.add(_digest(waiting.token))

    def succeed(self, token: str, output: Document) -> None:
        """SendTaskSuccess. Raises ApiError."""
        self._settle(token, lambda future: future.set_result(output))

    def fail(self, token: str, error: str | None, cause: str | None) -> None:
        """SendTaskFailure. Raises ApiError."""
        self._settle(token, lambda future: future.set_exception(StateError(error, cause)))

    def beat(self, token: str) -> None:
        """SendTaskHeartbeat. Raises ApiError."""
        self._find(token).beats.set()

    def _settle(self, token: str, settle: Callable[[asyncio.Future[Document]], None]) -> None:
        waiting = self._find(token)
        settle(waiting.future)
        # A failure that nobody gets to read is not an error of the engine.
        waiting.future.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.close(waiting)

    def _find(self, token: str) -> Waiting:
        waiting = self._open.get(token)
        if waiting is not None:
            return waiting
        if _digest(token) in self._closed:
            raise ApiError("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
        if self._is_ours(token):
            raise ApiError("TaskDoesNotExist", "Task does not exist: 'Provided task does not exist'")
        raise ApiError("InvalidToken", "Invalid Token: 'Invalid token'")

    def _is_ours(self, token: str) -> bool:
        try:
            raw = base64.b64decode(token, validate=True)
        except ValueError:
            return False
        return len(raw) == TOKEN_BYTES and hmac.compare_digest(raw[-_MARK:], self._mark(raw[:-_MARK]))

    def _mark(self, body: bytes) -> bytes:
        return hmac.new(self._key, body, hashlib.sha256).digest()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
