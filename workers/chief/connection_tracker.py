"""Tracks which scripts are connected.

KerasTuner has no heartbeat, but each script keeps a connection open.
"""

import time
from dataclasses import dataclass, field
from urllib.parse import unquote

import psutil

Address = tuple[str, int]

# gRPC closes a connection after 30 minutes without a call, and then the script may still run.
IDLE_CLOSE_SECONDS = 25 * 60.0


def address_of(peer: str) -> Address | None:
    """Parse a peer in gRPC's notation, such as `ipv4:127.0.0.1:4242` or `ipv6:%5B::1%5D:4242`."""
    _, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    return (_without_ipv4_prefix(host.strip("[]")), int(port)) if host and port.isdigit() else None


def _without_ipv4_prefix(host: str) -> str:
    # A server that listens on `::` gets IPv4 peers in this form from one of gRPC and psutil, but not from
    # both.
    return host.removeprefix("::ffff:")


def open_connections(port: int) -> set[Address] | None:
    """Return the addresses connected to a port on this process; None if the system does not report them."""
    try:
        connections = psutil.Process().net_connections("tcp")
    except (psutil.Error, OSError):
        return None
    open_ones = (
        connection
        for connection in connections
        if connection.status == psutil.CONN_ESTABLISHED and connection.laddr and connection.raddr
    )
    return {
        (_without_ipv4_prefix(connection.raddr.ip), connection.raddr.port)
        for connection in open_ones
        if connection.laddr.port == port
    }


@dataclass
class _Script:
    address: Address
    last_call: float
    missing_since: float | None = None


@dataclass
class ConnectionTracker:
    """The scripts, each by the attempt that it holds.

    Only leases survive a restart.
    """

    grace: float
    _scripts: dict[int, _Script] = field(default_factory=dict)

    def record_call(self, attempt: int, peer: str) -> None:
        """Record that the script that holds an attempt has called."""
        if (address := address_of(peer)) is not None:
            self._scripts[attempt] = _Script(address, time.monotonic())

    def forget(self, attempt: int) -> None:
        self._scripts.pop(attempt, None)

    def connected(self, addresses: set[Address]) -> list[int]:
        """Return the attempts whose scripts are connected."""
        return [attempt for attempt, script in self._scripts.items() if script.address in addresses]

    def pop_disconnected(self, connected: set[Address]) -> list[int]:
        """Remove and return the attempts whose scripts were disconnected for the grace period."""
        now, disconnected = time.monotonic(), []
        for attempt, script in list(self._scripts.items()):
            if script.address in connected:
                script.missing_since = None
                continue
            script.missing_since = script.missing_since or now
            # gRPC closed the idle connection, which proves nothing: from now on only the lease decides.
            if script.missing_since - script.last_call > IDLE_CLOSE_SECONDS:
                self.forget(attempt)
            elif now - script.missing_since >= self.grace:
                self.forget(attempt)
                disconnected.append(attempt)
        return disconnected
