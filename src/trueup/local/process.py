"""Servers of the local stack as processes that cannot outlive us.

`guarded(...)` starts a server under a guard (see `_guard.py`), which ends the server and removes its
folder when the `with` block is left, and also when this process is killed without a chance to clean up.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from trueup.errors import LocalStackError

GUARD = Path(__file__).with_name("_guard.py")
POLL_SECONDS = 0.02
LOG_TAIL_LINES = 20


class Server:
    """A running server: what it logged, and whether it still lives."""

    def __init__(self, name: str, folder: Path, guard: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.folder = folder
        self._guard = guard
        self._log = (folder / "log").open("rb")  # stays readable after the guard has removed the folder

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return as soon as `ready()` is true.

        Raises LocalStackError, with the end of the log, when the server ends first or time runs out.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self._guard.poll() is not None:
                self._did_not_start(f"ended with exit code {self._guard.returncode} before it was ready")
            if time.monotonic() > deadline:
                self._did_not_start(f"was not ready within {seconds:g} seconds")
            time.sleep(POLL_SECONDS)

    def _did_not_start(self, how: str) -> NoReturn:
        self._log.seek(0)
        tail = self._log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        lines = "\n".join(f"  {line}" for line in tail) or "  (empty)"
        raise LocalStackError(
            f"{self.name} {how}. The end of its log:\n{lines}\n",
            remedy="Run `make clean` and try again; if it stays so, report the lines above.",
        )

    def stop(self) -> None:
        """End the server and what it started; return when all of it, and its folder, is gone."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
        self._log.close()


@contextmanager
def guarded(
    name: str,
    argv: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    user: int | None = None,
    hand_over: socket.socket | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[Server]:
    """Run `argv` in `folder` with exactly `env` while the block lasts, writing to `folder`/log.

    `folder` belongs to the server and is removed at the end.
    `user` is whom root runs it as; `hand_over` a bound socket that it inherits and that is closed here.
    """
    orders = {
        "argv": [str(word) for word in argv],
        "env": dict(env),
        "folder": str(folder),
        "user": user,
        "keep_fd": hand_over.fileno() if hand_over else None,
        "stop_signal": int(stop_signal),
    }
    server = Server(name, folder, _start_guard(orders, folder / "log", hand_over))
    try:
        yield server
    finally:
        server.stop()


def _start_guard(
    orders: Mapping[str, object], log: Path, hand_over: socket.socket | None
) -> subprocess.Popen[bytes]:
    with log.open("ab") as errors:
        # A session of its own: Ctrl-C in the terminal is for us, and we then stop the server in good order.
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), json.dumps(orders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            pass_fds=() if hand_over is None else (hand_over.fileno(),),
        )
    if hand_over is not None:
        hand_over.close()
    return guard
