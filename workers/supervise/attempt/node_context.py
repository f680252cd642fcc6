"""Holds the resources that all attempts on a node share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from jobs.spec.sections.gpu import GpuDevice
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.gpu_watch import DeviceReader
from workers.supervise.attempt.memory import in_memory_bytes
from workers.supervise.attempt.packages import Packages
from workers.supervise.attempt_repository import AttemptRepository
from workers.supervise.checkpoints.channel import CopyChannel
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.runner_pool import RunnerPool
from workers.supervise.pool.sandbox_gpus import SandboxGpus
from workers.supervise.timing import Timing


@dataclass(frozen=True)
class NodeContext:
    """The resources that all attempts on this node share."""

    repository: AttemptRepository
    pool: RunnerPool
    devices: Devices
    timing: Timing
    attempts: Path
    """Has a folder for each attempt on this node."""
    checkpoints: Path
    """Has the checkpoints of all jobs."""
    compile_caches: Path
    """Has a folder with compiled programs for each project."""
    threads_per_slot: int
    memory_per_slot: int
    """In bytes."""
    limits: TaskLimits = field(default_factory=TaskLimits.from_environment)
    """The limits of tasks that read files from outside."""
    sandbox_limits: SandboxLimits = field(default_factory=SandboxLimits.from_environment)
    """The limits of tasks with user code."""
    packages: Packages | None = None
    """Installs the packages of user code."""
    in_memory_bytes: int | None = field(default_factory=in_memory_bytes)
    """The size up to which runs keep the rows of a table in memory; None for `IN_MEMORY_SHARE`."""
    no_gpu: str | None = None
    """Why GPUs of the machine are not used, if it has some."""
    gpu_models: tuple[GpuDevice, ...] = ()
    """The models and the memory of this node's GPUs."""
    gpu_failed: Callable[[str], None] = field(default=lambda _reason: None)
    """Called with the reason when JAX cannot use a GPU that a run was given."""
    gpus: DeviceReader | None = None
    """Reads the GPUs, with the processes of others; None without any."""
    copies: CopyChannel | None = None
    """Moves checkpoints to and from other machines; None if these have the same folder of checkpoints."""
    sandbox_gpus: SandboxGpus = field(default_factory=lambda: SandboxGpus({}))
    """The GPUs for runs with user code."""
