"""The engine behind HTTP: as a coroutine, or in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from trueup.local.serving import Server, listen, stop_soon, url_of
from trueup.local.stepfunctions.api.app import make_app
from trueup.local.stepfunctions.api.own_calls import OwnCalls
from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.engine import DEFAULT_ACCOUNT, DEFAULT_REGION, Engine, Settings
from trueup.local.stepfunctions.eventbridge import EventBridgeSink
from trueup.local.stepfunctions.integrations.calls import THREADS, BotoCalls
from trueup.local.stepfunctions.integrations.port import Calls
from trueup.local.stepfunctions.mocking import MockConfiguration
from trueup.local.stepfunctions.status_events import Sink

DEFAULT_PORT = 8083
"""Step Functions Local's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a server can be told."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    listening: socket.socket | None = None
    """A socket that listens already, in place of host and port, where others need the address beforehand."""
    region: str = DEFAULT_REGION
    account: str = DEFAULT_ACCOUNT
    scale: float = 1.0
    """Factor for every wait, retry delay, timeout and heartbeat."""
    timeouts: float | None = None
    """Factor for timeouts and heartbeats alone, where it is another."""
    seed: int | None = None
    mocks: Path | None = None
    sink: Sink | None = None
    """Takes status changes; without one they go to EventBridge when `events` has an endpoint."""
    threads: int = THREADS
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """By botocore's names; `*` for all others; what is not given is left to AWS_ENDPOINT_URL…."""
    aws: bool = False
    """Whether AWS itself is called where a service has no endpoint; otherwise the call is refused."""
    between: Callable[[Calls], Calls] | None = None
    """Stands between machines and the services that they call: for calls that go wrong on purpose."""


async def serve(options: Options, started: Callable[[str, Callable[[], None]], None] | None = None) -> None:
    """Serve until told to stop, or cancelled.

    `started` is called with the endpoint's URL and with what tells the server to stop (from any thread).
    """
    mocks = MockConfiguration.read(options.mocks) if options.mocks else None
    calls = BotoCalls(options.endpoints, options.region, options.threads, aws=options.aws)
    own, untouched = OwnCalls(options.between(calls) if options.between else calls), OwnCalls(calls)
    to_rules = "events" in options.endpoints and options.sink is None
    eventbridge = EventBridgeSink(untouched) if to_rules else None
    engine = own.engine = untouched.engine = Engine(own, _settings(options, eventbridge, mocks))
    listening = options.listening or listen(options.host, options.port)
    server = Server(uvicorn.Config(make_app(engine), log_config=None, access_log=False, lifespan="off"))
    loop = asyncio.get_running_loop()
    if started is not None:
        started(url_of(listening), lambda: stop_soon(loop, server))
    try:
        await server.serve(sockets=[listening])
    finally:
        await engine.close()
        if eventbridge is not None:
            await eventbridge.close()
        calls.close()
        listening.close()


def _settings(options: Options, eventbridge: Sink | None, mocks: MockConfiguration | None) -> Settings:
    return Settings(
        region=options.region,
        account=options.account,
        clock=Clock(options.scale, timeouts=options.timeouts),
        chance=Chance(options.seed),
        mocks=mocks,
        sink=options.sink or eventbridge,
    )


@contextmanager
def run_in_thread(options: Options) -> Iterator[str]:
    """Serve from a thread while the block lasts; gives the endpoint's URL. Raises what starting raises."""
    ready: Future[tuple[str, Callable[[], None]]] = Future()

    def run() -> None:
        try:
            asyncio.run(serve(options, lambda url, stop: ready.set_result((url, stop))))
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=run, name="stepfunctions", daemon=True)
    thread.start()
    url, stop = ready.result()
    try:
        yield url
    finally:
        stop()
        thread.join()
