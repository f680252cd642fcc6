"""Claims GPUs for one worker, so that two workers on a machine never use the same one.

A claim is a Unix socket with an abstract name, which the kernel removes when the process ends in any way. No
file is left behind, and workers in other homes and other users see it too. Containers with a network of their
own do not: each must be given its own GPUs.
"""

import errno
import socket
from collections.abc import Iterable

from workers.node.gpu_inventory.gpus import Gpu


class GpuClaims:
    """The GPUs that this process has claimed; they stay claimed until it ends."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def claim(self, gpus: Iterable[Gpu], limit: int | None = None) -> list[Gpu]:
        """Claim those GPUs that no other process has claimed, at most `limit`."""
        claimed: list[Gpu] = []
        for gpu in gpus:
            if limit is not None and len(claimed) >= limit:
                break
            if self._claim(gpu.uuid):
                claimed.append(gpu)
        return claimed

    def close(self) -> None:
        """Release all claims."""
        for claim in self._sockets:
            claim.close()
        self._sockets.clear()

    def _claim(self, uuid: str) -> bool:
        # Python's sockets are not inherited by other programs, so no runner keeps a claim.
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0trainyard-gpu-{uuid}")
        except OSError as error:
            claim.close()
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        self._sockets.append(claim)
        return True
