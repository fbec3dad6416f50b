"""A warm process that forks tasks, so that one costs milliseconds and not an interpreter with its imports.

Run by path. Orders come on standard input, one JSON object a line; each fork, stop and end of a task is told
on standard output in the same way. When standard input closes, it ends what is left and leaves; the kernel
closes it however the test process goes.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

import task

BROKEN = 99


class Forks:
    """Forks tasks on order, and tells what becomes of them."""

    def __init__(self) -> None:
        self._alive: dict[int, str] = {}
        self._wake, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Until standard input closes."""
        rest = b""
        while True:
            ready, _, _ = select.select([0, self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 1024)
                self._tell_changes()
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._fork(json.loads(line))

    def end(self) -> None:
        """Kill and reap what is left, frozen tasks too."""
        for pid in self._alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._alive:
            os.waitpid(pid, 0)

    def _fork(self, spec: dict[str, Any]) -> None:
        pid = os.fork()
        if not pid:
            become(spec)
        self._alive[pid] = spec["task"]
        tell({"task": spec["task"], "pid": pid})

    def _tell_changes(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
                pid, status = found
                name = self._alive[pid] if os.WIFSTOPPED(status) else self._alive.pop(pid)
                tell({"task": name, "status": status})


def tell(event: dict[str, Any]) -> None:
    """One line on standard output."""
    os.write(1, json.dumps(event).encode() + b"\n")


def become(spec: dict[str, Any]) -> NoReturn:
    """Be the task that is ordered, and leave with its exit code."""
    code = BROKEN
    try:
        # A group of its own: should this server be killed, the kernel ends the frozen ones of it (SIGHUP).
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()  # so short a life needs no collector, and it would copy the pages that it looks at
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        code = task.work(spec)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    task.warm_up()
    gc.freeze()
    forks = Forks()
    try:
        forks.serve()
    finally:
        forks.end()
