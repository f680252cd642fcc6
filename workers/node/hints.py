"""Sends hints from the message consumer to the node, as datagrams on a Unix socket.

A lost hint only delays work until the node's next database poll.
"""

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
# `sendto` blocks while the node does not read. Losing a hint is better than a consumer that hangs.
SEND_SECONDS = 1.0

HintKind = Literal["wake", "suggest", "canary"]


class Hint(NamedTuple):
    """A message's content: the id of an attempt or a job, or a canary's token."""

    kind: HintKind
    value: int | str


def send(path: str, hint: Hint) -> None:
    """Send a hint. A node that is busy or gone does not receive it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(SEND_SECONDS)
        try:
            sender.sendto(json.dumps(hint).encode(), path)
        except OSError as error:
            log.warning("hint %s was not delivered: %s", hint, error)


async def listen(path: Path, on_hint: Callable[[Hint], None]) -> asyncio.DatagramTransport:
    """Bind `path`, readable by its owner alone, and call `on_hint` for every hint."""
    # A node that was killed left its socket behind. It is not in use: the node holds the lock of the folder.
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bound.setblocking(False)
    bound.bind(str(path))
    path.chmod(0o600)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _HintProtocol(on_hint), sock=bound
    )
    return transport


class _HintProtocol(asyncio.DatagramProtocol):
    def __init__(self, on_hint: Callable[[Hint], None]) -> None:
        self._on_hint = on_hint

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        """Decode one hint; anything else is logged and dropped."""
        try:
            kind, value = json.loads(data)
        except (ValueError, TypeError):
            log.warning("a hint of %d bytes could not be decoded", len(data))
            return
        self._on_hint(Hint(kind, value))
