"""Sets the process environment that a task needs, before Keras and JAX are imported.

JAX reads the environment once, so it is fixed while the process lives.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple, Self

from jobs.kinds import KINDS, TASK
from jobs.messages.task import Task
from jobs.spec.sections.mesh import MeshSpec

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
MEMORY_FRACTION = "XLA_CLIENT_MEM_FRACTION"
OLD_MEMORY_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
"""The earlier name. JAX refuses to start if both are set."""


class Environment(NamedTuple):
    """A process' settings that cannot change once JAX is imported.

    Attributes:
        threads: the CPU thread count.
        platform: JAX's name for the platform; None lets JAX choose.
        simulated_devices: how many devices the CPU is divided into.
        preallocate: whether JAX allocates GPU memory when it starts. False leaves it to the operator.
        memory_fraction: the largest share of each GPU's memory that JAX uses; None is JAX's default.
    """

    threads: int
    platform: str | None = None
    simulated_devices: int = 1
    preallocate: bool = False
    memory_fraction: float | None = None

    @classmethod
    def for_task(cls, task: Task) -> Self:
        """Return the environment that `task` needs."""
        mesh = mesh_of(task)
        if mesh is None:
            return cls(task.threads)
        # JAX calls NVIDIA's platform "cuda".
        platform: str | None = "cuda" if mesh.kind == "gpu" else mesh.kind
        # XLA divides the CPU into as many devices as the mesh has.
        device_count = mesh.simulate or (mesh.size() if platform == "cpu" else 1)
        facts = KINDS[task.kind]
        # Later steps may run on a machine without the devices of the training.
        if platform != "cpu" and not (facts.trains or facts.has_trials):
            platform = None
        return cls(task.threads, platform, device_count, mesh.preallocate, mesh.memory_fraction)

    def apply(self) -> None:
        """Set this process' environment variables."""
        # NPROC sizes XLA's thread pool. Measured with jaxlib 0.12.0.1 on two cores (5 × two products of 1500²
        # matrices; wall and CPU seconds): nothing set 0.58, 1.14; NPROC=1 1.04, 1.04. Without effect on XLA
        # were --xla_cpu_multi_thread_eigen=false with intra_op_parallelism_threads=1 (0.44, 0.86) and
        # OMP_NUM_THREADS=1 (0.50, 0.98). CPU affinity works as well (0.93, 0.93), but two runners would
        # choose the same cores. The OMP and OpenBLAS variables size the BLAS of NumPy.
        threads = str(self.threads)
        os.environ.update(
            KERAS_BACKEND="jax",
            NPROC=threads,
            OMP_NUM_THREADS=threads,
            OPENBLAS_NUM_THREADS=threads,
            # Waiting threads of scikit-learn would take the time of other runners.
            OMP_WAIT_POLICY="PASSIVE",
            TF_CPP_MIN_LOG_LEVEL="2",
            XLA_FLAGS=" ".join(self.xla_flags()),
        )
        if self.preallocate:
            os.environ[PREALLOCATE] = "true"
        # Several runners may share a GPU. An operator may set it otherwise.
        os.environ.setdefault(PREALLOCATE, "false")
        if self.memory_fraction is not None:
            os.environ.pop(OLD_MEMORY_FRACTION, None)
            os.environ[MEMORY_FRACTION] = str(self.memory_fraction)
        if self.platform is not None:
            os.environ["JAX_PLATFORMS"] = self.platform

    @staticmethod
    def grows_on_demand(variables: Mapping[str, str]) -> bool:
        """Return whether JAX allocates GPU memory on demand instead of most of it at the start."""
        return variables.get(PREALLOCATE, "false").lower() in ("false", "0")

    def xla_flags(self) -> list[str]:
        """Return the operator's XLA flags, followed by the simulated device count."""
        name = "--xla_force_host_platform_device_count"
        # The number that the task needs replaces the operator's.
        other_flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(name)]
        return [*other_flags, f"{name}={self.simulated_devices}"]


def mesh_of(task: Task) -> MeshSpec | None:
    """Return the mesh on which a task trains or loads its model; None for one device."""
    mesh: MeshSpec | None = getattr(getattr(task, "spec", task), "mesh", None)
    return mesh


def read_task(path: str) -> Task:
    """Read and validate the task file at `path`."""
    with open(path, "rb") as file:  # noqa: PTH123  importing pathlib would slow the start of a runner
        return TASK.validate_json(file.read())
