"""Sets the kernel's limits for this process. Any process may lower its own, whichever user it has."""

import resource
from pathlib import Path

from jobs.messages.control import ProcessLimits

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
    if (allocated := _data_bytes()) is not None:
        _lower(resource.RLIMIT_DATA, allocated + limits.memory)
    if limits.threads is not None:
        _lower(resource.RLIMIT_NPROC, limits.threads)


def _lower(limit: int, soft: int, hard: int | None = None) -> None:
    _, present = resource.getrlimit(limit)
    hard_limit = soft if hard is None else hard
    if present != resource.RLIM_INFINITY:
        soft, hard_limit = min(soft, present), min(hard_limit, present)
    resource.setrlimit(limit, (soft, hard_limit))


def _data_bytes() -> int | None:
    """Return the bytes that `RLIMIT_DATA` counts; None if the system does not report them."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except FileNotFoundError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), None)
