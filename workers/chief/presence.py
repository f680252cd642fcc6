"""Which scripts are still there: KerasTuner has no heartbeat, but each script keeps a connection open."""

import time
from dataclasses import dataclass, field
from urllib.parse import unquote

import psutil

Address = tuple[str, int]

ASLEEP_SECONDS = 25 * 60.0
"""gRPC closes a connection after 30 minutes without a call, so one that closes then says nothing."""


def address_of(peer: str) -> Address | None:
    """Read a peer as gRPC names it, such as `ipv4:127.0.0.1:4242` or `ipv6:%5B::1%5D:4242`."""
    _, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    return (_plain(host.strip("[]")), int(port)) if host and port.isdigit() else None


def _plain(host: str) -> str:
    return host.removeprefix("::ffff:")


def connections(port: int) -> set[Address] | None:
    """Return who is connected to a port of this process; None where the system does not tell."""
    try:
        found = psutil.Process().net_connections("tcp")
    except (psutil.Error, OSError):
        return None
    open_ones = (one for one in found if one.status == psutil.CONN_ESTABLISHED and one.laddr and one.raddr)
    return {(_plain(one.raddr.ip), one.raddr.port) for one in open_ones if one.laddr.port == port}


@dataclass
class _Seen:
    address: Address
    called: float
    missing: float | None = None


@dataclass
class Presence:
    """What is known of scripts, by the number of the attempt that each holds. The leases outlive it."""

    grace: float
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def called(self, attempt: int, peer: str) -> None:
        """Note a call of the script that holds an attempt."""
        if (address := address_of(peer)) is not None:
            self._seen[attempt] = _Seen(address, time.monotonic())

    def left(self, attempt: int) -> None:
        """Forget an attempt that has ended."""
        self._seen.pop(attempt, None)

    def there(self, connected: set[Address]) -> list[int]:
        """Return the attempts whose scripts are connected."""
        return [attempt for attempt, seen in self._seen.items() if seen.address in connected]

    def gone(self, connected: set[Address]) -> list[int]:
        """Return the attempts whose scripts hung up a while ago, and forget them."""
        now, found = time.monotonic(), []
        for attempt, seen in list(self._seen.items()):
            if seen.address in connected:
                seen.missing = None
                continue
            seen.missing = seen.missing or now
            if seen.missing - seen.called > ASLEEP_SECONDS:
                self.left(attempt)  # it may well be at work: its lease decides
            elif now - seen.missing >= self.grace:
                self.left(attempt)
                found.append(attempt)
        return found
