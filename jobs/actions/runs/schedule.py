"""Places waiting jobs and trials on workers as attempts, and records why the others wait.

`jobs.placement` decides: the order is priority, then the shares of persons, then age. This module reads the
state on which it decides, and writes the decision.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import batched

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, prefetch_related_objects

from jobs import clock, queue
from jobs.actions.job_locks import lock_root
from jobs.actions.runs import preemption
from jobs.actions.runs.checkpoint_preference import Holders
from jobs.actions.runs.live_pools import LivePool, free_slots, read_live_pools
from jobs.actions.transition import move
from jobs.errors import StaleState
from jobs.models import Attempt, Job, Project, Trial, User, Worker
from jobs.placement.decision import decide
from jobs.placement.state import Decision, Limit, Machine, Reservation, Room, State, Work
from jobs.queries.code import package_installs
from jobs.queries.people import quotas
from jobs.queries.runs import open_attempts, pools, reservations, shares
from jobs.queries.runs.devices import jobs_with_needs
from jobs.queries.runs.gpus.reserved import ReservedGpus
from jobs.queries.runs.held_gpus import HeldGpus
from jobs.queries.runs.open_attempts import OpenAttempt
from jobs.queries.runs.reservations import longest_run
from jobs.queries.search import batches
from jobs.queries.search.waiting import BUILDING_FIRST, CHOOSING_FAILED, CHOOSING_TRIALS, limit_reason
from jobs.states import PLACEABLE, WAITING, Desired, JobState

UNREAD = ("results_json", "progress", "warnings", "error")
"""Job columns that may be large and do not affect placement."""

MAX_REASON = 500
"""In characters, as the column has."""

UNCLAIMED_SECONDS = 15.0
"""A worker has this time to claim an attempt; then its work is placed again."""

REASONS_AT_ONCE = 500
"""How many jobs get a reason in one statement."""


@dataclass(frozen=True)
class Candidate:
    """A job, or a batch of trials in a search, that waits for slots."""

    job: Job
    trials: tuple[Trial, ...] = ()


def place_jobs() -> int:
    """Place as many candidates as possible and record why the others wait. Return the number placed."""
    # Twice a second, an idle installation runs only this query here.
    if not Job.objects.filter(state__in=PLACEABLE).exists():
        return 0
    # Used slots are read before waiting rows. The slot of an attempt that ends in between is then free in the
    # next pass. In the other order, waiting trials would overtake those that the attempt releases.
    taken = open_attempts.read_open_attempts()
    jobs = _waiting_jobs()
    if not jobs:
        return 0
    live = read_live_pools()
    candidates = [*_candidates(jobs), *_next_batches(jobs, live)]
    decision = decide(_read_state(candidates, live, taken)) if candidates else Decision()
    workers = {worker.pk: worker for pool in live.values() for worker in pool.workers}
    placed = 0
    for placement in decision.placements:
        placed += _assign_candidate(candidates[placement.work.key], workers[placement.machine])
    reasons: dict[int, str] = {}
    # Of a search's batches, the first one's reason: the others wait behind it.
    for key, reason in decision.reasons.items():
        reasons.setdefault(candidates[key].job.pk, reason)
    explained = {candidate.job.pk for candidate in candidates}
    reasons |= _explain_searches_without_trials([job for job in jobs if job.pk not in explained], live)
    _record_reasons(jobs, reasons)
    for preempted in decision.preemptions:
        preemption.preempt(preempted.running.key, waiting=preempted.work.job)
    return placed


def cut_reason(reason: str) -> str:
    """Return a reason that fits its column."""
    return reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…"


def _record_reasons(jobs: Iterable[Job], reasons: Mapping[int, str]) -> None:
    """Store why waiting jobs wait, unless it is known; alike ones in one statement."""
    changed: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        reason = cut_reason(reasons.get(job.pk, job.why_waiting))
        # Trials of a search wait also while others of them run.
        if reason != job.why_waiting and (job.state in WAITING or job.facts.has_trials):
            changed[job.why_waiting, reason].append(job)
    for (before, reason), rows in changed.items():
        for part in batched(rows, REASONS_AT_ONCE):
            # If another process has stored a reason since the row was read, that one is newer: it may be why
            # choosing trials failed.
            known = Job.objects.filter(pk__in=[job.pk for job in part], why_waiting=before)
            known.filter(state__in=PLACEABLE).update(why_waiting=reason)
        for job in rows:
            job.why_waiting = reason


def _explain_searches_without_trials(jobs: Iterable[Job], live: Mapping[str, LivePool]) -> dict[int, str]:
    """Return why searches without a trial to place wait: only workers choose trials' values."""
    reasons = {}
    # Scripts choose those of an external search, which has no revision.
    for search in (job for job in jobs if job.facts.has_trials and job.revision_id is not None):
        if search.state not in WAITING:
            continue
        try:
            reasons[search.pk] = live[search.pool].why_unsuitable(search) or _why_no_trial(search)
        except ValueError as error:
            reasons[search.pk] = _invalid_spec(error)
    return reasons


def _why_no_trial(search: Job) -> str:
    is_known = search.why_waiting.startswith((CHOOSING_FAILED, BUILDING_FIRST))
    return search.why_waiting if is_known else CHOOSING_TRIALS


def _invalid_spec(error: ValueError) -> str:
    return f"Its spec is invalid: {error}"


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


def _next_batches(jobs: Iterable[Job], live: Mapping[str, LivePool]) -> Iterator[Candidate]:
    """Split each search's waiting trials into batches, one per attempt."""
    trials: dict[int, list[Trial]] = defaultdict(list)
    for trial in _waiting_trials().order_by("job", "number"):
        trials[trial.job_id].append(trial)
    # Trials that were created after the jobs were read wait for the next pass.
    searches = {job.pk: job for job in jobs if job.pk in trials}
    prefetch_related_objects([*searches.values()], "revision")
    for pk, search in searches.items():
        concurrency = 0
        # `_Works` reports an invalid spec.
        with suppress(ValueError):
            concurrency = live[search.pool].concurrency(search)
            concurrency = min(concurrency, _trial_limit(search) or concurrency)
        for batch in batched(trials[pk], batches.batch_size(search, len(trials[pk]), concurrency)):
            yield Candidate(search, batch)


def _read_state(
    candidates: Sequence[Candidate], live: Mapping[str, LivePool], taken: Sequence[OpenAttempt]
) -> State:
    """Return the state on which the placement of these candidates is decided."""
    now = clock.estimate()
    wanted = {candidate.job.pool for candidate in candidates}
    reserved = _reservations_of(wanted, now)
    works = _Works(candidates, live, reserved, now)
    slots_taken = open_attempts.sum_open_attempts(taken).slots_of_worker
    preempting = pools.preempting_pools() & wanted
    return State(
        now=now.timestamp(),
        waiting=works.read(),
        machines=[
            _machine(worker, slots_taken[worker.pk]) for pool in live.values() for worker in pool.workers
        ],
        fitting=works.fitting,
        running=preemption.plain_attempts(taken, with_checkpoints=bool(preempting)),
        reservations=reserved,
        of_person=_limits_of_people(),
        of_project=works.of_project,
        used=shares.read_use(taken, now),
        preempting=preempting,
        rooms=works.rooms,
    )


def _limits_of_people() -> dict[int, Limit]:
    limited = User.objects.filter(max_slots__isnull=False).values_list("pk", "max_slots", "username")
    return {key: Limit(slots, name) for key, slots, name in limited if slots is not None}


def _reservations_of(wanted: set[str], now: dt.datetime) -> list[Reservation]:
    rows = reservations.open_reservations(now).filter(pool__in=wanted)
    return [reservations.plain_reservation(row) for row in rows]


def _machine(worker: Worker, taken: int) -> Machine:
    free = free_slots(worker, taken)
    return Machine(worker.pk, worker.name, worker.pool, worker.slots, free.number, free.closed, free.note)


class _Works:
    """Converts candidates to the works on which a placement is decided.

    Attributes:
        fitting: the workers that can run work with these needs.
        of_project: the quotas of slots of the candidates' projects.
        rooms: the free GPUs of workers for these needs, where others hold some or not all are alike.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        live: Mapping[str, LivePool],
        reserved: Sequence[Reservation],
        now: dt.datetime,
    ) -> None:
        self.fitting: dict[Hashable, list[int]] = {}
        self.of_project: dict[int, Limit] = {}
        self.rooms: dict[Hashable, dict[int, Room]] = {}
        self._notes: dict[Hashable, str] = {}
        workers = [worker for pool in live.values() for worker in pool.workers]
        self._held = HeldGpus(workers, ReservedGpus(reserved, workers, now))
        self._waits: dict[Hashable, str] = {}
        self._numbers: dict[Hashable, int] = {}
        self._candidates, self._live, self._now = candidates, live, now
        self._installing = cache(package_installs.running_installations)
        self._holders = Holders((candidate.job, candidate.trials) for candidate in candidates)
        self._disk: dict[int, str | None] = {}

    def read(self) -> list[Work]:
        """Return the works, in the order of the candidates."""
        return [self._work(number, candidate) for number, candidate in enumerate(self._candidates)]

    def _work(self, number: int, candidate: Candidate) -> Work:
        job, pool = candidate.job, self._live[candidate.job.pool]
        needs: Hashable = None
        refusal, suitable = "", list[Worker]()
        most: int | None = None
        try:
            refusal = pool.why_unsuitable(job)
            if not refusal:
                suitable = pool.suitable(job)
                needs = self._needs(job, suitable)
                refusal = package_installs.describe_wait(job, self._installing) or ""
                if not self.fitting[needs]:
                    refusal = refusal or self._why_wait(job, needs, suitable)
            most = _trial_limit(job) if candidate.trials else None
        # A revision that no longer parses must not stop the other jobs.
        except ValueError as error:
            refusal = _invalid_spec(error)
        if job.project is not None:
            refusal = refusal or self._why_disk_is_full(job.project) or ""
            if job.project.max_slots is not None:
                self.of_project[job.project.pk] = Limit(job.project.max_slots, str(job.project))
        near, near_reason = frozenset[int](), ""
        if suitable and self._holders:
            near = frozenset(self._holders.near(job, candidate.trials, suitable))
            near_reason = self._holders.why_wait(job, candidate.trials, suitable) or ""
        return Work(
            key=number,
            job=job.pk,
            person=job.created_by_id,
            project=job.project_id,
            priority=job.priority,
            queued=(job.queued or job.created).timestamp(),
            number=candidate.trials[0].number if candidate.trials else 0,
            slots=job.slots,
            pool=job.pool,
            needs=needs,
            seconds=longest_run(job, self._now),
            refusal=refusal,
            most=most,
            most_reason="" if most is None else limit_reason(most),
            near=near,
            near_reason=near_reason,
            note=self._notes.get(needs, ""),
            takes_devices=self._held.takes_gpus(job),
        )

    def _needs(self, job: Job, suitable: Sequence[Worker]) -> Hashable:
        """Return the key of the needs; note which workers fit, and the GPUs that they have for it."""
        kind = self._held.kind(job, suitable)
        # A number, since the decision looks for it again and again, and the parts take long to compare.
        needs = self._numbers.setdefault((self._live[job.pool].needs(job), kind), len(self._numbers))
        if needs not in self.fitting:
            able = [worker for worker in suitable if self._held.is_able(job, worker)]
            self.fitting[needs] = [worker.pk for worker in able]
            if kind is not None:
                rooms = {worker.pk: self._held.room(job, worker) for worker in able}
                self.rooms[needs] = {key: room for key, room in rooms.items() if room is not None}
                self._notes[needs] = self._held.describe(job, able)
        return needs

    def _why_wait(self, job: Job, needs: Hashable, suitable: Sequence[Worker]) -> str:
        """Return for whose GPUs a job waits. Thousands of jobs may be alike."""
        key = (needs, longest_run(job, self._now))
        if key not in self._waits:
            self._waits[key] = self._held.why_wait(job, suitable)
        return self._waits[key]

    def _why_disk_is_full(self, project: Project) -> str | None:
        if project.pk not in self._disk:
            self._disk[project.pk] = quotas.why_disk_is_full(project)
        return self._disk[project.pk]


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
