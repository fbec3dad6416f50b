"""Programs of the local stack as processes that cannot outlive us.

A `Guard` is a process that owns a folder and runs programs in it (see `_guard.py`). It ends them and removes
the folder when it is closed, and also when this process is killed without a chance to clean up. It comes
first, and makes the folder: whatever lies there, a copy that was half made too, goes with it.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trueup.errors import LocalStackError

GUARD = Path(__file__).with_name("_guard.py")
POLL_SECONDS = 0.02
LOG_TAIL_LINES = 20
_CHUNK = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run: exactly this environment, output to the end of `log`.

    `user` is whom root runs it as.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    log: Path
    user: int | None = None
    stop_signal: signal.Signals = signal.SIGTERM


class Guard:
    """A guard that runs. `folder` is its own, where it has one."""

    def __init__(self, *place: str) -> None:
        self._line, theirs = socket.socketpair()
        self._rest = b""
        with theirs:
            # A session of its own: Ctrl-C in the terminal is for us, and we then stop all in good order.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *place],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        told = self._hear() or {"error": "its guard ended"}
        if "error" in told:
            self.close()
            raise no_folder(told["error"])
        self.folder = Path(told["folder"])

    def fileno(self) -> int:
        """Becomes readable when a program has ended, or the guard has."""
        return self._line.fileno()

    def start(self, program: Program, stdin: socket.socket | None = None) -> None:
        """Start a program; a socket may become its standard input, and is closed here."""
        order = {
            "argv": [str(word) for word in program.argv],
            "env": dict(program.env),
            "cwd": str(program.folder),
            "log": str(program.log),
            "user": program.user,
            "stop_signal": int(program.stop_signal),
        }
        with suppress(ConnectionError):  # a guard that is gone is found when its news are asked for
            if stdin is not None:
                # Ahead of the order, in white space: a long message might go in pieces.
                socket.send_fds(self._line, [b" "], [stdin.fileno()])
            self._line.sendall(json.dumps(order).encode() + b"\n")
        if stdin is not None:
            stdin.close()

    def serve(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        user: int | None = None,
        hand_over: socket.socket | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> Server:
        """Start a server in the guard's folder, with a file `log` there; it ends with the guard.

        `user` is whom root runs it as; `hand_over` a bound socket that becomes its standard input, and that
        is closed here.
        """
        log = self.folder / "log"
        self.start(
            Program(argv=argv, env=env, folder=self.folder, log=log, user=user, stop_signal=stop_signal),
            hand_over,
        )
        return Server(name, self, log)

    def run(self, program: Program) -> int:
        """Run a program to its end, and give its exit code."""
        self.start(program)
        return self.wait()

    def ended(self) -> int | None:
        """The exit code of the program if it has ended, without waiting. To be asked until it has."""
        ready, _, _ = select.select([self._line], [], [], 0)
        return self.wait() if ready else None

    def wait(self) -> int:
        """The exit code of the program, when it has ended; that of SIGKILL where the guard was killed."""
        told = self._hear()
        return 128 + signal.SIGKILL if told is None else int(told["code"])

    def _hear(self) -> dict[str, Any] | None:
        while b"\n" not in self._rest:
            try:
                data = self._line.recv(_CHUNK)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    def close(self) -> None:
        """End what runs; return when all of it, and the folder, is gone."""
        self._line.close()
        self._process.wait()


@contextmanager
def guard(prefix: str = "", parent: str | None = None) -> Iterator[Guard]:
    """A guard while the block lasts; its folder is made in `parent`, else in the folder for temporary files.

    Without a prefix it has none. Raises LocalStackError where the folder cannot be made.
    """
    made = Guard(*((parent or temporary(), prefix) if prefix else ()))
    try:
        yield made
    finally:
        made.close()


def temporary() -> str:
    """The folder for temporary files. Raises LocalStackError where there is none to write to."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise no_folder(error.strerror or str(error)) from error


def no_folder(why: str) -> LocalStackError:
    """That there is no folder for temporary files."""
    return LocalStackError(
        f"The local stack has no folder for its files ({why}).",
        remedy="Make room, or set TMPDIR to a folder that you may write to.",
    )


class Server:
    """A server: what it logged, and whether it still lives."""

    def __init__(self, name: str, guard: Guard, log: Path) -> None:
        self.name = name
        self._guard = guard
        self._log = log
        self._code: int | None = None

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        if self._code is None:
            self._code = self._guard.ended()
        return self._code

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return as soon as `ready()` is true.

        Raises LocalStackError, with the end of the log, when the server ends first or time runs out.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self.code is not None:
                self._did_not_start(f"ended with exit code {self.code} before it was ready")
            if time.monotonic() > deadline:
                self._did_not_start(f"was not ready within {seconds:g} seconds")
            time.sleep(POLL_SECONDS)

    def _did_not_start(self, how: str) -> NoReturn:
        raise LocalStackError(
            f"{self.name} {how}. {self.last_words()}",
            remedy="Run `make clean` and try again; if it stays so, report the lines above.",
        )

    def last_words(self) -> str:
        """The end of its log, for people."""
        return last_words(self._log)

    def fileno(self) -> int:
        """Becomes readable when it ends."""
        return self._guard.fileno()


Started = Callable[[Server], None]
"""Hears of a server that was started."""


def nobody(server: Server) -> None:
    """For who needs to know nothing of servers."""


def last_words(log: Path) -> str:
    """The end of a log, for people."""
    found = tail(log).splitlines()[-LOG_TAIL_LINES:]
    lines = "\n".join(f"  {line}" for line in found) or "  (empty)"
    return f"The end of its log:\n{lines}\n"


def tail(log: Path) -> str:
    """The last bytes of a log, as text; none where there is no log."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _CHUNK))
        return file.read().decode(errors="replace")
