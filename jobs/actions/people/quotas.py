"""Refuses work for a project that has reached a quota. Use is counted from rows, so it survives crashes."""

from jobs.errors import QuotaReached
from jobs.models import Artifact, Attempt, Project
from jobs.queries.people.quotas import (
    RAISE,
    count_unfinished_jobs,
    disk_sentence,
    limits_of,
    why_disk_is_full,
)
from jobs.queries.storage import disk_use


def require_room_for_job(project: Project) -> None:
    """Require that a project has fewer unfinished jobs than its quota, and disk space. Steps do not count.

    Call it inside the transaction that creates the job: the lock on the project makes concurrent calls wait.

    Raises:
        QuotaReached: the project has as many unfinished jobs or bytes as it may have.
    """
    project = lock_project(project)
    quota = limits_of(project).jobs
    used = count_unfinished_jobs(project)
    if used >= quota:
        raise QuotaReached(
            f"Project {project} has {used:,} unfinished jobs, and its quota is {quota:,}. "
            f"Stop some of them, wait until they have ended, or {RAISE}."
        )
    if (reason := why_disk_is_full(project)) is not None:
        raise QuotaReached(reason)


def require_room_for_artifact(project: Project, *artifacts: Artifact) -> None:
    """Require that a project may refer to artifacts, which need no space if it already does.

    Call it inside the transaction that creates the reference: the lock on the project makes concurrent calls
    wait.

    Raises:
        QuotaReached: its files would exceed the disk quota.
    """
    project = lock_project(project)
    quota, used = limits_of(project).bytes, disk_use.bytes_of_project(project.pk)
    adding = disk_use.bytes_added_by(artifacts, project.pk)
    if used + adding > quota:
        raise QuotaReached(disk_sentence(project, used, quota, adding=adding))


def require_room_on_disk(project: Project, adding: int) -> None:
    """Require that `adding` bytes fit into a project's disk quota, before a file is stored.

    The use that is known may be some seconds old.

    Raises:
        QuotaReached: it does not fit.
    """
    quota, used = limits_of(project).bytes, disk_use.recent_bytes(project.pk)
    if used + adding > quota:
        raise QuotaReached(disk_sentence(project, used, quota, adding=adding))


def require_room_for_output(attempt_id: int, adding: int) -> None:
    """Require that an attempt's output fits into its project's disk quota, before it is stored.

    Raises:
        QuotaReached: it does not fit.
    """
    project = Attempt.objects.select_related("job__project").get(pk=attempt_id).job.project
    if project is not None:
        require_room_on_disk(project, adding)


def lock_project(project: Project) -> Project:
    """Return a project, locked until the transaction ends, so that quota checks wait for each other."""
    return Project.objects.select_for_update(no_key=True).get(pk=project.pk)
