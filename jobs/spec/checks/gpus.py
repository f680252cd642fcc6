"""Checks the GPUs that a spec asks for, and compares them with those that workers report."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, warning
from jobs.spec.sections.gpu import GB, GpuDevice, GpuWish
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.resources import WorkerSize

GPU_NAME = re.compile(r"gpu:\d+(\.\d+)?")
_DEVICE = re.compile(r"\w+:\d+(\.\d+)?")
_WORD = re.compile(r"[a-z0-9]+")


def problems(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the settings of `resources.gpu` that no worker could fulfil, or that contradict the mesh."""
    gpu, mesh, slots = spec.resources.gpu, spec.mesh, spec.resources.slots
    if gpu is None:
        return
    if mesh is not None and mesh.kind != "gpu":
        yield Problem(
            "/resources/gpu",
            f"asks for GPUs, but the mesh has {mesh.kind.upper()} devices; leave it out, or use GPUs in the "
            "mesh",
        )
        return
    yield from _check_count(gpu, mesh, slots)
    yield from _check_name(gpu, mesh)


def _check_count(gpu: GpuWish, mesh: MeshSpec | None, slots: int) -> Iterator[Problem]:
    if gpu.count is None:
        return
    if mesh is not None and gpu.count != mesh.size():
        yield Problem(
            "/resources/gpu/count",
            f"the mesh has {mesh.size()} GPUs, but the count is {gpu.count}; leave the count out, or use "
            f"{mesh.size()}",
        )
    elif gpu.count > slots:
        yield Problem(
            "/resources/gpu/count",
            f"{gpu.count} GPUs need {gpu.count} slots, one for each GPU; it has {slots}",
        )


def _check_name(gpu: GpuWish, mesh: MeshSpec | None) -> Iterator[Problem]:
    if gpu.name is None or not _DEVICE.fullmatch(gpu.name):
        return
    if not GPU_NAME.fullmatch(gpu.name):
        yield Problem(
            "/resources/gpu/name",
            f"{gpu.name!r} is not a GPU; use a model, such as H200, or a name, such as gpu:0",
        )
    elif mesh is not None and mesh.names and mesh.names != (gpu.name,):
        yield Problem(
            "/resources/gpu/name", f"the mesh names {' and '.join(mesh.names)}, but the GPU is {gpu.name}"
        )
    elif wanted_count(gpu, mesh) > 1:
        yield Problem(
            "/resources/gpu/name",
            f"{gpu.name} is one device, but {wanted_count(gpu, mesh)} GPUs are asked for; use a model, or "
            "name the devices in the mesh",
        )


def wanted_count(gpu: GpuWish, mesh: MeshSpec | None) -> int:
    """Return how many GPUs a run with all of its spec's slots gets."""
    return gpu.count or (mesh.size() if mesh is not None else 1)


def needed_count(gpu: GpuWish, mesh: MeshSpec | None, slots: int) -> int:
    """Return how many GPUs a job gets. A later step has fewer slots than its spec, and as many GPUs."""
    return min(wanted_count(gpu, mesh), slots)


def is_wanted(gpu: GpuWish, device: GpuDevice) -> bool:
    """Return whether a GPU is one of those that a spec asks for."""
    return _has_name(gpu, device) and _has_memory(gpu, device)


def _has_name(gpu: GpuWish, device: GpuDevice) -> bool:
    if gpu.name is None or gpu.name == device.name:
        return True
    # Whole words are compared, so that L4 is not found in L40S; RTX4090 and RTX 4090 are the same.
    wanted, model = "".join(_words(gpu.name)), _words(device.model)
    ends = range(1, len(model) + 1)
    return any("".join(model[start:end]) == wanted for end in ends for start in range(end))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has_memory(gpu: GpuWish, device: GpuDevice) -> bool:
    if gpu.memory_gb is None:
        return True
    # A GPU that is sold with 16 GB may report 15.8.
    return device.memory_bytes is not None and gpu.memory_gb <= max(
        device.memory_bytes / GB, round(device.memory_bytes / GB)
    )


def lacks_gpus(gpu: GpuWish | None, mesh: MeshSpec | None, slots: int, devices: Iterable[GpuDevice]) -> bool:
    """Return whether a worker cannot run a job because it lacks the GPUs that the job asks for.

    Args:
        gpu: from the job's spec.
        mesh: from the job's spec.
        slots: the job's slots.
        devices: the worker's GPUs.
    """
    if gpu is None:
        return False
    wanted = {device.name for device in devices if is_wanted(gpu, device)}
    if mesh is not None and mesh.names:
        return not set(mesh.names) <= wanted
    return len(wanted) < needed_count(gpu, mesh, slots)


def describe_missing_gpus(
    gpu: GpuWish, mesh: MeshSpec | None, slots: int, pool: str, workers: Collection[Collection[GpuDevice]]
) -> str:
    """Return why no worker in a pool has the GPUs that a job asks for, and what there is; no full stop.

    Example:
        `No worker of pool default has 2 GPUs "H200"; it has 1 × NVIDIA H200 (151 GB)`
    """
    count = needed_count(gpu, mesh, slots)
    named = f" that {' and '.join(mesh.names)} are" if mesh is not None and mesh.names else ""
    asked = describe_wanted(gpu, count)
    several = " on one worker" if count > 1 else ""
    sentence = f"No worker of pool {pool} has {asked}{named}{several}"
    there = Counter(device._replace(name="") for devices in workers for device in devices)
    if not there:
        return f"{sentence}; none has a GPU"
    listed = ", ".join(f"{number} × {device.label}" for device, number in sorted(there.items()))
    return f"{sentence}; its GPUs are {listed}"


def describe_wanted(gpu: GpuWish, count: int) -> str:
    """Return the GPUs that a job asks for, such as `2 GPUs "H200" with 100 GB`."""
    asked = "a GPU" if count == 1 else f"{count} GPUs"
    if gpu.name is not None:
        asked += f' "{gpu.name}"'
    return asked if gpu.memory_gb is None else f"{asked} with {gpu.memory_gb:g} GB"


def missing_gpu_warnings(spec: ExperimentSpec, workers: Collection[WorkerSize]) -> Iterator[Problem]:
    """Yield a warning if no worker has the GPUs, at the field that decides it, or if some stay idle.

    Args:
        spec: the experiment.
        workers: the live workers of its pool that take work.
    """
    gpu, mesh, slots = spec.resources.gpu, spec.mesh, spec.resources.slots
    if gpu is None:
        return
    idle = wanted_count(gpu, mesh) - 1
    if mesh is None and idle and spec.model.info.by_gradient:
        yield warning(
            "/resources/gpu/count",
            f"a training without a mesh computes on one GPU, so {idle} would be idle",
            "Add a mesh of GPUs, or ask for one GPU",
        )
    if all(lacks_gpus(gpu, mesh, slots, worker.gpus) for worker in workers):
        devices = [worker.gpus for worker in workers]
        sentence = describe_missing_gpus(gpu, mesh, slots, spec.resources.pool, devices)
        yield warning(
            _deciding_field(gpu, [device for gpus in devices for device in gpus]),
            f"{sentence[:1].lower()}{sentence[1:]}, so the job will wait",
            "Start a worker that has them, or ask for others",
        )


def _deciding_field(gpu: GpuWish, devices: Collection[GpuDevice]) -> str:
    if not devices:
        return "/resources/gpu"
    if gpu.name is not None and not any(_has_name(gpu, device) for device in devices):
        return "/resources/gpu/name"
    if gpu.memory_gb is not None and not any(is_wanted(gpu, device) for device in devices):
        return "/resources/gpu/memory_gb"
    return "/resources/gpu/count" if gpu.count is not None else "/resources/gpu"
