"""Checks a mesh's devices: against the spec's slots, and against the devices that a worker reports."""

import re
from collections.abc import Collection, Iterator

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import MeshSpec

DEVICE_NAME = re.compile(r"(cpu|gpu|tpu):\d+(\.\d+)?")
"""The names on the Workers page. The second number identifies a part of a divided (MIG) GPU."""


def problems(spec: ExperimentSpec) -> list[Problem]:
    """Return the mesh settings that no worker could run."""
    if spec.mesh is None:
        return []
    return [*_check_names(spec.mesh), *_check_kind(spec.mesh, spec.resources.slots)]


def _check_names(mesh: MeshSpec) -> Iterator[Problem]:
    if isinstance(mesh.devices, str):
        return
    for i, name in enumerate(mesh.names):
        if not DEVICE_NAME.fullmatch(name):
            example = "use a name from the Workers page, such as gpu:0"
            yield Problem(f"/mesh/devices/{i}", f"{name!r} is not the name of a device; {example}")
    if len(set(mesh.names)) < len(mesh.names):
        yield Problem("/mesh/devices", f"{', '.join(mesh.names)} names a device twice")
    elif len({name.split(":")[0] for name in mesh.names}) > 1:
        yield Problem("/mesh/devices", f"{', '.join(mesh.names)} are devices of several kinds; use one kind")
    elif len(mesh.names) != mesh.size():
        sentence = f"shape {list(mesh.shape)} needs {mesh.size()} devices, but {len(mesh.names)} are named"
        yield Problem("/mesh/devices", sentence)


def _check_kind(mesh: MeshSpec, slots: int) -> Iterator[Problem]:
    if mesh.simulate is not None and mesh.kind != "cpu":
        sentence = f"only CPU devices can be simulated; leave it empty to use {mesh.kind.upper()}s"
        yield Problem("/mesh/simulate", sentence)
    elif mesh.kind == "gpu" and slots < mesh.size():
        sentence = f"a mesh of {mesh.size()} GPUs needs {mesh.size()} slots, one for each GPU; it has {slots}"
        yield Problem("/resources/slots", sentence)


def lacks(mesh: MeshSpec | None, slots: int, devices: Collection[str]) -> bool:
    """Return whether a worker cannot run a job because it lacks GPUs or TPUs.

    Args:
        mesh: from the job's spec.
        slots: the job's slots. A later step has fewer slots than the mesh has devices, and uses as many GPUs.
        devices: the names of the worker's devices.
    """
    # Every machine has a CPU, and each mesh of CPUs may be simulated.
    if mesh is None or mesh.kind == "cpu":
        return False
    if mesh.names:
        return not set(mesh.names) <= set(devices)
    needed = min(mesh.size(), slots) if mesh.kind == "gpu" else mesh.size()
    return _count(mesh.kind, devices) < needed


def has_tpu(devices: Collection[str]) -> bool:
    """Return whether there is a TPU among a worker's device names."""
    return _count("tpu", devices) > 0


def _count(kind: str, devices: Collection[str]) -> int:
    """Count the devices of a kind among device names."""
    return sum(name.startswith(f"{kind}:") for name in devices)


def describe_missing(mesh: MeshSpec, slots: int, pool: str, workers: Collection[Collection[str]]) -> str:
    """Return why no worker in a pool can run a job with this mesh, without a full stop.

    Args:
        mesh: a mesh that uses GPUs or TPUs.
        slots: the job's slots.
        pool: the pool's name.
        workers: the device names for each worker in the pool.
    """
    if mesh.names:
        return f"No worker of pool {pool} has {' and '.join(mesh.names)}"
    kind = mesh.kind.upper()
    most = max((_count(mesh.kind, devices) for devices in workers), default=0)
    if most == 0:
        return f"No worker of pool {pool} has a {kind}"
    needed = min(mesh.size(), slots) if mesh.kind == "gpu" else mesh.size()
    return f"The job needs {needed} {kind}s on one worker, and the largest of pool {pool} has {most}"
