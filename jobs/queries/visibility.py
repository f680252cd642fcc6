"""Filters jobs by a user's permissions."""

from collections.abc import Iterable

from jobs import access
from jobs.models import Job, User


def visible_ids(user: User, jobs: Iterable[Job]) -> set[int]:
    """Return the job ids that `user` may see, in one query."""
    ids = {job.pk for job in jobs}
    return set(access.visible_jobs(user).filter(pk__in=ids).values_list("pk", flat=True))
