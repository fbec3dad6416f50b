"""What the local stack's own HTTP servers share: how one ends."""

from __future__ import annotations

import asyncio
import socket

import uvicorn


class Server(uvicorn.Server):
    """Stops at once: nobody's connection is worth waiting for."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections, also those in the middle of a request."""
        self.force_exit = True
        await super().shutdown(sockets)


def stop_soon(loop: asyncio.AbstractEventLoop, server: uvicorn.Server) -> None:
    """Ask a server to end, from any thread; a loop that is closed has nothing left to end."""

    def stop() -> None:
        server.should_exit = True

    if not loop.is_closed():
        loop.call_soon_threadsafe(stop)
