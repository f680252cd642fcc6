"""The sockets at which a task's runner connects to the model processes."""

import asyncio
import os
import socket
import struct
from contextlib import ExitStack
from pathlib import Path

from workers.system.socket_paths import short_path

_CREDENTIALS = struct.Struct("3i")


def listen(address: Path) -> socket.socket:
    """Return a socket at which the attempt's runner can connect."""
    address.unlink(missing_ok=True)
    # Each message arrives as a whole, also if the next one was sent before it was read.
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ExitStack() as undo:
        undo.callback(listener.close)
        with short_path(address) as path:
            listener.bind(path)
            # The runner may have a user of its own. No other process but this one can enter the folder.
            os.chmod(path, 0o666)  # noqa: PTH101, S103
        listener.listen()
        listener.setblocking(False)
        undo.pop_all()
    return listener


async def accept(listener: socket.socket, runner: int) -> socket.socket:
    """Return a runner's connection. At some sandbox levels, others may find the socket."""
    loop = asyncio.get_running_loop()
    while True:
        connection, _ = await loop.sock_accept(listener)
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, _, _ = _CREDENTIALS.unpack(peer)
        if pid == runner:
            return connection
        connection.close()
