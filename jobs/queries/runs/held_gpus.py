"""Decides which GPUs of a shared machine a job may get, and describes who holds the others.

A worker reports for each GPU how much memory processes hold that it did not start. A GPU with too little left
for a job is no place for that job. The worker checks again when it takes the GPU.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from jobs import clock
from jobs.models import Attempt, Job, Worker
from jobs.queries.runs.devices import jobs_with_needs, mesh_of
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
    """

    takes_gpus: bool
    need: MemoryNeed
    slots: int
    names: frozenset[str] = frozenset()


def _wish_of(job: Job) -> _Wish:
    try:
        mesh = mesh_of(job)
    # A spec that no longer parses is reported where the job is placed.
    except ValueError:
        return _Wish(False, MemoryNeed(), job.slots)
    if not job.facts.needs_jax or (mesh is not None and mesh.kind == "cpu"):
        return _Wish(False, MemoryNeed(), job.slots)
    names = frozenset(mesh.names if mesh is not None else ())
    return _Wish(True, MemoryNeed.of(mesh, job.payload.device_bytes), job.slots, names)


class HeldGpus:
    """The GPUs of live workers during one pass. Workers without others cost no statement.

    Args:
        workers: all workers on which jobs may be placed.
    """

    def __init__(self, workers: Iterable[Worker]) -> None:
        self._devices = {worker.pk: _gpus(worker) for worker in workers if _is_shared(worker)}
        self._wishes: dict[int, _Wish] = {}
        # A pass asks for thousands of jobs, most of which have one of a few needs.
        self._open: dict[tuple[int, MemoryNeed, bool], list[DeviceState]] = {}
        self._free: dict[tuple[int, MemoryNeed], int] = {}
        self._attempts: dict[int, dict[int, int]] | None = None
        self._placed = Counter[int]()

    def is_able(self, job: Job, worker: Worker) -> bool:
        """Return whether a worker would have GPUs for a job if all of its own attempts ended."""
        wish = self._wish(job, worker)
        return wish is None or self._has_enough(wish, worker, runs=False)

    def room(self, job: Job, worker: Worker) -> int:
        """Return how many slots of a worker have a GPU for a job now, without regard to its free slots."""
        wish = self._wish(job, worker)
        # Jobs that name their GPUs share them.
        if wish is None or (wish.names and self._has_enough(wish, worker)):
            return worker.slots
        if not self._has_enough(wish, worker):
            return 0
        free = self._free_places(wish.need, worker) - self._placed[worker.pk]
        # A job with more slots than there are GPUs gets all of them.
        return worker.slots if job.slots > len(self._devices[worker.pk]) <= free else max(free, 0)

    def _free_places(self, need: MemoryNeed, worker: Worker) -> int:
        """Return how many attempts with this need found a GPU when the pass began."""
        if (worker.pk, need) not in self._free:
            devices, attempts = self._devices[worker.pk], self._attempts_of(worker)
            places = places_of_gpu(worker.slots, len(devices))
            able = self._open_to(need, worker)
            free = sum(max(places - len(_holders(device, attempts)), 0) for device in able)
            reported = {pk for device in devices for pk in device.get("attempts", ())}
            # Attempts that were placed since the worker's last report will take GPUs of these.
            free -= sum(slots for pk, slots in attempts.items() if pk not in reported)
            self._free[worker.pk, need] = free
        return self._free[worker.pk, need]

    def place(self, job: Job, worker: Worker) -> None:
        """Note that a job was placed on a worker in this pass."""
        if self._wish(job, worker) is not None:
            self._placed[worker.pk] += job.slots

    def describe(self, job: Job, workers: Iterable[Worker]) -> str:
        """Return who holds the GPUs that a job cannot get, as a sentence; empty if none is held."""
        held = [device for worker in workers for device in self._held_from(job, worker)]
        return f"{describe_held(held, clock.estimate())}." if held else ""

    def why_wait(self, job: Job, workers: Iterable[Worker]) -> str:
        """Return why none of the workers that fit a job has a GPU for it, as long as others hold them."""
        gpus = "a GPU" if job.slots == 1 else f"{job.slots} GPUs"
        return f"It waits for {gpus} with enough free memory. {self.describe(job, workers)}"

    def _wish(self, job: Job, worker: Worker) -> _Wish | None:
        """Return the job's wish; None if others do not matter for it on this worker."""
        if worker.pk not in self._devices:
            return None
        if job.pk not in self._wishes:
            self._wishes[job.pk] = _wish_of(job)
        wish = self._wishes[job.pk]
        return wish if wish.takes_gpus else None

    def _held_from(self, job: Job, worker: Worker) -> list[DeviceState]:
        if (wish := self._wish(job, worker)) is None:
            return []
        able = self._open_to(wish.need, worker)
        return [device for device in self._devices[worker.pk] if device not in able]

    def _has_enough(self, wish: _Wish, worker: Worker, *, runs: bool = True) -> bool:
        able = self._open_to(wish.need, worker, runs=runs)
        if wish.names:
            return wish.names <= {device["name"] for device in able}
        return len(able) >= min(wish.slots, len(self._devices[worker.pk]))

    def _open_to(self, need: MemoryNeed, worker: Worker, *, runs: bool = True) -> list[DeviceState]:
        """Return the GPUs with enough free memory for a job; `runs`: beside the worker's own attempts."""
        key = (worker.pk, need, runs)
        if key not in self._open:
            attempts, share = self._attempts_of(worker), worker.info.get("gpu_share")
            self._open[key] = [
                device
                for device in self._devices[worker.pk]
                if not lacks_memory(device, need, share, runs=runs and bool(_holders(device, attempts)))
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
