"""Reads the live workers of each pool, the slots that they can give out, and which of them can run a job."""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from jobs import clock
from jobs.actions.runs.checkpoint_preference import given_up_since_heartbeat
from jobs.actions.runs.workers import WORKER_LEASE_SECONDS
from jobs.models import Job, Worker
from jobs.queries.code import installation
from jobs.queries.code.sandboxes import Minimum, needs_sandbox
from jobs.queries.runs.devices import describe_missing_workers, fitting_workers, why_none_fits

_COLUMNS = frozenset(column.attname for column in Job._meta.concrete_fields)
_IGNORED = frozenset({"model_json"})
"""The model alone decides whether a sandbox is needed, which is a part of the key."""


class FreeSlots(NamedTuple):
    """The slots that a worker can give out now.

    Attributes:
        number: how many.
        closed: why it gives out none at the moment, as the whole reason of a job that waits for it; or empty.
        note: a sentence on slots that are held by something else than jobs, which follows "2 free now."; or
            empty.
    """

    number: int
    closed: str = ""
    note: str = ""


def free_slots(worker: Worker, taken: int) -> FreeSlots:
    """Return the slots that a worker can give out.

    Args:
        worker: a live worker that accepts work.
        taken: how many of its slots attempts occupy.
    """
    # A worker whose disk is full keeps its attempts, but gets no more.
    if worker.info.get("no_space"):
        return FreeSlots(
            0, f"The disk of {worker.name} is nearly full; once space is free, the job starts automatically."
        )
    return FreeSlots(worker.slots - taken)


@dataclass
class LivePool:
    """A pool's live workers during one pass.

    Attributes:
        name: its name.
        workers: those that accept work.
        draining: how many workers finish their attempts and accept no more, but those that end by themselves.
        minimum: returns the weakest sandbox for user code.
    """

    name: str
    workers: list[Worker] = field(default_factory=list)
    draining: int = 0
    minimum: Minimum = installation.sandbox_minimum
    _fitting: dict[Hashable, list[Worker]] = field(default_factory=dict)
    _reasons: dict[Hashable, str] = field(default_factory=dict)
    _needs: dict[int, Hashable] = field(default_factory=dict)

    def needs(self, job: Job) -> Hashable:
        """Return the key of the job's needs, which is computed once. See `needs_key`."""
        if job.pk not in self._needs:
            self._needs[job.pk] = needs_key(job)
        return self._needs[job.pk]

    def suitable(self, job: Job) -> list[Worker]:
        """Return the workers that can run a job, busy or not.

        Raises:
            ValueError: its spec is invalid.
        """
        needs = self.needs(job)
        if needs not in self._fitting:
            self._fitting[needs] = fitting_workers(job, self.workers, self.minimum)
        return self._fitting[needs]

    def why_unsuitable(self, job: Job) -> str:
        """Return why no worker can run a job, or an empty string.

        Raises:
            ValueError: its spec is invalid.
        """
        if not self.workers:
            return self._describe_absence(job)
        if self.suitable(job):
            return ""
        needs = self.needs(job)
        if needs not in self._reasons:
            self._reasons[needs] = why_none_fits(job, self.workers)
        return self._reasons[needs]

    def concurrency(self, job: Job) -> int:
        """Return how many of a job's attempts an otherwise empty pool can run at once."""
        return sum(worker.slots // job.slots for worker in self.suitable(job))

    def _describe_absence(self, job: Job) -> str:
        if self.draining:
            return f"All workers of pool {job.pool} are draining; enable one on the Workers page."
        return describe_missing_workers(job.pool, job.labels)


def needs_key(job: Job) -> Hashable:
    """Return a value that is equal for jobs in a pool that the same workers can run.

    It has the labels, the slots, whether a sandbox is needed, and every part of the spec that
    `devices.jobs_with_needs` has annotated.

    Raises:
        ValueError: the job's spec is invalid.
    """
    annotated = {
        name: value
        for name, value in vars(job).items()
        if name.endswith("_json") and name not in _COLUMNS and name not in _IGNORED and value is not None
    }
    parts = json.dumps(annotated, sort_keys=True) if annotated else ""
    labels = tuple(sorted(job.labels.items()))
    return (job.pool, labels, job.slots, needs_sandbox(job), parts)


def read_live_pools() -> Mapping[str, LivePool]:
    """Return the pools with their live workers, by name; a pool without any is empty."""
    # Asked once a pass, and only if there is a job with code of users.
    minimum = cache(installation.sandbox_minimum)
    pools = _Pools(minimum)
    now = clock.now()
    silent = given_up_since_heartbeat(now, lease_seconds=WORKER_LEASE_SECONDS)
    with_lease = Worker.objects.filter(~silent, lease_until__gt=now)
    for worker in with_lease.exclude(state__in=(Worker.State.LOST, Worker.State.GONE)):
        if worker.state == Worker.State.DRAINING:
            # One that ends by itself cannot be enabled again.
            pools[worker.pool].draining += not worker.info.get("ending")
        else:
            pools[worker.pool].workers.append(worker)
    return pools


class _Pools(dict[str, LivePool]):
    def __init__(self, minimum: Minimum) -> None:
        super().__init__()
        self._minimum = minimum

    def __missing__(self, name: str) -> LivePool:
        self[name] = LivePool(name, minimum=self._minimum)
        return self[name]
