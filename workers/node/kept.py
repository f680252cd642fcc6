"""What a node keeps warm, as the workers page shows it."""

from jobs.contracts.warm_processes import Warm
from workers.supervise.pool import RunnerPool
from workers.supervise.usage import share_of


def kept_warm(pool: RunnerPool) -> list[Warm]:
    """Return the fork servers and standbys there are, not measured yet."""
    servers = {} if pool.nursery is None else pool.nursery.servers()
    return [
        *(
            Warm(
                kind="fork server",
                state="ready",
                pid=server.pid,
                since=server.born,
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
                since=standby.born,
                devices=standby.role.devices,
                **standby.role.environment._asdict(),
            )
            for standby in pool.standbys.all
        ),
    ]


def measured(processes: list[Warm]) -> list[Warm]:
    """Return them with what each takes of memory. Reads /proc: call it in a thread."""
    return [one.model_copy(update={"memory_bytes": share_of(one.pid)}) for one in processes]
