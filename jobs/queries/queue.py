"""The queue in the order in which the scheduler goes through it."""

from dataclasses import dataclass

from django.db.models import QuerySet, Sum

from jobs import access
from jobs.models import Attempt, Job, User
from jobs.queries.jobs import why_waiting
from jobs.queries.visibility import in_sight
from jobs.states import ACTIVE, WAITING

LIMIT = 500
HIGHEST_PRIORITY = 100


@dataclass(frozen=True)
class Entry:
    """A job that waits or holds slots. `job` is None for one of a project the asker may not see.

    `raise_to` is the priority that would put it one place further up.
    """

    place: int
    job: Job | None
    needs: int
    has: int
    why: str
    may_change: bool
    raise_to: int | None = None


def waiting(user: User) -> list[Entry]:
    """Return the jobs that wait for slots, first those that come first."""
    rows = Job.objects.filter(state__in=[str(state) for state in WAITING]).order_by(
        "-priority", "queued", "pk"
    )
    return _entries(user, list(_with_people(rows)[:LIMIT]))


def holding(user: User) -> list[Entry]:
    """Return the jobs that hold slots or coordinate trials that do."""
    rows = Job.objects.filter(state__in=[str(state) for state in ACTIVE]).order_by(
        "-priority", "started", "pk"
    )
    return [entry for entry in _entries(user, list(_with_people(rows)[:LIMIT])) if entry.job or entry.has]


def _with_people(rows: QuerySet[Job]) -> QuerySet[Job]:
    return rows.select_related("project", "created_by", "experiment", "parent")


def _entries(user: User, jobs: list[Job]) -> list[Entry]:
    seen = in_sight(user, jobs)
    held = dict(Attempt.objects.open().filter(job__in=jobs).values_list("job").annotate(total=Sum("slots")))
    projects = {job.project_id: job.project for job in jobs if job.pk in seen}
    writable = {pk for pk, project in projects.items() if access.can(user, project, access.Action.WRITE)}
    return [
        Entry(
            place=place,
            job=job if job.pk in seen else None,
            needs=job.slots,
            has=held.get(job.pk, 0),
            why=why_waiting(job) if job.pk in seen else "",
            may_change=job.pk in seen and job.project_id in writable,
            raise_to=_above(jobs, place),
        )
        for place, job in enumerate(jobs, start=1)
    ]


def _above(jobs: list[Job], place: int) -> int | None:
    """Return the least priority that overtakes the job before; None at the top or where none is higher."""
    if place == 1:
        return None
    wanted = jobs[place - 2].priority + 1
    return wanted if wanted <= HIGHEST_PRIORITY else None
