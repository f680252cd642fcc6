"""Bounds a server's open connections: in all, and for each address.

At a bound, the connection that has waited longest for a request is closed to make room. So connections that
send nothing never keep out others that do.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

LOOPBACK = ("127.0.0.0/8", "::1/128")
# A household or an office has a whole network of this size.
IPV6_PREFIX = 64

type Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Connection(Protocol):
    """An open connection; the other side has the address `peer`, which is empty for a unix socket."""

    peer: str

    def evict(self) -> None:
        """Close the connection, which waits for a request."""


@dataclass
class _Group:
    """One address's connections."""

    name: str
    limit: int
    count: int = 0
    waiting: dict[Connection, None] = field(default_factory=dict)


class Admission:
    """Decides which connections stay open.

    Args:
        max_connections: the most open connections.
        max_per_address: the most from one address, or from one /64 network of IPv6.
        trusted: proxies' networks, whose connections carry many people's requests. They count only
            towards `max_connections`.

    Raises:
        ValueError: an entry of `trusted` is no address and no network.
    """

    def __init__(
        self, *, max_connections: int, max_per_address: int, trusted: Iterable[str] = LOOPBACK
    ) -> None:
        self._max_per_address = min(max_per_address, max_connections)
        self._trusted = [ipaddress.ip_network(network) for network in trusted]
        self._groups: dict[str, _Group] = {}
        self._group_by_connection: dict[Connection, _Group] = {}
        self._all = _Group("", max_connections)

    @property
    def count(self) -> int:
        """The open connections, without those of unix sockets."""
        return self._all.count

    def admit(self, connection: Connection) -> bool:
        """Count a new connection, which waits for a request. Return whether there is room for it."""
        # Only this user's processes reach the unix socket.
        if not connection.peer:
            return True
        name, limit = self._group_of(connection.peer)
        group = self._groups.setdefault(name, _Group(name, limit))
        for full in (group, self._all):
            if full.count >= full.limit and not self._evict_oldest(full):
                self._drop_if_empty(group)
                return False
        # An eviction may have removed a group that became empty.
        self._groups[name] = self._group_by_connection[connection] = group
        for counts in (group, self._all):
            counts.count += 1
            counts.waiting[connection] = None
        return True

    def mark_waiting(self, connection: Connection) -> None:
        """Record that a connection waits for its next request."""
        if group := self._group_by_connection.get(connection):
            for counts in (group, self._all):
                counts.waiting.pop(connection, None)
                counts.waiting[connection] = None

    def mark_busy(self, connection: Connection) -> None:
        """Record that a connection's request is being answered."""
        if group := self._group_by_connection.get(connection):
            for counts in (group, self._all):
                counts.waiting.pop(connection, None)

    def release(self, connection: Connection) -> None:
        """Stop counting a connection that is closed."""
        if group := self._group_by_connection.pop(connection, None):
            for counts in (group, self._all):
                counts.count -= 1
                counts.waiting.pop(connection, None)
            self._drop_if_empty(group)

    def _evict_oldest(self, group: _Group) -> bool:
        oldest = next(iter(group.waiting), None)
        if oldest is None:
            return False
        self.release(oldest)
        oldest.evict()
        return True

    def _drop_if_empty(self, group: _Group) -> None:
        if not group.count:
            self._groups.pop(group.name, None)

    def _group_of(self, peer: str) -> tuple[str, int]:
        """Return the name of an address' group, and its most connections."""
        address = ipaddress.ip_address(peer.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        if any(address in network for network in self._trusted if network.version == address.version):
            return str(address), self._all.limit
        if isinstance(address, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False)), self._max_per_address
        return str(address), self._max_per_address
