"""Somebody with two shells, who does what a page or a command says, word by word."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .watching import SECONDS, TRUEUP

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.\w+)\n")
# It stays: it has a shell of its own, and is up as soon as it has said where everything is.
STAYS = re.compile(r"\S+(?: -m trueup\.cli)? up\b.*> (\S+)")
LAST_LINE = "# taskDefinitions"


@dataclass
class Follower:
    """Types commands into a shell, and those that stay into another; both begin in a folder.

    What a command prints is kept in `said`, with what it answers on standard error.
    """

    home: Path
    folder: Path
    said: list[str] = field(default_factory=list)
    staying: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def follow(self, page: str) -> None:
        """Do a page in its order: type blocks of `sh`, expect the lines of `text`, write all others to files.

        Those are called as their first line says.
        """
        for language, text in BLOCK.findall(page):
            if language == "sh":
                self.type(text)
            elif language == "text":
                self._expect(text)
            else:
                self._write(text)

    def type(self, commands: str) -> str:
        """Type lines into the shell, each of which has to go well; what they printed."""
        if stays := STAYS.fullmatch(commands.strip()):
            self._stay(commands.strip(), stays.group(1))
            return ""
        done = self._shell(f'{commands}\nexport -p > {self._state}; echo cd "$PWD" >> {self._state}')
        self.said.append(done.stdout)
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout

    def _expect(self, text: str) -> None:
        printed = [line.strip() for line in self.said[-1].splitlines()]
        assert [] == [line for line in text.splitlines() if line not in printed], self.said[-1]

    def _write(self, text: str) -> None:
        named = FILE.match(text)
        assert named is not None, f"the page does not say where this belongs:\n{text}"
        name = named.group(1)
        file = Path(self._shell("pwd").stdout.strip(), name)
        assert file.parent.is_dir(), f"the page names no folder {file.parent.name} before {name}"
        file.write_text(text, encoding="utf-8")

    @property
    def _state(self) -> str:
        return shlex.quote(str(self.home / ".state"))

    def _shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """In the folder and the environment that the line before left."""
        # -a: what the next shell has to know are the environment's variables and the others.
        before = f"set -ea\nif [ -f {self._state} ]; then . {self._state}; fi\n"
        return subprocess.run(
            ["/bin/sh", "-c", before + script],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=240,
        )

    def _environment(self) -> dict[str, str]:
        """That of somebody who has just logged in, with the command line at hand."""
        path = f"{TRUEUP.parent}{os.pathsep}{os.environ['PATH']}"
        return {
            "PATH": path,
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _stay(self, command: str, told: str) -> None:
        before = f"if [ -f {self._state} ]; then . {self._state}; fi\n"
        script = f"{before}exec {command}"
        env = self._environment()
        staying = subprocess.Popen(["/bin/sh", "-c", script], cwd=self.folder, env=env)
        self.staying.append(staying)
        file = Path(self._shell("pwd").stdout.strip(), told)
        deadline = time.monotonic() + 2 * SECONDS
        while not (file.exists() and LAST_LINE in file.read_text(encoding="utf-8")):
            assert staying.poll() is None, f"{command} ended with {staying.returncode}"
            assert time.monotonic() < deadline, f"{command} is not up"
            time.sleep(0.1)


@contextmanager
def follower(home: Path, folder: Path) -> Iterator[Follower]:
    """Somebody at a prompt in a folder, who closes what stays at the end."""
    # Children of a shell's background jobs are started deaf to Ctrl-C, and hand that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    somebody = Follower(home, folder)
    try:
        yield somebody
    finally:
        for one in somebody.staying:
            if one.poll() is None:
                one.send_signal(signal.SIGINT)
            one.wait(timeout=60)
