"""Decides which GPUs of a shared machine a job may get, and describes who holds the others.

A worker reports for each GPU how much memory processes hold that it did not start. A GPU with too little left
for a job is no place for that job, nor is one that is reserved for others while the job may run. The worker
checks both again when it takes the GPU.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable

from jobs import clock
from jobs.models import Attempt, Job, Worker
from jobs.placement.state import Room
from jobs.queries.runs.devices import gpu_of, jobs_with_needs, mesh_of
from jobs.queries.runs.gpus.box import Box, Wish
from jobs.queries.runs.gpus.reserved import ReservedGpus
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
from jobs.spec.checks.gpus import describe_wanted, needed_count


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


def _wish_of(job: Job) -> Wish:
    try:
        mesh, gpu = mesh_of(job), gpu_of(job)
    # A spec that no longer parses is reported where the job is placed.
    except ValueError:
        return Wish(False, MemoryNeed(), job.slots)
    if not job.facts.needs_jax or (mesh is not None and mesh.kind == "cpu"):
        return Wish(False, MemoryNeed(), job.slots)
    names = frozenset(mesh.names if mesh is not None else ())
    number = job.slots if gpu is None else needed_count(gpu, mesh, job.slots)
    return Wish(True, MemoryNeed.of(mesh, job.payload.device_bytes), number, names, gpu)


class HeldGpus:
    """The GPUs of live workers during one pass.

    Where no others use the workers and no GPU is reserved, it costs no statement.

    Args:
        workers: all workers on which jobs may be placed.
        reserved: the reservations of their GPUs.
    """

    def __init__(self, workers: Iterable[Worker], reserved: ReservedGpus) -> None:
        workers = list(workers)
        self._devices = {worker.pk: gpus for worker in workers if (gpus := _gpus(worker))}
        self._shared = {worker.pk for worker in workers if _is_shared(worker)}
        self._reserved = reserved
        self._wishes: dict[int, Wish] = {}
        self._places: dict[Wish, frozenset[int]] = {}
        self._boxes: dict[int, Box] = {}
        self._attempts: dict[int, dict[int, int]] | None = None

    def is_able(self, job: Job, worker: Worker) -> bool:
        """Return whether a worker would have GPUs for a job if all of its own attempts ended."""
        wish = self._wish(job, worker)
        return wish is None or self._box(worker).has_enough(wish, runs=False)

    def kind(self, job: Job, workers: Iterable[Worker]) -> Hashable:
        """Return a value that is equal for jobs with the same `room` on these workers."""
        if not self._devices:
            return None
        wish = self._wish_anywhere(job)
        if not wish.takes_gpus:
            return None
        places, kept = self._where_it_matters(wish), self._reserved.kept_from(job)
        matters = any(worker.pk in places or worker.pk in kept.names for worker in workers)
        return (wish, kept.key) if matters else None

    def room(self, job: Job, worker: Worker) -> Room | None:
        """Return the free GPUs of a worker for a job; None if its free slots alone decide."""
        wish = self._wish(job, worker)
        return None if wish is None else self._box(worker).room(wish)

    def takes_gpus(self, job: Job) -> bool:
        """Return whether a job's attempts get GPUs where there are some; False if no worker has any."""
        return bool(self._devices) and self._wish_anywhere(job).takes_gpus

    def describe(self, job: Job, workers: Iterable[Worker]) -> str:
        """Return who holds or has reserved the GPUs that a job cannot get, as sentences; or nothing."""
        workers = list(workers)
        return " ".join(
            filter(None, [self._describe_use(job, workers), self._reserved.describe(job, workers)])
        )

    def why_wait(self, job: Job, workers: Iterable[Worker]) -> str:
        """Return why none of the workers that fit a job has a GPU for it, as long as others hold them."""
        workers, wish = list(workers), _wish_of(job)
        if wish.gpu is not None:
            gpus = describe_wanted(wish.gpu, wish.slots)
        else:
            gpus = "a GPU" if job.slots == 1 else f"{job.slots} GPUs"
        use = self._describe_use(job, workers)
        reasons = [use, self._reserved.describe(job, workers, with_limit=True)]
        waits = f"It waits for {gpus}{' with enough free memory' if use else ''}."
        return " ".join(filter(None, [waits, *reasons]))

    def _describe_use(self, job: Job, workers: Iterable[Worker]) -> str:
        held, used = list[DeviceState](), list[str]()
        for worker in workers:
            if (wish := self._wish(job, worker)) is not None:
                box = self._box(worker)
                held += box.held_from(wish)
                used += [f"{name} of {worker.name}" for name in box.used_by_jobs(wish)]
        holders = describe_held(held, clock.estimate()) if held else ""
        sentence = f"Other jobs use the GPUs that it asks for: {', '.join(used)}." if used else ""
        return f"{sentence} {holders}.".strip() if holders else sentence

    def _wish(self, job: Job, worker: Worker) -> Wish | None:
        """Return the job's wish for a worker; None if others do not matter for it there."""
        wish = self._wish_anywhere(job)
        if not wish.takes_gpus or worker.pk not in self._devices:
            return None
        if kept := self._reserved.kept_from(job).names.get(worker.pk):
            return wish._replace(kept=kept)
        return wish if worker.pk in self._where_it_matters(wish) else None

    def _where_it_matters(self, wish: Wish) -> frozenset[int]:
        """Return the workers on which more than the free slots decides: GPUs are held, or not all alike."""
        if wish not in self._places:
            self._places[wish] = frozenset(
                worker
                for worker, devices in self._devices.items()
                if worker in self._shared or not all(map(wish.accepts, devices))
            )
        return self._places[wish]

    def _wish_anywhere(self, job: Job) -> Wish:
        if job.pk not in self._wishes:
            self._wishes[job.pk] = _wish_of(job)
        return self._wishes[job.pk]

    def _box(self, worker: Worker) -> Box:
        if worker.pk not in self._boxes:
            share, attempts = worker.info.get("gpu_share"), self._attempts_of(worker)
            devices = self._devices[worker.pk]
            self._boxes[worker.pk] = Box(worker.slots, devices, share=share, attempts=attempts)
        return self._boxes[worker.pk]

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
