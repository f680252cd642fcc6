"""Reads facts about this server's processes: their ids, memory and queues."""

import asyncio
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.messages.release import ModelProcess, ServerProcess
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import Endpoint

# The kernel walks all pages of a process to sum up its memory.
_MEMORY_SECONDS = 30.0


class ProcessFacts:
    """The facts about this server's processes. Their memory is read at most every 30 s."""

    def __init__(self) -> None:
        self._started = time.time()
        self._memory: dict[int, int | None] = {}
        self._read_at = float("-inf")

    async def refresh(self, catalog: Catalog) -> None:
        """Read the memory of new processes, and of all processes if it was last read long ago."""
        versions = [version for endpoint in catalog.endpoints.values() for version in endpoint.available()]
        groups = {
            version.child_pid: version.child_pids for version in versions if version.child_pid is not None
        }
        running = {os.getpid(), *groups}
        if is_due := time.monotonic() - self._read_at > _MEMORY_SECONDS:
            self._read_at = time.monotonic()
        unread = running if is_due else running - self._memory.keys()
        if unread:
            sizes = await asyncio.to_thread(_read_memory, {pid: groups.get(pid, [pid]) for pid in unread})
            self._memory = {pid: sizes.get(pid, self._memory.get(pid)) for pid in running}

    def facts(self, endpoint: Endpoint) -> dict[str, Any]:
        """Return the report fields about an endpoint's processes."""
        versions = [version for version in endpoint.available() if version.child_pid is not None]
        return {
            "server": ServerProcess(
                host=socket.gethostname()[:200],
                pid=os.getpid(),
                started=self._started,
                memory_bytes=self._memory.get(os.getpid()),
            ),
            "processes": tuple(
                ModelProcess(
                    version=version.approved.number,
                    pid=version.child_pid or 0,
                    memory_bytes=self._memory.get(version.child_pid or 0),
                    waiting=version.waiting_rows,
                    sandbox=version.sandbox,
                )
                for version in versions
            ),
        }


def _read_memory(groups: Mapping[int, Sequence[int]]) -> dict[int, int | None]:
    """Return each process group's memory, by its first process. Those in a sandbox are several."""
    memory: dict[int, int | None] = {}
    for pid, members in groups.items():
        sizes = [size for size in map(private_bytes, members) if size is not None]
        memory[pid] = sum(sizes) if sizes else None
    return memory


def private_bytes(pid: int) -> int | None:
    """Return how many bytes a process shares with no other one; None if unknown."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(kilobytes) * 1024 if kilobytes else None
