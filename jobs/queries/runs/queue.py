"""Reads the queue in the order in which the scheduler processes it."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Max, QuerySet, Sum

from jobs import access, clock
from jobs.models import Attempt, Job, User
from jobs.placement.shares import Turns
from jobs.placement.state import Work
from jobs.queries.runs.jobs import reasons_to_wait
from jobs.queries.runs.open_attempts import read_open_attempts
from jobs.queries.runs.shares import read_use
from jobs.queries.visibility import visible_ids
from jobs.states import ACTIVE, WAITING

LIMIT = 500
"""The most jobs in a list."""

HIGHEST_PRIORITY = 100


@dataclass(frozen=True)
class Entry:
    """A job that waits or holds slots.

    Attributes:
        place: its position, from 1.
        job: the job; None if the reader may not see its project.
        needs: how many slots it needs.
        has: how many slots it holds.
        why: why it waits.
        may_change: whether the reader may change its priority.
        leaves_for: the job of higher priority for which it frees slots; None if it does not.
        raise_to: the priority that would move it up by one place; None at the top or at the limit.
    """

    place: int
    job: Job | None
    needs: int
    has: int
    why: str
    may_change: bool
    leaves_for: int | None = None
    raise_to: int | None = None


def waiting_jobs(user: User) -> list[Entry]:
    """Return the jobs that wait for slots, in the order in which the scheduler looks at them."""
    keys = _ordered_keys()[:LIMIT]
    rows = {job.pk: job for job in _with_people(_all_waiting().filter(pk__in=keys))}
    # One may have been placed since the order was read.
    return _entries_out(user, [rows[key] for key in keys if key in rows])


def _all_waiting() -> QuerySet[Job]:
    return Job.objects.filter(state__in=WAITING)


def _ordered_keys() -> list[int]:
    """Return the keys of the waiting jobs by priority, then the shares of their persons, then age."""
    columns = ("pk", "created_by_id", "priority", "queued", "created", "slots", "pool")
    rows = list(_all_waiting().values_list(*columns))
    if not rows:
        return []
    now = clock.estimate()
    works = [
        Work(
            key=key,
            job=key,
            person=person,
            project=None,
            priority=priority,
            queued=(queued or created).timestamp(),
            number=0,
            slots=slots,
            pool=pool,
            needs=None,
        )
        for key, person, priority, queued, created, slots, pool in rows
    ]
    running = read_open_attempts()
    holding: dict[tuple[str, int | None], int] = defaultdict(int)
    for attempt in running:
        holding[attempt.pool, attempt.person] += attempt.slots
    turns = Turns(works, read_use(running, now), holding, now.timestamp())
    keys = []
    for work in turns:
        keys.append(work.key)
        turns.charge(work)
    return keys


def queue_position(job: Job) -> int | None:
    """Return a job's position in `waiting_jobs`, from 1. None if it does not wait."""
    if job.state not in WAITING or job.queued is None:
        return None
    keys = _ordered_keys()
    return keys.index(job.pk) + 1 if job.pk in keys else None


def active_jobs(user: User) -> list[Entry]:
    """Return the active jobs: those that hold slots, and searches whose trials do."""
    rows = Job.objects.filter(state__in=ACTIVE).order_by("-priority", "started", "pk")
    # A hidden search that holds no slots itself is left out: its place in the list would be empty.
    return [entry for entry in _entries_out(user, list(_with_people(rows)[:LIMIT])) if entry.job or entry.has]


def _with_people(rows: QuerySet[Job]) -> QuerySet[Job]:
    return rows.select_related("project", "created_by", "experiment", "parent")


def _entries_out(user: User, jobs: list[Job]) -> list[Entry]:
    visible = visible_ids(user, jobs)
    rows = Attempt.objects.open().filter(job__in=jobs).values_list("job")
    held = {row[0]: row[1:] for row in rows.annotate(Sum("slots"), Max("preempted_for"))}
    reasons = reasons_to_wait([job for job in jobs if job.pk in visible], user)
    projects = {job.project_id: job.project for job in jobs if job.pk in visible}
    writable = {pk for pk, project in projects.items() if access.can(user, project, access.Action.WRITE)}
    return [
        Entry(
            place=place,
            job=job if job.pk in visible else None,
            needs=job.slots,
            has=held.get(job.pk, (0, None))[0],
            leaves_for=held.get(job.pk, (0, None))[1],
            why=reasons.get(job.pk, ""),
            may_change=job.pk in visible and job.project_id in writable,
            raise_to=_overtaking_priority(jobs, place),
        )
        for place, job in enumerate(jobs, start=1)
    ]


def _overtaking_priority(jobs: list[Job], place: int) -> int | None:
    """Return the lowest priority that overtakes the previous job. None at the top or at the limit."""
    if place == 1:
        return None
    priority = jobs[place - 2].priority + 1
    return priority if priority <= HIGHEST_PRIORITY else None
