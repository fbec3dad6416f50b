"""The way of those calls of tasks and functions that shall go wrong, in front of the services.

Only who has such faults ahead is sent through here, so that nothing is slower for the others. It also answers
at `/_faults`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from http import HTTPStatus
from typing import Any

import h11

from trueup.local.faults import admin
from trueup.local.faults.board import Board, Given, Strike
from trueup.local.faults.callers import Caller, Callers
from trueup.local.faults.http import Broken, Call, Client, Reply, asked, reply
from trueup.local.faults.model import (
    AtMoment,
    CallAnswerLost,
    CallbackLate,
    CallDelayed,
    CallRefused,
    Exited,
    Frozen,
    OfCallbacks,
    OfCalls,
)
from trueup.local.faults.services import is_checkpoint, operation_of, refusal
from trueup.local.gateway import service_of
from trueup.local.serving import url_of

log = logging.getLogger(__name__)

HarmTask = Callable[[str, str, int], bool]
"""Harms the task of an ARN as `Ecs.harm` does. False where it does not run."""

_STEP_FUNCTIONS = "states"
_TAKEN = b"{}"


class Gateway:
    """Passes calls on as the board has it. `services` are endpoints by signing name, `*` for all others."""

    def __init__(self, board: Board, callers: Callers) -> None:
        self._board = board
        self._callers = callers
        self._later: set[asyncio.Task[object]] = set()
        self.services: Mapping[str, str] = {}
        self.harm: HarmTask = lambda task, what, code: False
        self.added: Callable[[], None] = lambda: None
        """Called after faults were given while the stack runs."""

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Until told to stop."""
        server = await asyncio.start_server(self._connected, sock=listening)
        await stop.wait()
        server.close()
        for one in self._later:
            one.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        try:
            while (call := await client.request()) is not None:
                await self._exchange(client, call)
        except (OSError, Broken, h11.ProtocolError) as error:
            log.info("a connection ended: %r", error)
        except asyncio.CancelledError:
            pass  # the gateway ends; asyncio's streams would tell of it as an error
        finally:
            client.close()

    async def _exchange(self, client: Client, call: Call) -> None:
        path, _, query = call.target.partition("?")
        if path == admin.PATH:
            status, told = await asyncio.to_thread(
                admin.answer, self._board, call.method, call.body, self.added
            )
            return await client.answer(reply(status, json.dumps(told).encode(), "application/json"))
        caller = self._callers.find(call.header("user-agent"))
        service = service_of(path.encode("latin-1"), query.encode("latin-1"), dict(call.headers))
        if caller is None:
            return await self._pass_on(client, call, service)
        if service == _STEP_FUNCTIONS:
            return await self._word(client, call, caller)
        return await self._call(client, call, caller, service)

    async def _pass_on(self, client: Client, call: Call, service: str) -> None:
        async with self._asked(call, service) as answer:
            await client.answer(answer)

    def _asked(self, call: Call, service: str) -> AbstractAsyncContextManager[Reply]:
        return asked(self.services.get(service, self.services["*"]), call)

    async def _call(self, client: Client, call: Call, caller: Caller, service: str) -> None:
        operation = operation_of(call, service)

        def fits(fault: OfCalls) -> bool:
            return fault.service in (None, service) and fault.operation in (None, operation)

        known = service in ("dynamodb", "s3")
        picked = self._board.pick(OfCalls, caller.subject, f"{service} {operation}", fits) if known else None
        fault = picked[0].fault if picked else None
        if isinstance(fault, CallRefused):
            await client.answer(refusal(service, fault.fault))
            return
        if picked and isinstance(fault, CallDelayed):
            await asyncio.sleep(self._board.seconds(picked[0], caller.subject, fault.seconds))
            if fault.fault == "call-unanswered":
                client.abort()
                return
        async with self._asked(call, service) as answer:
            if caller.task and answer.status == HTTPStatus.OK and is_checkpoint(call, operation):
                await self._checkpointed(caller)
            if isinstance(fault, CallAnswerLost):
                await answer.whole()
                client.abort()
            else:
                await client.answer(answer)

    async def _checkpointed(self, caller: Caller) -> None:
        caller.checkpoints += 1
        for one in self._board.meant_for(AtMoment, caller.subject):
            due = one.fault.checkpoint == caller.checkpoints and self._board.drawn(one, caller.subject)
            if due and await self._harm(caller, one):
                return  # one harm is enough

    async def _harm(self, caller: Caller, one: Given[AtMoment]) -> bool:
        fault = one.fault
        code = fault.code if isinstance(fault, Exited) else 1

        def do() -> bool:
            return self.harm(caller.task, fault.fault, code)

        # In a thread: the loop of another server does it, which this one must not wait for.
        done = await asyncio.to_thread(self._board.strike_if, one, caller.subject, do)
        if done and isinstance(fault, Frozen) and fault.thaw is not None:
            seconds = self._board.seconds(one, caller.subject, fault.thaw, "thaw")
            self._soon(self._thaw(caller.task, seconds))
        return done

    async def _thaw(self, task: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.harm, task, "thaw", 0)

    def _soon(self, what: Coroutine[Any, Any, object]) -> None:
        later = asyncio.create_task(what)
        self._later.add(later)
        later.add_done_callback(self._later.discard)

    async def _word(self, client: Client, call: Call, caller: Caller) -> None:
        kind = call.header("x-amz-target").rpartition("SendTask")[2]

        def fits(fault: OfCallbacks) -> bool:
            return fault.word == kind or (fault.word is None and kind != "Heartbeat")

        picked = self._board.pick(OfCallbacks, caller.subject, kind, fits)
        if picked is None:
            return await self._pass_on(client, call, _STEP_FUNCTIONS)
        one, strike = picked
        if one.fault.fault == "callback-twice":
            answer = await self._deliver(call, strike)
            await self._deliver(call, strike)
            return await client.answer(answer)
        if isinstance(one.fault, CallbackLate):
            seconds = self._board.seconds(one, caller.subject, one.fault.seconds)
            self._soon(self._deliver_late(call, strike, seconds))
        return await client.answer(reply(200, _TAKEN, "application/x-amz-json-1.0"))

    async def _deliver_late(self, call: Call, strike: Strike, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._deliver(call, strike)

    async def _deliver(self, call: Call, strike: Strike) -> Reply:
        async with self._asked(call, _STEP_FUNCTIONS) as answer:
            body = await answer.whole()
        error = "" if answer.status == HTTPStatus.OK else str(json.loads(body)["__type"]).rpartition("#")[2]
        strike.answers.append(error)
        return reply(answer.status, body, "application/x-amz-json-1.0")


@contextmanager
def run_in_thread(gateway: Gateway, listening: socket.socket) -> Iterator[str]:
    """Serve from a thread while the block lasts; gives the URL."""
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        ready.set_result((asyncio.get_running_loop(), stop))
        await gateway.serve(listening, stop)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="faults", daemon=True)
    thread.start()
    loop, stop = ready.result()
    try:
        yield url_of(listening)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
