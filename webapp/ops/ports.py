"""Opens listening sockets. The supervisor keeps them, so that a port is not lost while a part restarts."""

import errno
import socket

from webapp.ops.errors import OpsError

BACKLOG = 1024
HIGHEST_PORT = 65_535
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - looked up, not bound


def listen(host: str, port: int, *, flag: str) -> socket.socket:
    """Return a socket that listens on `host:port`; port 0 chooses a free one.

    Raises:
        OpsError: the address cannot be bound; the message names `flag`, the option that changes it.
    """
    # getaddrinfo would silently wrap it around.
    if not 0 <= port <= HIGHEST_PORT:
        raise OpsError(
            f"Cannot listen on {host}, port {port}: ports go from 0 to {HIGHEST_PORT}. Change {flag}."
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        # A restarted `up` binds the port while closed connections of the last run are in TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OpsError(
                f"Port {port} on {host} is in use. Choose another one with {flag} (0 chooses a free one)."
            ) from error
        raise OpsError(
            f"Cannot listen on {host}, port {port}: {error}. Change it with --host or {flag}."
        ) from error
    return listener


def free_port(host: str, port: int, *, flag: str) -> int:
    """Return `port` if it is free, or a free port for 0. The caller binds it later."""
    with listen(host, port, flag=flag) as probe:
        return port_of(probe)


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def url(host: str, port: int) -> str:
    """Return the URL to open on this machine."""
    name = WILDCARDS.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
