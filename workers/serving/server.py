"""Runs the prediction server under uvicorn until a signal."""

import asyncio
import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from transport.server import LimitedServer, limited
from workers.serving.direct_http import DirectHttpProtocol
from workers.serving.router import Router
from workers.serving.settings import Settings
from workers.serving.versions.child_process import ChildCommand
from workers.serving.versions.child_starter import ChildStarter
from workers.serving.versions.sandboxed_model import SandboxSettings
from workers.serving.versions.sandboxes import Sandboxes

# The time for open requests to end after a signal.
_SHUTDOWN_SECONDS = 10


class _Server(LimitedServer):
    """Writes its address once it listens, and ends the children before the process after a signal."""

    def __init__(self, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config, settings.health_socket, name="the prediction server")
        self._address_file = settings.address_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._address_file is not None and sockets:
            host, port = sockets[0].getsockname()[:2]
            write_address(self._address_file, host, port)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own handler raises the signal again, which would end this process before its children.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def serve(settings: Settings, command: ChildCommand, child_starter: ChildStarter) -> None:
    """Run one prediction server until SIGTERM or SIGINT.

    Raises:
        OSError: the port is in use, or a required file is missing.
        ValueError: the public key or a trusted proxy's address is invalid.
    """
    # First: if the port is in use, nothing of the router has been started that would have to be ended.
    listener = _listen(settings.host, settings.port)
    limits = settings.limits
    protocol = limited(
        DirectHttpProtocol,
        max_connections=limits.connections,
        max_per_address=limits.connections_per_address,
        trusted=limits.trusted_proxies,
    )
    in_sandboxes = SandboxSettings(
        settings.home,
        command,
        limits.code_memory_bytes,
        settings.environment_folder,
        child_starter.fork_server,
    )
    sandboxes = Sandboxes(in_sandboxes)
    router = Router(settings, child_starter, sandboxes)
    protocol.predictions = router.predictions
    protocol.request_log = router.request_log
    config = uvicorn.Config(
        router.app,
        lifespan="off",
        http=protocol,
        ws="none",
        access_log=False,
        log_config=None,  # `__main__` has configured logging
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # nothing asks for the address of the client
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        backlog=2048,
    )
    server = _Server(config, settings)
    router.start()
    try:
        await server.serve(sockets=[listener])
    finally:
        await router.stop()
        await sandboxes.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


def write_address(path: Path, host: str, port: int) -> None:
    """Write the address file atomically."""
    url_host = f"[{host}]" if ":" in host else host
    content: dict[str, Any] = {"host": host, "port": port, "url": f"http://{url_host}:{port}"}
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(json.dumps(content))
    temporary.replace(path)
