"""Reads the quotas of projects: those that administrators set, and the installation's defaults."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Sum

from jobs.contracts.answers.quotas import QuotaOut, QuotasOut
from jobs.models import Attempt, Job, Project
from jobs.queries import disk_use

RAISE = "ask an administrator of the installation to raise the quota"
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")

HIGHEST: dict[str, int] = {"slots": 100_000, "bytes": 2**60, "jobs": 1_000_000}
"""The quotas by name, with the largest value of each."""


@dataclass(frozen=True)
class Limits:
    """The most that a project may have at the same time.

    Attributes:
        slots: slots that its jobs hold; None means no quota.
        bytes: bytes of its files.
        jobs: unfinished jobs; steps of a job do not count.
    """

    slots: int | None
    bytes: int
    jobs: int


def defaults() -> Limits:
    """Return the installation's quotas for projects without quotas of their own."""
    return Limits(
        slots=None,
        bytes=settings.TRAINYARD_PROJECT_BYTES,
        jobs=settings.TRAINYARD_PROJECT_JOBS,
    )


def limits_of(project: Project) -> Limits:
    """Return the quotas that apply to a project."""
    default = defaults()
    return Limits(
        slots=project.max_slots,
        bytes=default.bytes if project.max_bytes is None else project.max_bytes,
        jobs=default.jobs if project.max_jobs is None else project.max_jobs,
    )


def column_of(name: str) -> str:
    """Return the column in which the project's own quota of this name is stored."""
    return f"max_{name}"


def own(project: Project) -> dict[str, int | None]:
    """Return the quotas that administrators set for a project, by name; None means the default."""
    return {name: getattr(project, column_of(name)) for name in HIGHEST}


def revision_of(project: Project) -> str:
    """Return a text that differs if the project's own quotas differ."""
    return ".".join("-" if value is None else str(value) for value in own(project).values())


def unfinished_jobs(project: Project) -> int:
    """Return how many jobs of a project have not ended, without steps of jobs."""
    return Job.objects.filter(project=project).roots().unfinished().count()


def shown(project: Project) -> QuotasOut:
    """Return the quotas of a project and their use."""
    held = Attempt.objects.open().filter(job__project=project).aggregate(total=Sum("slots"))["total"] or 0
    used = {
        "slots": held,
        "bytes": disk_use.recently(project.pk),
        "jobs": unfinished_jobs(project),
    }
    limits, default, set_here = limits_of(project), defaults(), own(project)
    return QuotasOut(
        **{
            name: QuotaOut(
                used=used[name],
                limit=getattr(limits, name),
                default=getattr(default, name),
                is_default=set_here[name] is None,
            )
            for name in HIGHEST
        }
    )


def why_disk_is_full(project: Project) -> str | None:
    """Return why a project can start nothing that writes files, as a sentence; None if it can."""
    quota, used = limits_of(project).bytes, disk_use.recently(project.pk)
    return disk_sentence(project, used, quota) if used >= quota else None


def disk_sentence(project: Project, used: int, quota: int, *, adding: int = 0) -> str:
    """Return that a project has reached its disk quota, and the remedy."""
    more = f", and this needs {_size(adding)} more" if adding else ""
    return (
        f"Files of project {project} use {_size(used)} of its {_size(quota)} of disk{more}. Delete data, "
        f"jobs or models, which frees space once they can no longer be restored, or {RAISE}."
    )


def _size(count: int) -> str:
    size, power = float(count), 0
    while size >= 1000 and power < len(UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}"
