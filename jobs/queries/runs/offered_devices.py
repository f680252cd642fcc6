"""Lists the devices and the labels that live workers report, for forms."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from jobs.models import Worker
from jobs.spec.checks.devices import has_tpu
from jobs.spec.labels import labels_text
from jobs.spec.sections.gpu import GpuDevice, gpu_devices

MOST_LISTED = 8
"""More workers, or more models of GPU, are counted only."""


class OfferedDevices(NamedTuple):
    """The devices of live workers.

    Attributes:
        has_tpu: whether some worker reports a TPU.
        names: the GPUs of each worker, such as `box: gpu:0 NVIDIA H200 (151 GB)`.
        models: the models of GPU with their number, such as `2 × NVIDIA H200 (151 GB)`.
        wanted: values for `resources.gpu.name`: each model once, then each name.
        meshes: values for `mesh.devices`: each name of a GPU or TPU once.
        labels: values for `resources.labels`, such as `site=berlin`, each once.
    """

    has_tpu: bool
    names: tuple[str, ...]
    models: tuple[str, ...]
    wanted: tuple[str, ...]
    meshes: tuple[str, ...]
    labels: tuple[str, ...]


def offered_devices() -> OfferedDevices:
    """Return the devices of all live workers that take work."""
    workers = [worker for worker in Worker.objects.live().order_by("name") if not worker.refusal]
    gpus = {worker.name: gpu_devices(worker.devices) for worker in workers}
    models = Counter(gpu.label for found in gpus.values() for gpu in found)
    return OfferedDevices(
        has_tpu=any(has_tpu(worker.device_names) for worker in workers),
        names=_cut([f"{name}: {_listed(found)}" for name, found in gpus.items() if found], "workers"),
        wanted=tuple(
            dict.fromkeys(
                [gpu.model for found in gpus.values() for gpu in found if gpu.model]
                + sorted({gpu.name for found in gpus.values() for gpu in found})
            )
        ),
        meshes=tuple(sorted({name for worker in workers for name in _of_meshes(worker)}, key=_by_number)),
        labels=tuple(
            sorted({labels_text({key: value}) for worker in workers for key, value in worker.labels.items()})
        ),
        models=_cut([f"{count} × {model}" for model, count in models.most_common()], "models"),
    )


def _of_meshes(worker: Worker) -> Iterator[str]:
    """Yield the names of devices that a mesh may name; CPUs are no devices of one worker alone."""
    yield from (name for name in worker.device_names if not name.startswith("cpu:"))


def _by_number(name: str) -> tuple[str, int]:
    kind, _, number = name.partition(":")
    return kind, int(number) if number.isdecimal() else 0


def _listed(gpus: tuple[GpuDevice, ...]) -> str:
    return ", ".join(f"{gpu.name} {gpu.label}" for gpu in gpus)


def _cut(rows: list[str], noun: str) -> tuple[str, ...]:
    more = len(rows) - MOST_LISTED
    return (*rows[:MOST_LISTED], *([f"and {more} more {noun}"] if more > 0 else ()))
