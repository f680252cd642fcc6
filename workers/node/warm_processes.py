"""Lists the fork servers and standby runners of a node for the workers page."""

from jobs.contracts.warm_processes import Warm
from workers.supervise.runner_pool import RunnerPool
from workers.supervise.usage import proportional_memory


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


def with_memory(processes: list[Warm]) -> list[Warm]:
    """Return the processes with their memory in bytes. Reads /proc: call it in a thread."""
    return [each.model_copy(update={"memory_bytes": proportional_memory(each.pid)}) for each in processes]
