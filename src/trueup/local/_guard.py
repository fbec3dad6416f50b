"""Owns a folder and runs programs in it, one at a time; at its end neither they nor the folder are left.

Standard input is one end of a socket pair, and whoever started the guard holds the other. The kernel closes
that one however its holder goes, by SIGKILL too; asking the guard to end and dying are the same event, so
there is one way to clean up. The guard makes the folder itself: there is no moment at which it has no owner.

On the socket go JSON objects, a line each: news out, orders (see `Orders`) in.

    {"folder": path}  or  {"error": why there is none}      at the start
    {"code": number}                                        when the program of an order has ended, and all
                                                            that it started

It is started by path with `python -I -S`, the standard library only and nothing of trueup. Its arguments are
the folder's parent and the first part of its name; without them it has no folder.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import TypedDict

KILL_AFTER_SECONDS = 5.0
PR_SET_CHILD_SUBREAPER = 36
CHUNK = 65536
CANNOT_START = 127


class Orders(TypedDict):
    """What to run. A descriptor that is sent along becomes its standard input."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    log: str  # its output goes to the end of this file
    user: int | None  # drop to this user and group first
    stop_signal: int


class Gone(Exception):
    """Whoever started the guard is gone, or wants it to end."""


def main() -> None:
    """Own the folder, and obey orders until the end."""
    wake = _wake_on_signals()
    _adopt_orphans()
    folder = ""
    try:
        folder = _make_folder(sys.argv[1:])
        Guard(socket.socket(fileno=os.dup(0)), wake).obey(folder)
    except (Gone, ConnectionError):
        pass
    finally:
        _remove(folder)


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


def _make_folder(place: list[str]) -> str:
    if not place:
        return ""
    parent, prefix = place
    folder = os.path.join(parent, prefix + os.urandom(4).hex())
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        _send(0, {"error": f"{parent}: {error.strerror}"})
        raise Gone from error
    return folder


def _send(descriptor: int, news: dict[str, object]) -> None:
    line = json.dumps(news).encode() + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]


class Guard:
    """Runs what it is ordered to."""

    def __init__(self, line: socket.socket, wake: int) -> None:
        self._line = line
        self._wake = wake
        self._rest = b""
        self._given: list[int] = []

    def obey(self, folder: str) -> None:
        """Run one program after the other. Raises Gone at the end of it all."""
        self._tell({"folder": folder})
        while True:
            code = self._run(self._next())
            # As a shell says it: 128 + the signal that ended it.
            self._tell({"code": code if code >= 0 else 128 - code})

    def _tell(self, news: dict[str, object]) -> None:
        _send(self._line.fileno(), news)

    def _next(self) -> Orders:
        while b"\n" not in self._rest:
            self._wait()
        line, _, self._rest = self._rest.partition(b"\n")
        orders: Orders = json.loads(line)
        return orders

    def _run(self, orders: Orders) -> int:
        stdin = self._given.pop() if self._given else subprocess.DEVNULL
        try:
            program = _start(orders, stdin)
        except OSError as error:
            _note(orders["log"], error)
            return CANNOT_START
        finally:
            if stdin >= 0:
                os.close(stdin)  # or clients of a dead server would wait in its queue, and not be refused
        try:
            while program.poll() is None:
                self._wait()
        finally:
            _stop(program, orders["stop_signal"])
        return program.returncode

    def _wait(self) -> None:
        """Until something happened: an order came, a child ended. Raises Gone when it is time to end."""
        ready, _, _ = select.select([self._line.fileno(), self._wake], [], [])
        if self._wake in ready and set(os.read(self._wake, CHUNK)) - {signal.SIGCHLD}:
            raise Gone
        if self._line.fileno() in ready:
            data, given, _, _ = socket.recv_fds(self._line, CHUNK, 1)
            if not data:
                raise Gone
            self._given += given
            self._rest += data


def _start(orders: Orders, stdin: int) -> "subprocess.Popen[bytes]":
    user = orders["user"]
    with open(orders["log"], "ab") as log:
        return subprocess.Popen(
            orders["argv"],
            env=orders["env"],
            cwd=orders["cwd"],
            stdin=stdin,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )


def _note(log: str, error: OSError) -> None:
    with suppress(OSError), open(log, "a") as text:
        text.write(f"{error}\n")


def _stop(program: "subprocess.Popen[bytes]", stop_signal: int) -> None:
    """Ask the program to stop, wait a little, then kill its group and whatever else was left to us."""
    if program.poll() is None:
        program.send_signal(stop_signal)
        with suppress(subprocess.TimeoutExpired):
            program.wait(KILL_AFTER_SECONDS)
    _kill_group(program.pid)
    program.wait()
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


def _remove(folder: str) -> None:
    """Whoever started the guard may have been writing there until it died: so more than once, if need be."""
    deadline = time.monotonic() + KILL_AFTER_SECONDS
    while folder and os.path.exists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
