"""Lists a node's fork servers and standby runners for the workers page."""

import time

from jobs.messages.warm_processes import Warm
from workers.supervise.pool.runner_pool import RunnerPool
from workers.system.usage import proportional_memory

# The kernel walks all pages of a process to sum up its memory.
_MEMORY_SECONDS = 30.0


def list_warm_processes(pool: RunnerPool) -> list[Warm]:
    """Return the fork servers and standby runners, without their memory."""
    servers = {} if pool.fork_servers is None else pool.fork_servers.servers()
    return [
        *(
            Warm(
                kind="fork server",
                state="ready",
                pid=server.pid,
                since=server.started_at,
                **environment._asdict(),
            )
            for environment, server in servers.items()
            if server is not None and server.alive
        ),
        *(
            Warm(
                kind="standby",
                state=standby.state,
                pid=standby.runner.pid,
                since=standby.started_at,
                devices=standby.key.devices,
                **standby.key.environment._asdict(),
            )
            for standby in pool.standbys.all
        ),
    ]


class WarmMemory:
    """The warm processes' memory: read every 30 s, and at once for one that is new or became ready.

    In between, the value is old, also for a process that is preparing and still grows.
    """

    def __init__(self) -> None:
        # By process id, start and state.
        self._known: dict[tuple[int, float, str], int] = {}
        self._read_at = float("-inf")

    def with_memory(self, processes: list[Warm]) -> list[Warm]:
        """Return the processes with their memory in bytes. Reads /proc: call it in a thread."""
        if time.monotonic() - self._read_at > _MEMORY_SECONDS:
            self._known, self._read_at = {}, time.monotonic()
        earlier, self._known = self._known, {}
        measured = []
        for process in processes:
            key = process.pid, process.since, process.state
            self._known[key] = earlier[key] if key in earlier else proportional_memory(process.pid)
            measured.append(process.model_copy(update={"memory_bytes": self._known[key]}))
        return measured
