"""State machines at work on a Step Functions in a process of its own: what the benchmarks of it share."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from bench.figures import MIB, ROOT, high_water_bytes
from trueup.local.aws import client

ROLE = "arn:aws:iam::000000000000:role/bench"
POLL_SECONDS = 0.02
MOST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Served:
    """A Step Functions that answers at an address."""

    api: Any
    process: psutil.Process

    def memory(self) -> float:
        """The MiB that it holds now."""
        return float(self.process.memory_info().rss) / MIB

    def peak(self) -> float:
        """The most MiB that it has held at once; what it holds now, where the system does not tell."""
        return high_water_bytes(self.process.pid) / MIB or self.memory()

    def create(self, name: str, definition: Mapping[str, Any]) -> str:
        """A machine's ARN."""
        made = self.api.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)
        return str(made["stateMachineArn"])

    def start(self, machine: str, given: Any) -> str:
        """An execution's ARN."""
        return str(self.api.start_execution(stateMachineArn=machine, input=json.dumps(given))["executionArn"])

    def wait(self, execution: str) -> None:
        """Until it has succeeded. Raises RuntimeError where it does not."""
        end = time.monotonic() + MOST_SECONDS
        while (told := self.api.describe_execution(executionArn=execution))["status"] == "RUNNING":
            if time.monotonic() > end:
                raise RuntimeError(f"{execution} did not end within {MOST_SECONDS:g} s")
            time.sleep(POLL_SECONDS)
        if told["status"] != "SUCCEEDED":
            raise RuntimeError(f"{execution} ended as {told['status']}: {told.get('cause')}")


@contextmanager
def engine(endpoints: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Ours, as `python -m trueup.local.stepfunctions` runs it."""
    argv = [sys.executable, "-m", "trueup.local.stepfunctions", "--port", "0"]
    for service, url in (endpoints or {}).items():
        argv += ["--endpoint", f"{service}={url}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().rpartition(" ")[2].strip()
            yield Served(client("stepfunctions", url), psutil.Process(process.pid))
        finally:
            process.terminate()


def served_by(endpoint: str) -> Served:
    """What listens at a local address, with the process that does."""
    port = int(endpoint.rpartition(":")[2])
    owners = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid
    }
    return Served(client("stepfunctions", endpoint), psutil.Process(min(owners)))
