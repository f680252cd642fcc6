"""Finds which of a worker's GPUs a task asks for, by `resources.gpu` of its spec."""

from collections.abc import Collection
from typing import NamedTuple

from jobs.errors import TrainyardError
from jobs.messages.task import Task
from jobs.spec.checks.gpus import is_wanted, needed_count
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.gpu import GpuDevice


class NoWantedGpu(TrainyardError):
    """The worker cannot give the run the GPUs that its spec asks for, which another machine may have."""

    code = "no_wanted_gpu"


class WantedGpus(NamedTuple):
    """The GPUs for a task.

    Attributes:
        number: how many it gets.
        wanted: the names of those that it may get.
        unwanted: the names of those that it must not get.
        is_asked: whether the spec asks for GPUs, so that the run must not use the CPU.
    """

    number: int
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    is_asked: bool = False

    def check(self, given: Collection[str], reason: str = "") -> None:
        """Require that the run gets all of its GPUs.

        Args:
            given: those that it gets.
            reason: why it gets none although the worker has them.

        Raises:
            NoWantedGpu: it asks for more GPUs.
        """
        if self.is_asked and len(given) < self.number:
            asked = "a GPU" if self.number == 1 else f"{self.number} GPUs"
            because = reason or f"this worker has {len(given)} of that kind"
            raise NoWantedGpu(f"The run asks for {asked} by resources.gpu, but {because}")


def wanted_gpus(task: Task, slots: int, gpus: Collection[GpuDevice]) -> WantedGpus:
    """Return which GPUs a task asks for.

    Args:
        task: with the spec.
        slots: the attempt's. A task without such a wish gets one GPU for each.
        gpus: the worker's.
    """
    spec: ExperimentSpec | None = getattr(task, "spec", None)
    gpu = spec.resources.gpu if spec is not None else None
    if spec is None or gpu is None:
        return WantedGpus(slots)
    wanted = tuple(device.name for device in gpus if is_wanted(gpu, device))
    unwanted = tuple(device.name for device in gpus if device.name not in wanted)
    return WantedGpus(needed_count(gpu, spec.mesh, slots), wanted, unwanted, is_asked=True)
