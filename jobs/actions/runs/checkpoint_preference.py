"""Prefers the workers that have the checkpoints of waiting work, for a few seconds.

Without a shared folder, a worker on the machine that wrote the newest checkpoint resumes at once and without
a download. Others resume from its copy in object storage, once that is complete.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import DateTimeField, Exists, ExpressionWrapper, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform

from jobs import clock
from jobs.actions.runs.workers import LIVE, WORKER_LEASE_SECONDS
from jobs.models import Attempt, Checkpoint, Job, Trial, Worker
from jobs.states import AttemptState
from jobs.store import store

PREFER_SECONDS = 5.0
"""How long work waits for a worker that has its checkpoint: for a free slot, or until it is started again."""
COPY_SECONDS = 30.0
"""How long work waits until a worker that runs has copied its checkpoint to the store."""
SILENT_CODES = ("lease_expired", "unclaimed")
"""The ends of attempts whose worker did not answer."""

type Key = tuple[int, int | None]
"""A job and a trial, by key."""


@dataclass(frozen=True)
class Holder:
    """Where the newest checkpoint of waiting work is.

    Attributes:
        place: the identity of the folder that has it.
        worker: the name of the worker that wrote it.
        copied: whether object storage has a copy.
        since: when it was written, or its attempt ended.
    """

    place: str
    worker: str
    copied: bool
    since: dt.datetime


class Holders:
    """Where the checkpoints of waiting work are. Nothing is preferred if all machines share the folder."""

    def __init__(self, candidates: Iterable[tuple[Job, Sequence[Trial]]]) -> None:
        self._holders: Mapping[Key, Holder] = {}
        if store().checkpoint_copies is not None:
            waiting = list(candidates)
            trials = [trial.pk for _, held in waiting for trial in held]
            jobs = [job.pk for job, held in waiting if not held and job.fence]
            self._holders = _read(trials, jobs)
        self._now = clock.estimate() if self._holders else dt.datetime.min
        self._live = _live_places(self._now) if self._holders else frozenset()

    def __bool__(self) -> bool:
        """Whether any of the work has a checkpoint on a known machine."""
        return bool(self._holders)

    def near(self, job: Job, trials: Sequence[Trial], workers: Collection[Worker]) -> set[int]:
        """Return the keys of the workers that have a checkpoint of this work."""
        places = {holder.place for holder in self._of(job, trials)}
        return {worker.pk for worker in workers if worker.info.get("checkpoints") in places}

    def why_wait(self, job: Job, trials: Sequence[Trial], workers: Collection[Worker]) -> str | None:
        """Return why work waits for a worker that has its checkpoint but no free slot, or None."""
        places = {worker.info.get("checkpoints") for worker in workers}
        for holder in self._of(job, trials):
            age = (self._now - holder.since).total_seconds()
            if age < PREFER_SECONDS and (holder.place in places or not holder.copied):
                return f"Waits {PREFER_SECONDS:.0f} s for worker {holder.worker}, which has its checkpoint."
            if age < COPY_SECONDS and holder.place in self._live and not holder.copied:
                return f"Waits until worker {holder.worker} has copied its checkpoint to the artifact store."
        return None

    def _of(self, job: Job, trials: Sequence[Trial]) -> list[Holder]:
        keys: list[Key] = [(job.pk, trial.pk) for trial in trials] or [(job.pk, None)]
        return [self._holders[key] for key in keys if key in self._holders]


def _read(trials: Collection[int], jobs: Collection[int]) -> dict[Key, Holder]:
    rows = Checkpoint.objects.kept().filter(Q(trial__in=trials) | Q(trial=None, job__in=jobs))
    fields = ("job", "trial", "attempt", "stored", "created")
    # The last one of each key stays.
    newest = {(row[0], row[1]): row[2:] for row in rows.order_by("pk").values_list(*fields)}
    attempts = _attempts({(key[0], row[0]) for key, row in newest.items()})
    holders = {}
    for key, (number, stored, created) in newest.items():
        place, worker, ended = attempts.get((key[0], number), (None, "", None))
        if place:
            since = created if ended is None else max(created, ended)
            holders[key] = Holder(place, worker, stored is not None, since)
    return holders


def _attempts(
    numbers: Collection[tuple[int, int]],
) -> dict[tuple[int, int], tuple[str | None, str, dt.datetime | None]]:
    """Return the place and the name of each attempt's worker, and its end, by job and number."""
    of_job: dict[int, set[int]] = defaultdict(set)
    for job, number in numbers:
        of_job[job].add(number)
    wanted = Q(pk__in=())
    for job, found in of_job.items():
        wanted |= Q(job=job, number__in=found)
    rows = Attempt.objects.filter(wanted).annotate(place=KeyTextTransform("checkpoints", "worker__info"))
    return {
        (job, number): (place, worker, ended)
        for job, number, place, worker, ended in rows.values_list(
            "job", "number", "place", "worker__name", "ended"
        )
    }


def _live_places(now: dt.datetime) -> frozenset[str]:
    """Return the folders of checkpoints whose workers run, also of those that drain."""
    silent = given_up_since_heartbeat(now, lease_seconds=WORKER_LEASE_SECONDS)
    live = Worker.objects.filter(~silent, state__in=LIVE, lease_until__gt=now)
    return frozenset(filter(None, live.values_list(KeyTextTransform("checkpoints", "info"), flat=True)))


def given_up_since_heartbeat(now: dt.datetime, *, lease_seconds: float) -> Exists:
    """Return the condition for workers that were silent before an attempt of theirs was given up, and since.

    Such a worker has probably died, and its own lease ends a few seconds later. Work that was placed on it
    meanwhile would wait until the time for its claim is over.

    Args:
        now: the current time.
        lease_seconds: how long a heartbeat is valid. A worker sends several in this time.
    """
    span = dt.timedelta(seconds=lease_seconds)
    due = ExpressionWrapper(OuterRef("lease_until") - span / 2, output_field=DateTimeField())
    given_up = Attempt.objects.filter(worker=OuterRef("pk"), error__code__in=SILENT_CODES, ended__gt=due)
    # The leases of attempts that were given up long ago are not read.
    return Exists(given_up.filter(state=AttemptState.ENDED, lease_until__gt=now - 4 * span))
