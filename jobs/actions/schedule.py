"""Places waiting jobs and trials on workers as attempts, and records why the others wait.

The order within a pool is strict: priority, then age. A job that waits for slots blocks those behind it, so
that small jobs never starve a large one.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import batched
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import Count, F, QuerySet, Sum

from jobs import clock, queue
from jobs.actions.transition import move
from jobs.errors import StaleState
from jobs.kinds import kinds_that
from jobs.models import Attempt, Job, Trial, Worker
from jobs.queries import batches
from jobs.queries.waiting import at_limit, slots_of
from jobs.states import FINAL, WAITING, Desired, JobState

UNCLAIMED_SECONDS = 15.0


@dataclass
class Slots:
    """The free slots of a live worker."""

    worker: Worker
    free: int


@dataclass
class Pool:
    """The live workers of a pool during one pass."""

    slots: list[Slots] = field(default_factory=list)
    draining: int = 0
    blocked_by: Job | None = None

    def fitting(self, needed: int) -> Slots | None:
        """Return the worker with the most free slots, if it has enough."""
        most = max(self.slots, key=lambda s: s.free, default=None)
        return most if most is not None and most.free >= needed else None

    def lanes(self, needed: int) -> int:
        """Return how many attempts of this size an otherwise empty pool can run at once."""
        return sum(s.worker.slots // needed for s in self.slots)

    def largest(self) -> int:
        """Return the number of slots of the largest worker, busy or not."""
        return max((s.worker.slots for s in self.slots), default=0)


@dataclass(frozen=True)
class Candidate:
    """A job, or a batch of trials of a search, that waits for slots."""

    job: Job
    trials: tuple[Trial, ...] = ()

    def order(self) -> tuple[Any, ...]:
        """Return the sort key: priority, then age, then the first trial's number."""
        return (
            -self.job.priority,
            self.job.queued or self.job.created,
            self.job.pk,
            self.trials[0].number if self.trials else 0,
        )


def place() -> int:
    """Place as many candidates as possible and record why the others wait; return how many were placed."""
    if not (_waiting_jobs().exists() or _waiting_trials().exists()):
        return 0  # an idle installation runs these two queries twice a second
    # Used slots are read before waiting rows. The slot of an attempt that ends in between is then free in the
    # next pass. In the other order, waiting trials would overtake those that the attempt releases.
    pools, used, running = _pools(), _slots_by_project(), _running_trials()
    waiting = sorted([*_jobs(), *_next_batches(_trials_by_search(), pools)], key=Candidate.order)
    placed = 0
    for candidate in waiting:
        job = candidate.job
        pool = pools[job.pool]
        slot = pool.fitting(job.slots)
        try:
            reason = _why_waiting(candidate, pool, slot, used, running)
        except ValueError as error:  # a revision that no longer parses must not stop the other jobs
            reason = f"Its spec is invalid: {error}"[:500]
        if reason is None and slot is not None and _assign(candidate, slot.worker):
            slot.free -= job.slots
            used[job.project_id] += job.slots
            running[job.pk] += 1
            placed += 1
        elif reason is not None:
            _set_why_waiting(job, reason)
    return placed


def _pools() -> dict[str, Pool]:
    pools: dict[str, Pool] = defaultdict(Pool)
    taken = dict(Attempt.objects.open().values_list("worker").annotate(Sum("slots")))
    for worker in Worker.objects.filter(lease_until__gt=clock.now()).exclude(
        state__in=(Worker.State.LOST, Worker.State.GONE)
    ):
        if worker.state == Worker.State.DRAINING:
            pools[worker.pool].draining += 1
        else:
            free = 0 if worker.info.get("no_space") else worker.slots - taken.get(worker.pk, 0)
            pools[worker.pool].slots.append(Slots(worker, free))
    return pools


def _slots_by_project() -> dict[int | None, int]:
    rows = Attempt.objects.open().values_list("job__project").annotate(Sum("slots"))
    return defaultdict(int, dict(rows))


def _running_trials() -> dict[int, int]:
    counts: dict[int, int] = defaultdict(int)
    held = Attempt.objects.open().filter(job__kind__in=kinds_that(lambda facts: facts.has_trials))
    counts.update(held.values_list("job").annotate(Count("pk")))
    return counts


def _waiting_jobs() -> QuerySet[Job]:
    return Job.objects.filter(state__in=WAITING, desired=Desired.RUNNING).without_trials()


def _waiting_trials() -> QuerySet[Trial]:
    """Return the trials that wait for placement. A chief assigns the trials of external searches."""
    trials = Trial.objects.filter(job__revision__isnull=False, job__desired=Desired.RUNNING)
    return trials.exclude(job__state__in=(*FINAL, JobState.PAUSED, JobState.STOPPING)).waiting()


def _jobs() -> list[Candidate]:
    return [
        Candidate(job)
        for job in _waiting_jobs().select_related("project", "root")
        if not job.payload.task_done  # such a root only waits for its later steps
    ]


def _trials_by_search() -> dict[int, list[Trial]]:
    """Return the waiting trials by search, in order."""
    by_search: dict[int, list[Trial]] = defaultdict(list)
    for trial in _waiting_trials().order_by("job", "number"):
        by_search[trial.job_id].append(trial)
    return by_search


def _next_batches(trials: dict[int, list[Trial]], pools: dict[str, Pool]) -> Iterator[Candidate]:
    """Split the waiting trials of each search into batches, one per attempt."""
    searches = Job.objects.select_related("project", "revision").in_bulk(trials)
    for pk, search in searches.items():
        lanes = pools[search.pool].lanes(search.slots)
        with suppress(ValueError):  # `place` reports an invalid spec
            lanes = min(lanes, _parallel(search) or lanes)
        for batch in batched(trials[pk], batches.size(search, len(trials[pk]), lanes)):
            yield Candidate(search, batch)


def _why_waiting(
    candidate: Candidate, pool: Pool, slot: Slots | None, used: dict[int | None, int], running: dict[int, int]
) -> str | None:
    """Return why a candidate waits, as a sentence; None if it can be placed."""
    job = candidate.job
    if not pool.slots:
        return _no_worker(job.pool, pool)
    if pool.largest() < job.slots:
        largest = f"the largest worker of pool {job.pool} has {pool.largest()}"
        return f"It needs {job.slots} slots on one worker; {largest}."
    quota = job.project.max_slots if job.project is not None else None
    if quota is not None and used[job.project_id] + job.slots > quota:
        return f"Project {job.project} uses {used[job.project_id]} of its {slots_of(quota)}."
    if candidate.trials and (limit := _parallel(job)) is not None and running[job.pk] >= limit:
        return at_limit(limit)
    if pool.blocked_by is not None:
        first = pool.blocked_by
        return f"Job {first.pk} is ahead of it and waits for {slots_of(first.slots)}."
    if slot is None:
        return _no_room(job, pool)
    return None


def _no_worker(name: str, pool: Pool) -> str:
    if pool.draining:
        return f"All workers of pool {name} are draining; enable one on the Workers page."
    return f"No worker runs in pool {name}; start one with: manage.py worker --pool {name}"


def _no_room(job: Job, pool: Pool) -> str:
    full = [s.worker for s in pool.slots if s.worker.info.get("no_space")]
    if len(full) == len(pool.slots):
        return f"The disk of {full[0].name} is nearly full; once space is free, the job starts automatically."
    total, free = sum(s.worker.slots for s in pool.slots), max(s.free for s in pool.slots)
    pool.blocked_by = job
    return f"It needs {job.slots} of the {slots_of(total)} of pool {job.pool}; {max(free, 0)} free now."


def _parallel(job: Job) -> int | None:
    search = job.revision.spec.search if job.revision is not None else None
    return search.parallel_trials if search is not None else None


def _set_why_waiting(job: Job, reason: str) -> None:
    if job.why_waiting != reason and job.state in WAITING:
        Job.objects.filter(pk=job.pk, state__in=WAITING).update(why_waiting=reason)
        job.why_waiting = reason


def _assign(candidate: Candidate, worker: Worker) -> bool:
    """Assign a candidate to a worker under a new fencing token; return False if it has changed since."""
    job = candidate.job
    try:
        with transaction.atomic():
            attempt = _new_attempt(job, worker)
            if candidate.trials:
                _hold(attempt, candidate.trials)
            elif job.state in WAITING:
                move(job, JobState.STARTING)
            _start_root(job)
            queue.wake(worker.pk, attempt.pk)
    except (StaleState, ObjectDoesNotExist, IntegrityError):
        return False  # its state changed, or its project was deleted, since it was read
    return True


def _hold(attempt: Attempt, trials: tuple[Trial, ...]) -> None:
    """Assign trials to an attempt. They stay queued until its runner begins them.

    The caller has locked the job, so no other process assigns, pauses or stops them in the meantime.
    """
    pks = [trial.pk for trial in trials]
    if Trial.objects.filter(pk__in=pks).waiting().count() != len(pks):
        raise StaleState("a trial was assigned to another attempt, or no longer waits")
    Trial.objects.filter(pk__in=pks).update(attempt=attempt.number)
    attempt.trials.add(*pks)


def _new_attempt(job: Job, worker: Worker) -> Attempt:
    Job.objects.filter(pk=job.pk).update(fence=F("fence") + 1)  # locks the row until commit
    job.fence = Job.objects.values_list("fence", flat=True).get(pk=job.pk)
    return Attempt.objects.create(
        job=job,
        number=job.fence,
        worker=worker,
        slots=job.slots,
        assigned=clock.now(),
        lease_until=clock.seconds_from_now(UNCLAIMED_SECONDS),
    )


def _start_root(job: Job) -> None:
    """Move the root to `starting` with the first of its steps."""
    root = Job.objects.get(pk=job.root_id_or_self)
    if root.state in WAITING:
        move(root, JobState.STARTING)


def sweep_workers() -> None:
    """Declare workers with an expired lease lost."""
    Worker.objects.filter(
        state__in=(Worker.State.UP, Worker.State.DRAINING), lease_until__lt=clock.now()
    ).update(state=Worker.State.LOST)
