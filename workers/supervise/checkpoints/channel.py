"""The store's copies of checkpoints, as all attempts on a node use them together."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jobs.store import CheckpointCopies

TRANSFERS = 2
"""How many uploads and downloads a node does at once. The others wait."""


class CopyChannel:
    """Moves copies in threads of its own: a store that does not answer must delay nothing else.

    Args:
        copies: the store's.
        root: this machine's folder with all checkpoints.
    """

    def __init__(self, copies: CheckpointCopies, root: Path) -> None:
        self.copies = copies
        self.root = root
        self._threads = ThreadPoolExecutor(TRANSFERS, "checkpoint-copies")

    async def run[T](self, transfer: Callable[[], T]) -> T:
        """Run a transfer in one of the threads. If the caller is cancelled, the transfer still ends."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, transfer))
