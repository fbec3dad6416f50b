"""Runs one server and ends it, with all it started, when the pipe on standard input closes.

Asking it to stop and dying are the same event: whoever started the guard holds the pipe's other end,
and the kernel closes that end however its holder goes, by SIGKILL too. So there is one way to clean up.

It is started by path with `python -I -S`: the standard library only, and nothing of trueup.
Its argument is a JSON object, see `Orders`.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TypedDict

KILL_AFTER_SECONDS = 5.0
PR_SET_CHILD_SUBREAPER = 36


class Orders(TypedDict):
    """What to run and what to leave behind: nothing of `folder`."""

    argv: list[str]
    env: dict[str, str]
    folder: str  # the log is written here; removed at the end
    user: int | None  # drop to this user and group first
    keep_fd: int | None  # one inherited descriptor that the server gets
    stop_signal: int


def main() -> None:
    """Run the server until it ends by itself or standard input closes; exit with its code."""
    orders: Orders = json.loads(sys.argv[1])
    try:
        code = _run(orders)
    finally:
        shutil.rmtree(orders["folder"], ignore_errors=True)
    sys.exit(code if code >= 0 else 128 - code)  # as a shell says it: 128 + the signal that ended it


def _run(orders: Orders) -> int:
    wake = _wake_on_signals()
    _adopt_orphans()
    server = _start(orders)
    try:
        _wait_for_the_end(wake, server)
    finally:
        _stop(server, orders["stop_signal"])
    return server.returncode


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable when a child ends or someone terminates the guard."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


def _adopt_orphans() -> None:
    """On Linux, become the parent of grandchildren whose parent ended, so that none is lost from sight."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _start(orders: Orders) -> subprocess.Popen[bytes]:
    user, kept = orders["user"], orders["keep_fd"]
    with open(os.path.join(orders["folder"], "log"), "ab") as log:
        server = subprocess.Popen(
            orders["argv"],
            env=orders["env"],
            cwd=orders["folder"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=() if kept is None else (kept,),
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    if kept is not None:
        os.close(kept)  # or clients of a dead server would wait in its queue instead of being refused
    return server


def _wait_for_the_end(wake: int, server: subprocess.Popen[bytes]) -> None:
    """Return when standard input has closed, the server has ended, or a signal other than SIGCHLD came."""
    while server.poll() is None:
        ready, _, _ = select.select([0, wake], [], [])
        if 0 in ready and not os.read(0, 1024):
            return
        if wake in ready and set(os.read(wake, 1024)) - {signal.SIGCHLD}:
            return


def _stop(server: subprocess.Popen[bytes], stop_signal: int) -> None:
    """Ask the server to stop, wait a little, then kill its group and whatever else was left to us."""
    if server.poll() is None:
        server.send_signal(stop_signal)
        with suppress(subprocess.TimeoutExpired):
            server.wait(KILL_AFTER_SECONDS)
    _kill_group(server.pid)
    server.wait()
    _bury_orphans()


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter for a group of zombies
        os.killpg(group, signal.SIGKILL)


def _bury_orphans() -> None:
    """Reap every child, killing those that live in a group of their own; done when there are none."""
    deadline = time.monotonic() + KILL_AFTER_SECONDS
    while time.monotonic() < deadline:
        for child in _children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    """The guard's children that have not been reaped; none where the system does not say (not Linux)."""
    try:
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as listing:
            return [int(pid) for pid in listing.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    main()
