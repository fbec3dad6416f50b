"""What the local stack's own HTTP servers share: how one begins to listen, and how it ends."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

BACKLOG = 1024


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket that takes connections from now on; port 0 is any free one. Raises OSError, OverflowError."""
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is: with it, every
    # answer that is sent in two pieces takes 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError):  # the latter for numbers that no port has
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """Where its server is found."""
    host, port = listening.getsockname()[:2]
    return f"http://{host}:{port}"


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
