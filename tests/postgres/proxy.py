"""A TCP proxy in front of a server, which refuses connections, becomes silent, or answers slowly."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal

State = Literal["open", "refusing", "silent", "slow"]
BLOCK = 65536


class Proxy:
    """Forwards connections on `port` to a unix socket. Runs in a thread of its own."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._loop = asyncio.new_event_loop()
        self._state: State = "open"
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.delay = 0.0
        """How many seconds each part of an answer is late while the state is `slow`."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def become(self, state: State) -> None:
        """Change what happens with connections, present ones and new ones."""
        self._call(self._become(state))

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _become(self, state: State) -> None:
        self._state = state
        if state == "refusing":
            await self._close()
        elif self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=BLOCK)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        server_writer = None
        try:
            await self._until_heard()
            server_reader, server_writer = await asyncio.open_unix_connection(self._target)
            self._writers.add(server_writer)
            ends = [
                asyncio.ensure_future(self._copy(reader, server_writer, lambda: 0.0)),
                asyncio.ensure_future(self._copy(server_reader, writer, self._lateness)),
            ]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        finally:
            for side in (writer, server_writer):
                if side is not None:
                    self._writers.discard(side)
                    side.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lateness: Callable[[], float]
    ) -> None:
        with contextlib.suppress(OSError):
            while block := await reader.read(BLOCK):
                await asyncio.sleep(lateness())
                await self._until_heard()
                writer.write(block)
                await writer.drain()

    def _lateness(self) -> float:
        return self.delay if self._state == "slow" else 0.0

    async def _until_heard(self) -> None:
        while self._state == "silent":
            await asyncio.sleep(0.02)

    def run(self) -> None:
        """Serve until `stop`."""
        self._loop.run_forever()

    def stop(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextlib.contextmanager
def running_proxy(target: Path) -> Iterator[Proxy]:
    """Run a proxy until the block ends."""
    proxy = Proxy(target)
    thread = threading.Thread(target=proxy.run, name="proxy", daemon=True)
    thread.start()
    proxy.become("open")
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join(10)
