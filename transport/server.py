"""uvicorn's server with limited connections, and with a unix socket on which only the supervisor asks."""

import asyncio
import contextlib
import logging
import socket
from pathlib import Path

import uvicorn

from transport.admission import Admission
from transport.http import LimitedHttpProtocol, close_slow
from transport.open_files import connections_within, raise_limit

log = logging.getLogger(__name__)


class LimitedServer(uvicorn.Server):
    """Closes slow connections each second, and listens on `health_socket` beside its other addresses.

    Connections of the unix socket have no limits, so a server without room for others still answers there.

    Args:
        config: uvicorn's. Its own line about the start is not needed.
        health_socket: where only the supervisor asks.
        name: of the server, in the line of the log about its start.
    """

    def __init__(
        self, config: uvicorn.Config, health_socket: Path | None = None, *, name: str = "the server"
    ) -> None:
        super().__init__(config)
        self._health_socket = health_socket
        self._name = name
        config.callback_notify, config.timeout_notify = self.close_slow, 1

    async def close_slow(self) -> None:
        """Close connections whose client takes too long."""
        close_slow(self.server_state.connections)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen (called by uvicorn)."""
        await super().startup(sockets)
        for listener in sockets or ():
            log.info("%s listens at %s", self._name, _url(listener))
        if self._health_socket is None:
            return

        def new_connection() -> asyncio.Protocol:
            protocol: type[LimitedHttpProtocol] = self.config.http_protocol_class  # type: ignore[assignment]
            return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        private = _listen_private(self._health_socket)
        server = await asyncio.get_running_loop().create_unix_server(new_connection, sock=private)
        self.servers.append(server)


def limited[P: LimitedHttpProtocol](
    protocol: type[P], *, max_connections: int, max_per_address: int, trusted: list[str]
) -> type[P]:
    """Return `protocol` with limits of its own for this process, whose limit of open files is raised.

    Args:
        protocol: the HTTP protocol.
        max_connections: the most open connections; fewer if the process may not open enough files.
        max_per_address: the most from one address.
        trusted: addresses and networks of proxies.

    Raises:
        ValueError: an entry of `trusted` is no address and no network.
    """
    admission = Admission(
        max_connections=connections_within(raise_limit(), max_connections),
        max_per_address=max_per_address,
        trusted=trusted,
    )
    return type(protocol.__name__, (protocol,), {"admission": admission})


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen_private(path: Path) -> socket.socket:
    """Return a unix socket that only this user can connect to. One that an ended process left is replaced."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    return listener
