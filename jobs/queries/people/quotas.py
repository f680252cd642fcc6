"""Reads projects' quotas: those that administrators set, and the installation's defaults."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Sum

from jobs import clock
from jobs.answers.people.quotas import QuotaOut, QuotasOut
from jobs.models import Attempt, DatasetVersion, Job, ModelVersion, Project, UploadReservation
from jobs.queries.storage import disk_use

RAISE = "ask an administrator of the installation to raise the quota"
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")

HIGHEST: dict[str, int] = {
    "slots": 100_000,
    "bytes": 2**60,
    "jobs": 1_000_000,
    "uploads": 100_000,
    "events": 100_000_000,
}
"""The largest value for each quota, by name."""


@dataclass(frozen=True)
class Limits:
    """The most that a project may have at the same time.

    Attributes:
        slots: slots that its jobs hold; None means no quota.
        bytes: bytes in its files and events.
        jobs: unfinished jobs; a job's steps do not count.
        uploads: uploads that are received or prepared.
        events: events that its runs send in a second; see `jobs.messages.event_cost`.
    """

    slots: int | None
    bytes: int
    jobs: int
    uploads: int
    events: int


def default_quotas() -> Limits:
    """Return the installation's quotas. They apply to projects without their own."""
    return Limits(
        slots=None,
        bytes=settings.TRAINYARD_PROJECT_BYTES,
        jobs=settings.TRAINYARD_PROJECT_JOBS,
        uploads=settings.TRAINYARD_PROJECT_UPLOADS,
        events=settings.TRAINYARD_PROJECT_EVENTS_PER_SECOND,
    )


def limits_of(project: Project) -> Limits:
    """Return the quotas that apply to a project."""
    default = default_quotas()
    return Limits(
        slots=project.max_slots,
        bytes=default.bytes if project.max_bytes is None else project.max_bytes,
        jobs=default.jobs if project.max_jobs is None else project.max_jobs,
        uploads=default.uploads if project.max_uploads is None else project.max_uploads,
        events=default.events if project.max_events is None else project.max_events,
    )


def quota_column(name: str) -> str:
    """Return the column that stores a project's value for this quota."""
    return f"max_{name}"


def own_quotas(project: Project) -> dict[str, int | None]:
    """Return the quotas that administrators set for a project, by name; None means the default."""
    return {name: getattr(project, quota_column(name)) for name in HIGHEST}


def quotas_revision(project: Project) -> str:
    """Return a text that differs if the project's own quotas differ."""
    return ".".join("-" if value is None else str(value) for value in own_quotas(project).values())


def count_unfinished_jobs(project: Project) -> int:
    """Count a project's unfinished jobs, without steps."""
    return Job.objects.filter(project=project).roots().unfinished().count()


def count_uploads_being_prepared(project: Project) -> int:
    """Count a project's stored uploads that wait for a worker to read them."""
    data = DatasetVersion.objects.filter(
        dataset__project=project, dataset__deletion=None, state=DatasetVersion.State.PREPARING
    )
    models = ModelVersion.objects.filter(
        model__project=project, state=ModelVersion.State.VALIDATING, what="uploaded"
    )
    return data.count() + models.count()


def quotas_out(project: Project) -> QuotasOut:
    """Return a project's quotas and their use."""
    running = Attempt.objects.open().filter(job__project=project)
    sums = running.aggregate(slots=Sum("slots"), events=Sum("event_rate"))
    receiving = UploadReservation.objects.filter(project=project, until__gt=clock.estimate())
    used = {
        "slots": sums["slots"] or 0,
        "bytes": disk_use.recent_bytes(project.pk) + disk_use.bytes_being_received(project.pk),
        "jobs": count_unfinished_jobs(project),
        "uploads": receiving.count() + count_uploads_being_prepared(project),
        "events": sums["events"] or 0,
    }
    limits, default, set_here = limits_of(project), default_quotas(), own_quotas(project)
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
    """Return a sentence if a project's disk quota is used up, else None."""
    quota, used = limits_of(project).bytes, disk_use.recent_bytes(project.pk)
    return disk_sentence(project, used, quota) if used >= quota else None


def disk_sentence(project: Project, used: int, quota: int, *, adding: int = 0) -> str:
    """Describe that a project has reached its disk quota, and the remedy."""
    addition = f", and this needs {format_bytes(adding)} more" if adding else ""
    return (
        f"Files and events of project {project} use {format_bytes(used)} of its {format_bytes(quota)} of disk"
        f"{addition}. Delete data, jobs or models, which frees space once they can no longer be restored, or "
        f"{RAISE}."
    )


def format_bytes(count: int) -> str:
    """Format a byte count."""
    size, power = float(count), 0
    while size >= 1000 and power < len(UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}"
