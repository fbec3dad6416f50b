"""ECS behind HTTP: as a coroutine, or in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from trueup.local.ecs.api.admin import harm
from trueup.local.ecs.api.app import make_app
from trueup.local.ecs.containers import ContainerLauncher, Containers
from trueup.local.ecs.environment import Secrets, no_secrets
from trueup.local.ecs.fargate import HOUR, PACE, Fargate, Settings, Sink
from trueup.local.ecs.faults import Faults, NoFaults
from trueup.local.ecs.images import Images
from trueup.local.ecs.names import DEFAULT_ACCOUNT, DEFAULT_REGION, Place
from trueup.local.ecs.processes import Nursery
from trueup.local.process import Guard, guard
from trueup.local.serving import Server, listen, stop_soon, url_of
from trueup.local.stepfunctions.eventbridge import EventBridgeSink
from trueup.local.stepfunctions.integrations.calls import BotoCalls

T = TypeVar("T")

EVENT_THREADS = 4
"""Calls of EventBridge at once; events keep their order, so that more would wait."""

INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a server can be told. Times are seconds."""

    images: Images
    """What images stand for where tasks are processes."""
    containers: Containers | None = None
    """Where tasks are containers: which engine's."""
    host: str = "127.0.0.1"
    port: int = 0
    account: str = DEFAULT_ACCOUNT
    region: str = DEFAULT_REGION
    environment: Mapping[str, str] = field(default_factory=dict)
    """What every task gets beside INHERITED: endpoints, credentials."""
    secrets: Secrets = no_secrets
    cloudwatch: Any | None = None
    """A boto3 client of CloudWatch Logs, for definitions with the driver awslogs."""
    logs: Path | None = None
    """Where tasks write; a folder that goes with the server, where none is given."""
    warm: tuple[str, ...] = ()
    """Modules to import beforehand; `python -m` of one of them then starts by a fork. See processes.WARM."""
    faults: Faults = field(default_factory=NoFaults)
    sink: Sink | None = None
    """Takes events; without one they go to the EventBridge of `events`, where that is given."""
    events: str | None = None
    """The endpoint of an EventBridge."""
    states: str | None = None
    """That of Step Functions, for rules whose targets are machines."""
    cold_start: float = 0.0
    deprovision: float = 0.0
    kept: float = HOUR
    unseen: float = 0.0
    pace: float = PACE
    healthy_after: float = 0.0


class Ecs:
    """A server that runs: its endpoint, and what boto3 cannot ask of it. Every method is for any thread."""

    def __init__(self, endpoint: str, fargate: Fargate, loop: asyncio.AbstractEventLoop) -> None:
        self.endpoint = endpoint
        self._fargate = fargate
        self._loop = loop

    def take_over(self, definition: Mapping[str, Any], tags: list[dict[str, Any]] | None = None) -> str:
        """Know a task definition that another ECS describes, under its revision; gives its ARN here."""
        return self._do(lambda: self._fargate.definitions.take_over(definition, tags).arn)

    def harm(self, task: str, what: str, code: int = 1) -> bool:
        """Do one of HARMS to a task, `exit` with a code. False where it does not run. Raises ApiError."""
        return self._do(lambda: harm(self._fargate, task, what, code))

    def log(self, task: str) -> str:
        """What a task's container has written so far."""
        path = self._fargate.log(task)
        return path.read_text(errors="replace") if path.exists() else ""

    def _do(self, what: Callable[[], T]) -> T:
        async def do() -> T:
            return what()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result()


Started = Callable[[Ecs, Callable[[], None]], None]


async def run(options: Options, over_tasks: Guard, started: Started) -> None:
    """Serve until told to stop, or cancelled; tasks run under the guard.

    `started` is called with the server and with what tells it to stop (from any thread).
    """
    logs = options.logs or over_tasks.folder
    launcher = _launcher(options, over_tasks, logs)
    calls = BotoCalls(_endpoints(options), options.region, EVENT_THREADS) if options.events else None
    eventbridge = EventBridgeSink(calls) if calls else None
    fargate = Fargate(_settings(options, logs, launcher, options.sink or eventbridge))
    listening = listen(options.host, options.port)
    fargate.address = url_of(listening)
    server = Server(uvicorn.Config(make_app(fargate), log_config=None, access_log=False, lifespan="off"))
    loop = asyncio.get_running_loop()
    try:
        await launcher.open()
        started(Ecs(fargate.address, fargate, loop), lambda: stop_soon(loop, server))
        await server.serve(sockets=[listening])
    finally:
        await fargate.close()
        if calls is not None and eventbridge is not None:
            await eventbridge.close()
            calls.close()
        listening.close()


def _endpoints(options: Options) -> dict[str, str]:
    """Where rules and their targets are."""
    given = {"*": options.events, "stepfunctions": options.states}
    return {service: url for service, url in given.items() if url}


def _launcher(options: Options, over_tasks: Guard, logs: Path) -> Nursery | ContainerLauncher:
    if options.containers is not None:
        return ContainerLauncher(options.containers)
    return Nursery(over_tasks, logs / "nursery.log", options.warm)


def _settings(
    options: Options, logs: Path, launcher: Nursery | ContainerLauncher, sink: Sink | None
) -> Settings:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    images = options.images
    if isinstance(launcher, ContainerLauncher):
        images, inherited = launcher, {}  # a container has an environment of its own
    return Settings(
        images=images,
        launcher=launcher,
        logs=logs,
        place=Place(options.account, options.region),
        faults=options.faults,
        sink=sink,
        secrets=options.secrets,
        cloudwatch=options.cloudwatch,
        environment=inherited | dict(options.environment),
        cold_start=options.cold_start,
        deprovision=options.deprovision,
        kept=options.kept,
        unseen=options.unseen,
        pace=options.pace,
        healthy_after=options.healthy_after,
    )


@contextmanager
def serve(options: Options) -> Iterator[Ecs]:
    """Serve from a thread while the block lasts; at its end every task is killed.

    So it is when this process is killed. Raises OSError where the port is taken, and LocalStackError where
    there is no folder for logs.
    """
    if options.logs is not None:
        options.logs.mkdir(parents=True, exist_ok=True)
    with guard("" if options.logs else "trueup-ecs-") as over_tasks:
        ready: Future[tuple[Ecs, Callable[[], None]]] = Future()

        def work() -> None:
            try:
                asyncio.run(run(options, over_tasks, lambda ecs, stop: ready.set_result((ecs, stop))))
            except BaseException as error:
                if ready.done():
                    raise
                ready.set_exception(error)

        thread = threading.Thread(target=work, name="ecs", daemon=True)
        thread.start()
        ecs, stop = ready.result()
        try:
            yield ecs
        finally:
            stop()
            thread.join()
