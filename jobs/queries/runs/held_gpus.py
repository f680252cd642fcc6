"""Decides which GPUs of a shared machine a job may get, and describes who holds the others.

A worker reports for each GPU how much memory processes hold that it did not start. A GPU with too little left
for a job is no place for that job. The worker checks again when it takes the GPU.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple

from jobs import clock
from jobs.models import Attempt, Job, Worker
from jobs.placement.state import Room
from jobs.queries.runs.devices import gpu_of, jobs_with_needs, mesh_of
from jobs.spec.checks.gpu_memory import (
    UNKNOWN_NEED,
    DeviceState,
    MemoryNeed,
    describe_held,
    held_bytes,
    is_gpu,
    lacks_memory,
    places_of_gpu,
)
from jobs.spec.checks.gpus import describe_wanted, is_wanted, needed_count
from jobs.spec.sections.gpu import GpuWish, gpu_devices


def need_of(job: Job) -> MemoryNeed:
    """Return the known facts about the memory that a job needs on each of its GPUs."""
    return _wish_of(job).need


def held_slots(worker: Worker) -> int:
    """Return how many free slots of a worker have a GPU that others hold, for a job with an unknown need."""
    devices, share = _gpus(worker), worker.info.get("gpu_share")
    held = [
        device
        for device in devices
        if not device.get("attempts") and lacks_memory(device, UNKNOWN_NEED, share, runs=False)
    ]
    return len(held) * places_of_gpu(worker.slots, len(devices))


class _Wish(NamedTuple):
    """The GPUs that a job wants of a worker.

    Attributes:
        takes_gpus: whether its attempts get GPUs where there are some.
        need: the memory on each.
        slots: how many it wants.
        names: those that it asks for by name.
        gpu: the model and the memory that it asks for; None for any GPU.
    """

    takes_gpus: bool
    need: MemoryNeed
    slots: int
    names: frozenset[str] = frozenset()
    gpu: GpuWish | None = None

    def accepts(self, device: DeviceState) -> bool:
        """Return whether a GPU is one of those that the job asks for."""
        return self.gpu is None or all(is_wanted(self.gpu, found) for found in gpu_devices([device]))


def _wish_of(job: Job) -> _Wish:
    try:
        mesh, gpu = mesh_of(job), gpu_of(job)
    # A spec that no longer parses is reported where the job is placed.
    except ValueError:
        return _Wish(False, MemoryNeed(), job.slots)
    if not job.facts.needs_jax or (mesh is not None and mesh.kind == "cpu"):
        return _Wish(False, MemoryNeed(), job.slots)
    names = frozenset(mesh.names if mesh is not None else ())
    number = job.slots if gpu is None else needed_count(gpu, mesh, job.slots)
    return _Wish(True, MemoryNeed.of(mesh, job.payload.device_bytes), number, names, gpu)


class HeldGpus:
    """The GPUs of live workers during one pass. Workers without others cost no statement.

    Args:
        workers: all workers on which jobs may be placed.
    """

    def __init__(self, workers: Iterable[Worker]) -> None:
        workers = list(workers)
        self._devices = {worker.pk: gpus for worker in workers if (gpus := _gpus(worker))}
        self._shared = {worker.pk for worker in workers if _is_shared(worker)}
        self._wishes: dict[int, _Wish] = {}
        self._open: dict[tuple[int, MemoryNeed, GpuWish | None, bool], list[DeviceState]] = {}
        self._attempts: dict[int, dict[int, int]] | None = None

    def is_able(self, job: Job, worker: Worker) -> bool:
        """Return whether a worker would have GPUs for a job if all of its own attempts ended."""
        wish = self._wish(job, worker)
        return wish is None or self._has_enough(wish, worker, runs=False)

    def kind(self, job: Job, workers: Iterable[Worker]) -> Hashable:
        """Return a value that is equal for jobs with the same `room` on these workers."""
        return next((wish for worker in workers if (wish := self._wish(job, worker)) is not None), None)

    def room(self, job: Job, worker: Worker) -> Room | None:
        """Return the free GPUs of a worker for a job; None if its free slots alone decide."""
        wish = self._wish(job, worker)
        # Jobs that name their GPUs share them.
        if wish is None or (wish.names and self._has_enough(wish, worker)):
            return None
        # Once another run has left a GPU that this job names, the next pass sees its memory.
        if wish.names:
            return Room(0, job.slots)
        devices, attempts = self._devices[worker.pk], self._attempts_of(worker)
        places = places_of_gpu(worker.slots, len(devices))
        able = self._open_to(wish, worker)
        free = sum(max(places - len(_holders(device, attempts)), 0) for device in able)
        reported = {pk for device in devices for pk in device.get("attempts", ())}
        # Attempts that were placed since the worker's last report will take GPUs of these.
        free -= sum(slots for pk, slots in attempts.items() if pk not in reported)
        # A job with more slots than there are GPUs gets all of them.
        least = min(job.slots, len(devices)) if wish.gpu is None else wish.slots
        # Several places on one GPU are no substitute for several GPUs.
        free = free if self._has_enough(wish, worker) else min(free, least - 1)
        return Room(free, least, self._freed(wish, worker))

    def takes_gpus(self, job: Job) -> bool:
        """Return whether a job's attempts get GPUs where there are some; False if no worker has any."""
        return bool(self._devices) and self._wish_anywhere(job).takes_gpus

    def describe(self, job: Job, workers: Iterable[Worker]) -> str:
        """Return who holds the GPUs that a job cannot get, as a sentence; empty if none is held."""
        workers = list(workers)
        held = [device for worker in workers for device in self._held_from(job, worker)]
        holders = describe_held(held, clock.estimate()) if held else ""
        used = [name for worker in workers for name in self._used_by_jobs(job, worker)]
        sentence = f"Other jobs use the GPUs that it asks for: {', '.join(used)}." if used else ""
        return f"{sentence} {holders}.".strip() if holders else sentence

    def why_wait(self, job: Job, workers: Iterable[Worker]) -> str:
        """Return why none of the workers that fit a job has a GPU for it, as long as others hold them."""
        wish = _wish_of(job)
        if wish.gpu is not None:
            gpus = describe_wanted(wish.gpu, wish.slots)
        else:
            gpus = "a GPU" if job.slots == 1 else f"{job.slots} GPUs"
        return f"It waits for {gpus} with enough free memory. {self.describe(job, workers)}"

    def _wish(self, job: Job, worker: Worker) -> _Wish | None:
        """Return the job's wish; None if others do not matter for it on this worker."""
        if worker.pk not in self._devices:
            return None
        wish = self._wish_anywhere(job)
        if not wish.takes_gpus:
            return None
        # Without others, and if all GPUs are alike for the job, the free slots decide.
        is_choosy = not all(map(wish.accepts, self._devices[worker.pk]))
        return wish if is_choosy or worker.pk in self._shared else None

    def _wish_anywhere(self, job: Job) -> _Wish:
        if job.pk not in self._wishes:
            self._wishes[job.pk] = _wish_of(job)
        return self._wishes[job.pk]

    def _freed(self, wish: _Wish, worker: Worker) -> dict[int, int]:
        """Return for how many slots each open attempt would free GPUs for a job, by attempt."""
        devices, attempts = self._devices[worker.pk], self._attempts_of(worker)
        places = places_of_gpu(worker.slots, len(devices))
        able = {device["name"] for device in self._open_to(wish, worker)}
        reported = {pk for device in devices for pk in device.get("attempts", ())}
        freed = defaultdict(int, {pk: slots for pk, slots in attempts.items() if pk not in reported})
        for device in self._open_to(wish, worker, runs=False):
            holders = _holders(device, attempts)
            if device["name"] in able:
                for pk in holders:
                    freed[pk] += 1
            # One run fills its memory. Of several, none alone makes room for sure.
            elif len(holders) == 1:
                freed[holders.pop()] += places
        return freed

    def _held_from(self, job: Job, worker: Worker) -> list[DeviceState]:
        if (wish := self._wish(job, worker)) is None:
            return []
        able = self._open_to(wish, worker)
        return [device for device in self._devices[worker.pk] if wish.accepts(device) and device not in able]

    def _used_by_jobs(self, job: Job, worker: Worker) -> list[str]:
        """Return the GPUs of the kind that a job asks for, where other jobs use all of them."""
        wish = self._wish(job, worker)
        if wish is None or wish.gpu is None:
            return []
        devices, attempts = self._devices[worker.pk], self._attempts_of(worker)
        places = places_of_gpu(worker.slots, len(devices))
        accepted = [device for device in devices if wish.accepts(device)]
        used = [device for device in accepted if len(_holders(device, attempts)) >= places]
        free = len(accepted) - len(used)
        return [f"{device['name']} of {worker.name}" for device in used] if free < wish.slots else []

    def _has_enough(self, wish: _Wish, worker: Worker, *, runs: bool = True) -> bool:
        able = self._open_to(wish, worker, runs=runs)
        if wish.names:
            return wish.names <= {device["name"] for device in able}
        if wish.gpu is not None:
            return len(able) >= wish.slots
        return len(able) >= min(wish.slots, len(self._devices[worker.pk]))

    def _open_to(self, wish: _Wish, worker: Worker, *, runs: bool = True) -> list[DeviceState]:
        """Return the GPUs with enough free memory for a job; `runs`: beside the worker's own attempts."""
        key = (worker.pk, wish.need, wish.gpu, runs)
        if key not in self._open:
            attempts, share = self._attempts_of(worker), worker.info.get("gpu_share")
            self._open[key] = [
                device
                for device in self._devices[worker.pk]
                if wish.accepts(device)
                and not lacks_memory(device, wish.need, share, runs=runs and bool(_holders(device, attempts)))
            ]
        return self._open[key]

    def _attempts_of(self, worker: Worker) -> dict[int, int]:
        """Return the open attempts of a worker that use GPUs, with their slots."""
        if self._attempts is None:
            self._attempts = defaultdict(dict)
            rows = list(Attempt.objects.open().filter(worker__in=self._devices))
            held = jobs_with_needs(Job.objects.filter(pk__in={row.job_id for row in rows}))
            using = {job.pk for job in held if _wish_of(job).takes_gpus}
            for row in rows:
                if row.job_id in using:
                    self._attempts[row.worker_id][row.pk] = row.slots
        return self._attempts.get(worker.pk, {})


def _is_shared(worker: Worker) -> bool:
    return any(held_bytes(device) or device.get("runs_bytes") for device in worker.devices)


def _gpus(worker: Worker) -> list[DeviceState]:
    return [device for device in worker.devices if is_gpu(device)]


def _holders(device: DeviceState, attempts: Collection[int]) -> set[int]:
    """Return the open attempts that hold a GPU. A report may be older than an attempt's end."""
    return set(device.get("attempts", ())) & set(attempts)
