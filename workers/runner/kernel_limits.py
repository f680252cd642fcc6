"""Sets the kernel's limits for this process. Any process may lower its own, whichever user it has."""

import resource

from jobs.messages.control import ProcessLimits
from workers.system.memory_limit import data_bytes

# Seconds of CPU time between SIGXCPU, which names the limit, and SIGKILL.
CPU_GRACE = 5


def apply(limits: ProcessLimits) -> None:
    """Limit this process and those that it starts from now on. The limits cannot be raised again.

    Raises:
        OSError: the kernel refused.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime + limits.cpu_seconds) + 1
    _lower(resource.RLIMIT_CPU, cpu, cpu + CPU_GRACE)
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    # The data segment, not the address space, of which JAX reserves far more than it uses.
    if (allocated := data_bytes()) is not None:
        _lower(resource.RLIMIT_DATA, allocated + limits.memory)
    if limits.threads is not None:
        _lower(resource.RLIMIT_NPROC, limits.threads)


def _lower(limit: int, soft: int, hard: int | None = None) -> None:
    _, present = resource.getrlimit(limit)
    hard_limit = soft if hard is None else hard
    if present != resource.RLIM_INFINITY:
        soft, hard_limit = min(soft, present), min(hard_limit, present)
    resource.setrlimit(limit, (soft, hard_limit))
