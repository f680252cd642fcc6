"""Reads which GPUs of workers are reserved for others while a job may run."""

import datetime as dt
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from jobs import clock
from jobs.models import Attempt, Job, Reservation, Worker
from jobs.placement import sentences, state
from jobs.placement.reservations import reserved_for_others
from jobs.queries.runs.reservations import longest_run, open_reservations, plain_reservation
from jobs.spec.checks.gpu_memory import KEEPS_RESERVED_GPUS, is_gpu

EARLIER_RELEASE = "It runs an earlier release, which cannot keep single GPUs, so others get none of its GPUs."


class Kept(NamedTuple):
    """The GPUs that are reserved for others while a job may run.

    Attributes:
        names: their names, by the worker's key.
        rows: the reservations of each worker, the first to begin first.
        key: equal for the same GPUs, reserved by the same reservations: sentences name these.
    """

    names: Mapping[int, frozenset[str]] = MappingProxyType({})
    rows: Mapping[int, Sequence[state.Reservation]] = MappingProxyType({})
    key: Hashable = None


NOTHING = Kept()


class ReservedGpus:
    """The reservations of GPUs during one pass.

    Args:
        rows: reservations that have not ended; those without GPUs are left out.
        workers: the workers that may have such GPUs.
        now: the present time.
    """

    def __init__(
        self, rows: Iterable[state.Reservation], workers: Iterable[Worker], now: dt.datetime
    ) -> None:
        self._now = now
        self._rows: dict[str, list[state.Reservation]] = defaultdict(list)
        for row in rows:
            if row.gpus:
                self._rows[row.pool].append(row)
        self._workers = {(worker.pool, worker.name): worker for worker in workers}
        self._kept: dict[Hashable, Kept] = {}

    def kept_from(self, job: Job) -> Kept:
        """Return the GPUs that are reserved for others while a job may run."""
        if not (rows := self._rows.get(job.pool)):
            return NOTHING
        seconds = longest_run(job, self._now)
        key = (job.pool, job.created_by_id, job.project_id, seconds)
        if key not in self._kept:
            now = self._now.timestamp()
            self._kept[key] = self._keep(
                reserved_for_others(rows, job.created_by_id, job.project_id, seconds, now)
            )
        return self._kept[key]

    def describe(self, job: Job, workers: Iterable[Worker], *, with_limit: bool = False) -> str:
        """Return a sentence for each reservation that keeps GPUs of these workers from a job, or nothing.

        Args:
            job: the job.
            workers: those on which it could run.
            with_limit: adds the time limit with which it could run. That depends on the job's own limit.
        """
        kept = self.kept_from(job)
        found = {row.key: (row, worker) for worker in workers for row in kept.rows.get(worker.pk, ())}
        parts = []
        for row, worker in sorted(found.values(), key=lambda pair: (pair[0].begins, pair[0].key)):
            if with_limit:
                seconds, now = longest_run(job, self._now), self._now.timestamp()
                parts.append(sentences.reserved_while_it_runs(row, worker.name, seconds, now))
            else:
                parts.append(sentences.reserved(row, worker.name))
            parts += [] if worker.info.get(KEEPS_RESERVED_GPUS) else [EARLIER_RELEASE]
        return " ".join(parts)

    def _keep(self, foreign: Iterable[state.Reservation]) -> Kept:
        names: dict[int, frozenset[str]] = {}
        rows: dict[int, list[state.Reservation]] = defaultdict(list)
        for row in foreign:
            if (worker := self._workers.get((row.pool, row.machine))) is not None:
                rows[worker.pk].append(row)
                names[worker.pk] = names.get(worker.pk, frozenset()) | _gpus_kept(row, worker)
        by_whom = {pk: tuple(sorted(row.key for row in found)) for pk, found in rows.items()}
        return Kept(names, rows, frozenset((pk, names[pk], by_whom[pk]) for pk in names))


def _gpus_kept(row: state.Reservation, worker: Worker) -> frozenset[str]:
    """Return the GPUs that a reservation keeps: all, if the worker would not leave these alone."""
    if worker.info.get(KEEPS_RESERVED_GPUS):
        return frozenset(row.gpus)
    return frozenset(str(device["name"]) for device in worker.devices if is_gpu(device))


def reserved_gpus(workers: Iterable[Worker], pool: str) -> ReservedGpus:
    """Return the reservations of GPUs of a pool's workers. Without GPUs, none are looked for."""
    now, boxes = clock.estimate(), [worker for worker in workers if any(map(is_gpu, worker.devices))]
    rows = open_reservations(now).filter(pool=pool).exclude(gpus=[]) if boxes else ()
    return ReservedGpus(map(plain_reservation, rows), boxes, now)


class GpusOfAttempt(NamedTuple):
    """What reservations mean for the GPUs that an attempt takes.

    Attributes:
        kept: those that are reserved for others, with a sentence for each.
        own: those that are reserved now for its person or project.
    """

    kept: Mapping[str, str]
    own: frozenset[str]


def gpus_of_attempt(attempt: int) -> GpusOfAttempt:
    """Return which GPUs of its worker an attempt must leave alone now, and which it takes first."""
    row = Attempt.objects.select_related("job", "job__revision", "worker").get(pk=attempt)
    job, worker, now = row.job, row.worker, clock.now()
    found = Reservation.objects.filter(pool=worker.pool, worker=worker.name, ends__gt=now).exclude(gpus=[])
    rows = [plain_reservation(reservation) for reservation in found]
    seconds, second = longest_run(job, now) if rows else None, now.timestamp()
    kept: dict[str, str] = {}
    for foreign in reserved_for_others(rows, job.created_by_id, job.project_id, seconds, second):
        sentence = sentences.reserved_while_it_runs(foreign, worker.name, seconds, second)
        kept |= {gpu: sentence for gpu in foreign.gpus if gpu not in kept}
    mine = [one for one in rows if one.begins <= second and one.is_for(job.created_by_id, job.project_id)]
    return GpusOfAttempt(kept, frozenset(gpu for one in mine for gpu in one.gpus))
