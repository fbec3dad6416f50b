"""The process that is parent to all tasks: it forks them, tells how they end, and outlives none of them.

Run by path with `python -P` and a JSON list of what to import first (modules, or paths of scripts).
Standard input is one end of a socket pair. Orders come in and news go out on it, a JSON object a line:

    {"do": "start", "name", "argv", "folder", "environment", "log"}   ->  {"name", "pid"} or {"name", "error"}
    {"do": "signal", "name", "number", "all"}                         to the first process, or to its group
                                                                      ->  {"name", "status"} when it has ended

The kernel closes the other end however the stack goes, by SIGKILL too; then every task is killed. Should the
nursery itself be killed, Linux kills its children (PR_SET_PDEATHSIG), and the guard that it runs under finds
what those had started.

A task is forked and executed. One that is `python -m <module>` with a module that was imported beforehand is
forked only, and runs the module as `python -m` does: it begins in milliseconds. At its end it does what the
interpreter does, but leaves memory to the kernel. There is one thread here, so that forking is safe.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_EXECUTE = 126
CHUNK = 65536
LIBRARY = ctypes.CDLL(None)

Order = dict[str, Any]


class Nursery:
    """Children by their names."""

    def __init__(self, line: socket.socket, warm: frozenset[str]) -> None:
        self._line = line
        self._warm = warm
        self._rest = b""
        self._pids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._own = os.getpid()
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> Order | None:
        """Until the stack is gone: None. In a forked child: what it shall become."""
        while True:
            ready, _, _ = select.select([self._line.fileno(), self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, CHUNK)
                self._bury()
            if self._line.fileno() in ready:
                lines = self._hear()
                if lines is None:
                    return None
                for line in lines:
                    become = self._obey(json.loads(line))
                    if become is not None:
                        return become

    def end(self) -> None:
        """Kill and bury every child, and what children left behind."""
        if os.getpid() != self._own:
            return  # a child that failed on its first steps: its siblings are none of its business
        for pid in self._names:
            _kill_group(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                self._kill_orphans(set())
                time.sleep(0.005)

    def _hear(self) -> list[bytes] | None:
        try:
            data = self._line.recv(CHUNK)
        except OSError:  # reset: the stack was killed with news unread
            data = b""
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def _tell(self, **news: Any) -> None:
        with suppress(OSError):  # the stack is gone: so will we be
            self._line.sendall(json.dumps(news).encode() + b"\n")

    def _obey(self, order: Order) -> Order | None:
        if order["do"] == "start":
            return self._start(order)
        pid = self._pids.get(order["name"])
        if pid is not None and order["all"]:
            _kill_group(pid, order["number"])
        elif pid is not None:
            os.kill(pid, order["number"])
        return None

    def _start(self, order: Order) -> Order | None:
        reader, writer = os.pipe()  # closed by a program that begins; else it says why it does not
        pid = os.fork()
        if not pid:
            os.close(reader)
            self._leave()
            return {**order, "complain": writer, "warm": self._warm_module(order["argv"])}
        os.close(writer)
        with os.fdopen(reader, "rb") as complaint:
            error = complaint.read().decode()
        if error:
            os.waitpid(pid, 0)
            self._tell(name=order["name"], error=error)
            return None
        self._pids[order["name"]], self._names[pid] = pid, order["name"]
        self._tell(name=order["name"], pid=pid)
        return None

    def _warm_module(self, argv: list[str]) -> str | None:
        if argv[:2] == [sys.executable, "-m"] and len(argv) > 2 and argv[2] in self._warm:
            return argv[2]
        return None

    def _leave(self) -> None:
        """In a child: nothing of the nursery stays, and the child goes when the nursery does."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._wake)
        os.close(self._waker)
        os.setpgid(0, 0)
        if sys.platform == "linux":
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self._own:
                os._exit(CANNOT_EXECUTE)

    def _bury(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                name = self._names.pop(pid, None)
                if name is None:
                    continue  # an orphan of a child
                del self._pids[name]
                # A container ends with its first process.
                _kill_group(pid, signal.SIGKILL)
                self._kill_orphans(set(self._names))
                self._tell(name=name, status=os.waitstatus_to_exitcode(status))

    def _kill_orphans(self, spared: set[int]) -> None:
        """Those whose parent, a task, ended before them, and who left its group; Linux hands them to us."""
        for child in set(_children()) - spared:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def become(order: Order) -> None:
    """In a child: be the task. Comes back only for a module that was imported beforehand, to be run."""
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for target, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, target)
        os.close(null)
        os.close(log)
        os.chdir(order["folder"])
        if order["warm"] is None:
            os.execvpe(order["argv"][0], order["argv"], order["environment"])  # noqa: S606  no shell
    except (OSError, ValueError) as error:
        os.write(order["complain"], f"{type(error).__name__}: {error}".encode())
        os._exit(CANNOT_EXECUTE)
    os.close(order["complain"])


def run_warm(order: Order) -> NoReturn:
    """Run the module as `python -m` does, in this environment, and leave with its exit code."""
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [order["folder"], *(path for path in added if path and path not in sys.path)]
    sys.argv = ["-m", *order["argv"][3:]]
    code = 0
    try:
        runpy.run_module(order["warm"], run_name="__main__", alter_sys=True)
    except SystemExit as left:
        code = _exit_code(left.code)
    except BaseException:
        traceback.print_exc()
        code = 1
    # What the interpreter does at its end, in its order; taking down every module costs 50 ms for nothing.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _exit_code(given: object) -> int:
    """As sys.exit takes it: a number, nothing, or a last word that means 1."""
    if given is None:
        return 0
    if isinstance(given, int):
        return given & 0xFF
    sys.stderr.write(f"{given}\n")
    return 1


def _prctl(option: int, value: int) -> None:
    LIBRARY.prctl(option, value, 0, 0, 0)


def _kill_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _children() -> list[int]:
    try:
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as listing:  # noqa: PTH123  no pathlib here
            return [int(pid) for pid in listing.read().split()]
    except OSError:
        return []


def main() -> None:
    """Import what was named, then serve; a child leaves by becoming its task."""
    line = socket.socket(fileno=os.dup(0))
    warm = json.loads(sys.argv[1])
    for name in warm:
        if name.endswith(".py"):
            runpy.run_path(name)
        else:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or every child copies the pages that its collector touches
    if sys.platform == "linux":
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    nursery = Nursery(line, frozenset(warm))
    order: Order | None = None
    try:
        order = nursery.serve()
    finally:
        if order is None:
            nursery.end()
    if order is not None:
        line.close()
        become(order)
        run_warm(order)


if __name__ == "__main__":
    main()
