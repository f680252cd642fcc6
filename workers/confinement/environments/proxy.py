"""Lets a build connect to the package index's hosts, and to no others.

An HTTP proxy in the worker: `CONNECT host:port` for https, and requests with a whole address for http. It
listens on a socket with a path for sandboxes without network, and on a loopback port for
those that have no network of their own.
"""

import asyncio
import base64
import contextlib
import os
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

MAX_HEAD = 64 * 2**10
CHUNK = 2**16
CONNECT_SECONDS = 30.0
IDLE_SECONDS = 300.0
MAX_CONNECTIONS = 64
MAX_REFUSED = 100
"""Hosts that are remembered as refused."""


class Target(NamedTuple):
    """A host and a port."""

    host: str
    port: int


class _Refused(Exception):
    """A request is refused. The text is the status line of the answer."""


class IndexProxy:
    """Serves one build, in its own thread. Use it as a context.

    Args:
        allowed: hosts and ports that may be reached.
        folder: has the socket `NAME`; None for a loopback port.
        upstream: another proxy's address, through which all hosts are reached.
    """

    NAME = "index.sock"

    def __init__(
        self, allowed: Iterable[tuple[str, int]], *, folder: Path | None, upstream: str | None = None
    ) -> None:
        self._allowed = frozenset((host.lower(), port) for host, port in allowed)
        self._upstream = upstream
        self._open = 0
        self.refused: list[str] = []
        """The hosts that were asked for in vain, each once."""
        self.unreachable: list[str] = []
        """The allowed hosts that did not answer, each once."""
        self._descriptor = None if folder is None else os.open(folder, os.O_PATH | os.O_CLOEXEC)
        self._listener = _listen(self._descriptor)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="package index proxy", daemon=True)

    @property
    def port(self) -> int:
        """The port on the loopback interface; 0 with a socket that has a path."""
        name = self._listener.getsockname()
        return name[1] if isinstance(name, tuple) else 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        starting = (
            asyncio.start_server if self._listener.family == socket.AF_INET else asyncio.start_unix_server
        )
        server = self._loop.run_until_complete(starting(self._serve, sock=self._listener, limit=MAX_HEAD))
        try:
            self._loop.run_forever()
        finally:
            server.close()
            waiting = asyncio.all_tasks(self._loop)
            for task in waiting:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MAX_CONNECTIONS:
                raise _Refused("503 Too many connections")
            async with asyncio.timeout(CONNECT_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                far_reader, far_writer, first = await self._connect(head)
            try:
                await _answer(writer, far_writer, first)
                await _pump_both(reader, writer, far_reader, far_writer)
            finally:
                far_writer.close()
        except _Refused as refused:
            with contextlib.suppress(OSError):
                writer.write(f"HTTP/1.1 {refused}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
        # The other side has closed, was silent, or sent no valid request.
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()

    async def _connect(self, head: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes | None]:
        """Connect to a request's host; return the streams, and what to send there first.

        None: it was CONNECT, and the client gets an answer from the proxy itself.
        """
        method, target, rest = _parse_request(head)
        if (target.host.lower(), target.port) not in self._allowed:
            if target.host not in self.refused and len(self.refused) < MAX_REFUSED:
                self.refused.append(target.host)
            raise _Refused("403 This host is not the package index")
        try:
            reader, writer = await self._open_connection(target)
        except OSError:
            if target.host not in self.unreachable:
                self.unreachable.append(target.host)
            raise _Refused("502 The host cannot be reached") from None
        return reader, writer, None if method == "CONNECT" else rest

    async def _open_connection(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._upstream is None:
            return await asyncio.open_connection(*target)
        parts = urlsplit(self._upstream if "//" in self._upstream else f"http://{self._upstream}")
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port or 80, ssl=True if parts.scheme == "https" else None
        )
        name = f"{target.host}:{target.port}"
        lines = [f"CONNECT {name} HTTP/1.1", f"Host: {name}"]
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
        writer.write("\r\n".join([*lines, "", ""]).encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if answer.split(b" ", 2)[1:2] != [b"200"]:
            writer.close()
            raise ConnectionRefusedError("the proxy refuses")
        return reader, writer


def _listen(folder: int | None) -> socket.socket:
    if folder is None:
        return socket.create_server(("127.0.0.1", 0))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The path of a socket has a limit of 108 bytes; this one is always short.
    path = f"/proc/self/fd/{folder}/{IndexProxy.NAME}"
    listener.bind(path)
    # The user of a build connects; no other can enter the folder.
    os.chmod(path, 0o666)  # noqa: PTH101, S103  not a path of the file system
    listener.listen(MAX_CONNECTIONS)
    return listener


def _parse_request(head: bytes) -> tuple[str, Target, bytes]:
    """Return the method, the target, and the request as its host expects it."""
    first, _, fields = head.partition(b"\r\n")
    try:
        method, address, version = first.decode("ascii").split(" ")
        # The scheme of CONNECT has no meaning, but without one the address is no URL.
        parts = urlsplit(address if method != "CONNECT" else f"https://{address}")
        target = Target(parts.hostname or "", parts.port or (443 if method == "CONNECT" else 80))
    except ValueError:
        raise _Refused("400 Bad request") from None
    if method not in ("CONNECT", "GET", "HEAD") or (method != "CONNECT" and parts.scheme != "http"):
        raise _Refused("405 Only CONNECT, GET and HEAD")
    path = parts._replace(scheme="", netloc="").geturl() or "/"
    # One request a connection: another one could name another host.
    forwarded = [
        line
        for line in fields.split(b"\r\n")
        if line and not line.lower().startswith((b"connection:", b"proxy-", b"host:"))
    ]
    host = parts.netloc.rpartition("@")[2]
    lines = [
        f"{method} {path} {version}".encode(),
        f"Host: {host}".encode(),
        *forwarded,
        b"Connection: close",
    ]
    return method, target, b"\r\n".join([*lines, b"", b""])


async def _answer(writer: asyncio.StreamWriter, far: asyncio.StreamWriter, first: bytes | None) -> None:
    if first is None:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
    else:
        far.write(first)
        await far.drain()


async def _pump_both(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Copy in both directions until both sides have ended, or one is broken."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_pump(reader, far_writer))
        group.create_task(_pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(IDLE_SECONDS):
                chunk = await reader.read(CHUNK)
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
