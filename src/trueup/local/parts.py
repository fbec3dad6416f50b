"""The servers that a stack cannot do without: who waits for something of the stack hears when one ends."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager

from trueup.errors import LocalStackError
from trueup.local.process import Server


class Parts:
    """The servers of one stack. For one thread."""

    def __init__(self) -> None:
        self._servers: list[Server] = []

    def add(self, server: Server) -> None:
        """Watch a further one."""
        self._servers.append(server)

    def wait(self, seconds: float | None = None) -> None:
        """Wait so long, or for ever. Raises LocalStackError as soon as one has ended."""
        self.check()
        select.select(self._servers, [], [], seconds)
        self.check()

    def check(self) -> None:
        """Raises LocalStackError, with its last words, where one has ended."""
        for server in self._servers:
            if server.code is not None:
                raise LocalStackError(
                    f"{server.name} ended with exit code {server.code}, and the stack with it. "
                    f"{server.last_words()}",
                    remedy="Start the stack again; if it ends again, report the lines above.",
                )

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Whatever goes wrong in the block because one has ended is told as that."""
        try:
            yield
        except Exception as error:
            try:
                self.check()
            except LocalStackError as ended:
                raise ended from error
            raise
