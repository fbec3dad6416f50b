"""What the local stack's own HTTP servers share."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import pytest

from trueup.local.serving import listen


def test_small_answers_are_sent_at_once() -> None:
    async def nodelay() -> int:
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(lambda _, out: accepted.set_result(out), sock=listening):
            _, client = await asyncio.open_connection(*listening.getsockname())
            served = await accepted
            told = served.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for writer in (client, served):
                writer.close()
                await writer.wait_closed()
            return int(told)

    assert asyncio.run(nodelay())


def test_a_port_that_is_taken_is_an_error() -> None:
    with closing(listen("127.0.0.1", 0)) as first, pytest.raises(OSError, match="in use"):
        listen(*first.getsockname())
