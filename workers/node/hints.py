"""Hints from the message consumer to the node: datagrams on a unix socket, harmless when lost."""

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

log = logging.getLogger(__name__)

SOCKET_VARIABLE = "TRAINYARD_NODE_SOCKET"
NODE_PID_VARIABLE = "TRAINYARD_NODE_PID"
SEND_SECONDS = 1.0

Kind = Literal["wake", "suggest", "canary"]


class Hint(NamedTuple):
    """What a message said: an attempt, a job, or a canary's token."""

    kind: Kind
    value: int | str


def send(path: str, hint: Hint) -> None:
    """Pass a hint on. A node that is busy or gone misses it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(SEND_SECONDS)
        try:
            sender.sendto(json.dumps(hint).encode(), path)
        except OSError as error:
            log.warning("hint %s not passed on: %s", hint, error)


async def listen(path: Path, heard: Callable[[Hint], None]) -> asyncio.DatagramTransport:
    """Bind `path`, readable by its owner alone, and call `heard` for every hint."""
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bound.setblocking(False)
    bound.bind(str(path))
    path.chmod(0o600)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Ear(heard), sock=bound)
    return transport


class _Ear(asyncio.DatagramProtocol):
    def __init__(self, heard: Callable[[Hint], None]) -> None:
        self._heard = heard

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        """Decode one hint; anything else is dropped."""
        try:
            kind, value = json.loads(data)
        except (ValueError, TypeError):
            log.warning("a hint of %d bytes is not understood", len(data))
            return
        self._heard(Hint(kind, value))
