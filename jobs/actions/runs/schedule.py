"""Places waiting jobs and trials on workers as attempts, and records why the others wait.

The order within a pool is strict: priority, then age. A job that waits for slots blocks the workers that
could run it for the jobs behind it, so that small jobs never starve a large one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import batched
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, prefetch_related_objects

from jobs import clock, queue
from jobs.actions.job_locks import lock_root
from jobs.actions.runs.checkpoint_preference import Holders, given_up_since_heartbeat
from jobs.actions.runs.workers import WORKER_LEASE_SECONDS
from jobs.actions.transition import move
from jobs.errors import StaleState
from jobs.models import Attempt, Job, Trial, Worker
from jobs.queries.code import installation, package_installs
from jobs.queries.code.sandboxes import Minimum
from jobs.queries.people import quotas
from jobs.queries.runs import open_attempts
from jobs.queries.runs.devices import (
    describe_missing_workers,
    fitting_workers,
    jobs_with_needs,
    why_none_fits,
)
from jobs.queries.runs.held_gpus import HeldGpus
from jobs.queries.search import batches
from jobs.queries.search.waiting import (
    BUILDING_FIRST,
    CHOOSING_FAILED,
    CHOOSING_TRIALS,
    format_slots,
    limit_reason,
)
from jobs.states import PLACEABLE, WAITING, Desired, JobState

UNREAD = ("results_json", "progress", "warnings", "error")
"""Job columns that may be large and do not affect placement."""

MAX_REASON = 500
"""In characters, as the column has."""

UNCLAIMED_SECONDS = 15.0
"""A worker has this time to claim an attempt; then its work is placed again."""


@dataclass
class LiveWorker:
    """A live worker, its free slots, and the first job that waits for them.

    Jobs behind that one are not placed on this worker.
    """

    row: Worker
    free: int
    blocked_by: Job | None = None

    def room(self, job: Job, held: HeldGpus) -> int:
        """Return its free slots for a job, without those whose GPUs others have filled."""
        return min(self.free, held.room(job, self.row))


@dataclass
class LivePool:
    """A pool's live workers during one pass.

    Attributes:
        workers: those that accept work.
        draining: how many workers finish their attempts and accept no more, but those that end by themselves.
        minimum: returns the weakest sandbox for user code.
    """

    workers: list[LiveWorker] = field(default_factory=list)
    draining: int = 0
    minimum: Minimum = installation.sandbox_minimum

    def suitable(self, job: Job) -> list[LiveWorker]:
        """Return the workers that can run a job, busy or not."""
        fitting = set(fitting_workers(job, [worker.row for worker in self.workers], self.minimum))
        return [worker for worker in self.workers if worker.row in fitting]

    def concurrency(self, job: Job) -> int:
        """Return how many of a job's attempts an otherwise empty pool can run at once."""
        return sum(worker.row.slots // job.slots for worker in self.suitable(job))


@dataclass(frozen=True)
class Candidate:
    """A job, or a batch of trials in a search, that waits for slots."""

    job: Job
    trials: tuple[Trial, ...] = ()

    def sort_key(self) -> tuple[Any, ...]:
        """Return the sort key: priority, then age, then the first trial's number."""
        return (
            -self.job.priority,
            self.job.queued or self.job.created,
            self.job.pk,
            self.trials[0].number if self.trials else 0,
        )


def place_jobs() -> int:
    """Place as many candidates as possible and record why the others wait. Return the number placed."""
    # Used slots are read before waiting rows. The slot of an attempt that ends in between is then free in the
    # next pass. In the other order, waiting trials would overtake those that the attempt releases.
    taken = open_attempts.count_open_attempts()
    jobs = _waiting_jobs()
    # An idle installation runs only these two queries, twice a second.
    if not jobs:
        return 0
    pools, used, running = _pools(taken.slots_of_worker), taken.slots_of_project, taken.of_search
    installing = cache(package_installs.running_installations)
    held = HeldGpus(live.row for live_pool in pools.values() for live in live_pool.workers)
    waiting = sorted([*_candidates(jobs), *_next_batches(jobs, pools)], key=Candidate.sort_key)
    holders = Holders((candidate.job, candidate.trials) for candidate in waiting)
    placed = 0
    for candidate in waiting:
        job = candidate.job
        pool = pools[job.pool]
        worker = None
        try:
            suitable = pool.suitable(job)
            worker = _choose_worker(candidate, suitable, holders, held)
            reason = _why_waiting(candidate, pool, suitable, used, running, installing, held)
            if reason is None and worker is None:
                reason = holders.why_wait(job, candidate.trials, [live.row for live in suitable])
        # A revision that no longer parses must not stop the other jobs.
        except ValueError as error:
            reason = _invalid_spec(error)
        if reason is None and worker is not None and _assign_candidate(candidate, worker.row):
            worker.free -= job.slots
            held.place(job, worker.row)
            used[job.project_id] += job.slots
            running[job.pk] += 1
            placed += 1
        elif reason is not None:
            _record_reason(job, reason)
    explained = {candidate.job.pk for candidate in waiting}
    _explain_searches_without_trials([job for job in jobs if job.pk not in explained], pools)
    return placed


def cut_reason(reason: str) -> str:
    """Return a reason that fits its column."""
    return reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…"


def _record_reason(job: Job, reason: str) -> None:
    """Store why a waiting job waits, unless it is known."""
    reason = cut_reason(reason)
    if reason != job.why_waiting and job.state in WAITING:
        # If another process has stored a reason since the row was read, that one is newer: it may be why
        # choosing trials failed.
        rows = Job.objects.filter(pk=job.pk, state__in=WAITING, why_waiting=job.why_waiting)
        rows.update(why_waiting=reason)
        job.why_waiting = reason


def _explain_searches_without_trials(jobs: Iterable[Job], pools: dict[str, LivePool]) -> None:
    """Record why searches without a trial to place wait: only workers choose trials' values."""
    # Scripts choose those of an external search, which has no revision.
    for search in (job for job in jobs if job.facts.has_trials and job.revision_id is not None):
        try:
            reason = _why_no_trial(search, pools[search.pool])
        except ValueError as error:
            reason = _invalid_spec(error)
        _record_reason(search, reason)


def _why_no_trial(search: Job, pool: LivePool) -> str:
    if not pool.workers:
        return _no_worker(search, pool)
    if not pool.suitable(search):
        return why_none_fits(search, [worker.row for worker in pool.workers])
    is_known = search.why_waiting.startswith((CHOOSING_FAILED, BUILDING_FIRST))
    return search.why_waiting if is_known else CHOOSING_TRIALS


def _invalid_spec(error: ValueError) -> str:
    return f"Its spec is invalid: {error}"


def _pools(taken: dict[int, int]) -> dict[str, LivePool]:
    """Return the pools with their live workers, by name; `taken` are the slots in use, by worker."""
    # Asked once a pass, and only if there is a job with code of users.
    minimum = cache(installation.sandbox_minimum)
    pools: dict[str, LivePool] = defaultdict(lambda: LivePool(minimum=minimum))
    now = clock.now()
    silent = given_up_since_heartbeat(now, lease_seconds=WORKER_LEASE_SECONDS)
    with_lease = Worker.objects.filter(~silent, lease_until__gt=now)
    for worker in with_lease.exclude(state__in=(Worker.State.LOST, Worker.State.GONE)):
        if worker.state == Worker.State.DRAINING:
            # One that ends by itself cannot be enabled again.
            pools[worker.pool].draining += not worker.info.get("ending")
        else:
            # A worker whose disk is full keeps its attempts, but gets no more.
            free = 0 if worker.info.get("no_space") else worker.slots - taken[worker.pk]
            pools[worker.pool].workers.append(LiveWorker(worker, free))
    return pools


def _waiting_trials() -> QuerySet[Trial]:
    """Return the trials that wait for placement. A chief assigns the trials in external searches."""
    trials = Trial.objects.filter(job__revision__isnull=False, job__desired=Desired.RUNNING)
    return trials.filter(job__state__in=PLACEABLE).waiting()


def _waiting_jobs() -> list[Job]:
    """Return the jobs that wait, and the searches with waiting trials."""
    own_trials = Trial.objects.filter(job=OuterRef("pk")).waiting()
    # The states are compared first, by their index: few jobs are unfinished.
    rows = Job.objects.filter(state__in=PLACEABLE, desired=Desired.RUNNING)
    rows = rows.filter(Q(state__in=WAITING) | Q(Exists(own_trials), revision__isnull=False))
    return list(jobs_with_needs(rows).select_related("project").defer(*UNREAD))


def _candidates(jobs: Iterable[Job]) -> list[Candidate]:
    """Return the waiting jobs that need slots themselves."""
    # A root whose own task is done only waits for its later steps.
    return [Candidate(job) for job in jobs if not job.facts.has_trials and not job.payload.task_done]


def _next_batches(jobs: Iterable[Job], pools: dict[str, LivePool]) -> Iterator[Candidate]:
    """Split each search's waiting trials into batches, one per attempt."""
    trials: dict[int, list[Trial]] = defaultdict(list)
    for trial in _waiting_trials().order_by("job", "number"):
        trials[trial.job_id].append(trial)
    # Trials that were created after the jobs were read wait for the next pass.
    searches = {job.pk: job for job in jobs if job.pk in trials}
    prefetch_related_objects([*searches.values()], "revision")
    for pk, search in searches.items():
        concurrency = 0
        # `place_jobs` reports an invalid spec.
        with suppress(ValueError):
            concurrency = pools[search.pool].concurrency(search)
            concurrency = min(concurrency, _trial_limit(search) or concurrency)
        for batch in batched(trials[pk], batches.batch_size(search, len(trials[pk]), concurrency)):
            yield Candidate(search, batch)


def _why_waiting(
    candidate: Candidate,
    pool: LivePool,
    suitable: list[LiveWorker],
    used: dict[int | None, int],
    running: dict[int, int],
    installing: Callable[[], package_installs.ByPackages],
    held: HeldGpus,
) -> str | None:
    """Return a sentence that states why a candidate waits, or None if it can be placed.

    A job that waits for slots blocks the workers that could run it. One that waits for its packages, its
    project's quota, its search's limit or GPUs that others hold does not, since no free slot would help it.

    Args:
        candidate: the first candidate that is not placed yet.
        pool: its pool.
        suitable: the workers in the pool that could run it.
        used: the number of slots in use, by project.
        running: the number of open attempts, by search.
        installing: returns the packages that are being installed.
        held: the GPUs that others hold.
    """
    job = candidate.job
    if not pool.workers:
        return _no_worker(job, pool)
    if not suitable:
        return why_none_fits(job, [worker.row for worker in pool.workers])
    if (reason := package_installs.describe_wait(job, installing)) is not None:
        return reason
    if (reason := _why_at_quota(job, used)) is not None:
        return reason
    if candidate.trials and (limit := _trial_limit(job)) is not None and running[job.pk] >= limit:
        return limit_reason(limit)
    able = [worker for worker in suitable if held.is_able(job, worker.row)]
    if not able:
        return held.why_wait(job, [worker.row for worker in suitable])
    if _freest_worker(able, job, held) is not None:
        return None
    return _why_no_slot(job, able, held)


def _why_no_slot(job: Job, suitable: list[LiveWorker], held: HeldGpus) -> str:
    """Return why no worker has enough free slots, and block those that could have them for this job."""
    if (first := suitable[0].blocked_by) is not None and all(worker.blocked_by for worker in suitable):
        return f"Job {first.pk} is ahead of it and waits for {format_slots(first.slots)}."
    return f"{_no_room(job, suitable, held)} {held.describe(job, [live.row for live in suitable])}".strip()


def _why_at_quota(job: Job, used: dict[int | None, int]) -> str | None:
    if job.project is None:
        return None
    quota = job.project.max_slots
    if quota is not None and used[job.project_id] + job.slots > quota:
        return f"Project {job.project} uses {used[job.project_id]} of its {format_slots(quota)}."
    return quotas.why_disk_is_full(job.project)


def _choose_worker(
    candidate: Candidate, suitable: list[LiveWorker], holders: Holders, held: HeldGpus
) -> LiveWorker | None:
    """Return a worker with enough free slots: one that has the work's checkpoints, if there is one.

    None also if the work waits for such a worker, which does not block the jobs behind it.
    """
    job, rows = candidate.job, [worker.row for worker in suitable]
    near = holders.near(job, candidate.trials, rows)
    worker = _freest_worker([worker for worker in suitable if worker.row.pk in near], job, held)
    if worker is not None or holders.why_wait(job, candidate.trials, rows) is not None:
        return worker
    return _freest_worker(suitable, job, held)


def _freest_worker(workers: list[LiveWorker], job: Job, held: HeldGpus) -> LiveWorker | None:
    """Return the worker with the most free slots for a job, if it has enough."""
    open_ = (worker for worker in workers if worker.blocked_by is None)
    freest = max(open_, key=lambda worker: worker.room(job, held), default=None)
    return freest if freest is not None and freest.room(job, held) >= job.slots else None


def _no_worker(job: Job, pool: LivePool) -> str:
    if pool.draining:
        return f"All workers of pool {job.pool} are draining; enable one on the Workers page."
    return describe_missing_workers(job.pool, job.labels)


def _no_room(job: Job, suitable: list[LiveWorker], held: HeldGpus) -> str:
    """Return why no worker has enough free slots, and block the workers unless their disks are full."""
    full = [worker.row for worker in suitable if worker.row.info.get("no_space")]
    if len(full) == len(suitable):
        # The workers are not blocked: all their jobs wait for this reason, and each shows it.
        return f"The disk of {full[0].name} is nearly full; once space is free, the job starts automatically."
    total = sum(worker.row.slots for worker in suitable)
    free = max(worker.room(job, held) for worker in suitable if worker.blocked_by is None)
    for worker in suitable:
        worker.blocked_by = worker.blocked_by or job
    return f"It needs {job.slots} of the {format_slots(total)} of pool {job.pool}; {max(free, 0)} free now."


def _trial_limit(job: Job) -> int | None:
    """Return how many trials a search allows at once."""
    search = job.revision.spec.search if job.revision is not None else None
    return search.parallel_trials if search is not None else None


def _assign_candidate(candidate: Candidate, worker: Worker) -> bool:
    """Assign a candidate to a worker under a new fencing token. Return False if it has changed since."""
    job = candidate.job
    try:
        with transaction.atomic():
            lock_root(job)
            attempt = _new_attempt(job, worker)
            if candidate.trials:
                _hold_trials(attempt, candidate.trials)
            elif job.state in WAITING:
                move(job, JobState.STARTING)
            # The root starts with the first of its steps.
            root = Job.objects.get(pk=job.root_id_or_self)
            if root.state in WAITING:
                move(root, JobState.STARTING)
            queue.wake_worker(worker.pk, attempt.pk)
    # Its state changed, or its project was deleted, since it was read.
    except (StaleState, ObjectDoesNotExist, IntegrityError):
        return False
    return True


def _hold_trials(attempt: Attempt, trials: tuple[Trial, ...]) -> None:
    """Assign trials to an attempt. They stay queued until its runner begins them.

    The caller has locked the job, so no other process assigns, pauses or stops them in the meantime.
    """
    pks = [trial.pk for trial in trials]
    if Trial.objects.filter(pk__in=pks).waiting().count() != len(pks):
        raise StaleState("a trial was assigned to another attempt, or no longer waits")
    Trial.objects.filter(pk__in=pks).update(attempt=attempt.number)
    attempt.trials.add(*pks)


def _new_attempt(job: Job, worker: Worker) -> Attempt:
    # The update locks the row until commit, so that nothing else changes the job meanwhile.
    Job.objects.filter(pk=job.pk).update(fence=F("fence") + 1)
    job.fence = Job.objects.values_list("fence", flat=True).get(pk=job.pk)
    return Attempt.objects.create(
        job=job,
        number=job.fence,
        worker=worker,
        slots=job.slots,
        assigned=clock.now(),
        lease_until=clock.seconds_from_now(UNCLAIMED_SECONDS),
    )
