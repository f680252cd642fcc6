"""The limits of a prediction server."""

from dataclasses import dataclass, field

from transport import admission
from workers.system.compile_cache import DEFAULT_LIMIT


@dataclass(frozen=True)
class Limits:
    """Limits that protect the server from a single client or model."""

    max_batch: int = 64
    queue_rows: int = 4096
    body_bytes: int = 64 * 2**20
    # All bodies that are read or answered at the same time, without the first 256 KiB of each.
    bodies_bytes: int = 2**30
    request_seconds: float = 30.0
    # A batch may take this long, or three times as long as the slowest one so far.
    batch_seconds: float = 2.0
    compile_seconds: float = 60.0
    answer_bytes: int = 512 * 2**20
    load_seconds: float = 300.0
    drain_seconds: float = 30.0
    child_threads: int = 1
    # All processes of a version that needs user code.
    code_memory_bytes: int = 4 * 2**30
    # Programs of one version whose inputs have open sizes, about 1 MB each.
    max_programs: int = 256
    # Compiled programs on disk, of all versions.
    compile_cache_bytes: int = DEFAULT_LIMIT
    # Processes that parse large bodies.
    body_workers: int = 2
    # Fewer if the process may not open enough files.
    connections: int = 4096
    connections_per_address: int = 256
    # Addresses and networks whose connections count only towards `connections`.
    trusted_proxies: list[str] = field(default_factory=lambda: list(admission.LOOPBACK))
