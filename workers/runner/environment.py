"""Sets the process environment that a task needs, before Keras and JAX are imported.

JAX reads the environment once, so it is fixed for the life of the process.

Thread pinning, measured with jaxlib 0.12.0.1 on CPU (5 × two 1500² products; wall against CPU seconds):
nothing set 0.58/1.14 · `--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1` 0.44/0.86
(no effect) · OMP_NUM_THREADS=1 0.50/0.98 (no effect) · **NPROC=1 1.04/1.04** · one-core affinity
0.93/0.93. So NPROC sizes XLA's pool; it pins the number of threads without pinning cores, which two
runners would otherwise choose alike. The OMP and OpenBLAS variables size NumPy's BLAS.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple, Self

from jobs.contracts.task_parts import Task
from jobs.kinds import TASK

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


class Environment(NamedTuple):
    """The settings of a process that cannot change once JAX is imported."""

    threads: int
    platform: str | None = None
    simulated_devices: int = 1

    @classmethod
    def of(cls, task: Task) -> Self:
        """Return the environment that `task` needs."""
        mesh = getattr(getattr(task, "spec", None), "mesh", None)
        if mesh is None:
            return cls(task.threads)
        platform = (
            {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}.get(mesh.devices)
            if isinstance(mesh.devices, str)
            else mesh.devices[0].split(":")[0]
        )
        wanted = mesh.simulate or (mesh.size() if platform == "cpu" else 1)
        return cls(task.threads, platform, wanted)

    def apply(self) -> None:
        """Set the environment variables of this process."""
        threads = str(self.threads)
        os.environ.update(
            KERAS_BACKEND="jax",
            NPROC=threads,
            OMP_NUM_THREADS=threads,
            OPENBLAS_NUM_THREADS=threads,
            TF_CPP_MIN_LOG_LEVEL="2",
            XLA_FLAGS=" ".join(self.xla_flags()),
        )
        os.environ.setdefault(PREALLOCATE, "false")
        if self.platform is not None:
            os.environ["JAX_PLATFORMS"] = self.platform

    @staticmethod
    def grows_on_demand(variables: Mapping[str, str]) -> bool:
        """Return whether JAX allocates GPU memory on demand instead of most of a GPU at its start."""
        return variables.get(PREALLOCATE, "false").lower() in ("false", "0")

    def xla_flags(self) -> list[str]:
        """Return the operator's XLA flags, followed by the number of simulated devices."""
        name = "--xla_force_host_platform_device_count"
        given = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(name)]
        return [*given, f"{name}={self.simulated_devices}"]


def read_task(path: str) -> Task:
    """Read and validate the task file at `path`."""
    with open(path, "rb") as file:  # noqa: PTH123  importing pathlib would slow the start of a runner
        return TASK.validate_json(file.read())
