"""Reads the split overviews for a dataset version."""

from collections.abc import Collection

from django.db.models import Q

from jobs import access
from jobs.answers.data.datasets import SplitOverviewOut
from jobs.kinds.split_overview.payload import SplitOverviewPayload
from jobs.kinds.split_overview.rows import overviews_of_split
from jobs.messages.overview import Overview, SplitOverview, key_of
from jobs.models import DatasetVersion, Job, Project, User
from jobs.models.job import JobQuerySet
from jobs.queries.data import datasets
from jobs.queries.data.causes import cause_of
from jobs.spec.data.split_roles import canonical
from jobs.spec.sections.data import Split
from jobs.states import WAITING, JobState

NONE = "none"
"""The state if no overview was requested."""
ENDED_WITHOUT = (JobState.FAILED, JobState.STOPPED)
"""Job states after which the overview can be requested again."""


def overview_of_split(
    version: DatasetVersion,
    split: Split,
    *,
    reader: User,
    homes: Collection[Project],
    version_overview: Overview | None = None,
) -> SplitOverviewOut:
    """Return a split's overview as far as it is computed.

    A finished one depends on the version alone: users who may see the version may see it, whatever project
    its job is in. Nothing else about other projects' jobs is shown.

    Args:
        version: the data.
        split: may leave the column to the roles.
        reader: the acting user.
        homes: the reader's projects, whose unfinished and failed jobs count too.
        version_overview: the version's overview, if the caller has read it.
    """
    profile = version.profile
    canonical_split = canonical(split, profile) if profile is not None else split
    # Pages request the parts every two seconds while a job compares them, and the overview may be large.
    job = overview_job(version, canonical_split, homes)
    if (
        job is None
        and (overview := _overview_of_version(version, canonical_split, version_overview)) is not None
    ):
        return _overview_without_job(canonical_split, JobState.COMPLETED, overview)
    job = job or _ended_job(version, canonical_split, homes)
    if job is None:
        return _overview_without_job(canonical_split, NONE)
    is_visible = access.visible_jobs(reader).filter(pk=job.pk).exists()
    return SplitOverviewOut(
        split=canonical_split,
        state=job.state,
        job=job.pk if is_visible else None,
        overview=_computed_overview(job),
        error=cause_of(job.error) if is_visible else None,
        why_waiting=job.why_waiting if is_visible and job.state in WAITING else "",
    )


def overview_payload(version: DatasetVersion, split: Split) -> SplitOverviewPayload:
    """Build the payload for the job that compares a canonical split's parts."""
    return SplitOverviewPayload(dataset_version=version.pk, split=split, key=key_of(split))


def overview_job(version: DatasetVersion, split: Split, homes: Collection[Project]) -> Job | None:
    """Return the job that computes or has computed a canonical split. None if there is none.

    Projects share finished jobs only: a job that waits in another project may wait for its quota, and its
    members may stop it. A finished job counts only if its file can be read: it may be lost, or come from a
    release with other fields.
    """
    usable = Q(state=JobState.COMPLETED) | Q(project__in=homes)
    rows = _jobs_of_split(version, split).filter(usable).exclude(state__in=ENDED_WITHOUT)
    return next(
        (job for job in rows if job.state != JobState.COMPLETED or _computed_overview(job) is not None), None
    )


def is_of_profile(version: DatasetVersion, split: Split) -> bool:
    """Return whether the version's own overview describes a canonical split."""
    return _overview_of_version(version, split, None) is not None


def _overview_without_job(
    split: Split, state: str, overview: SplitOverview | None = None
) -> SplitOverviewOut:
    return SplitOverviewOut(split=split, state=state, job=None, overview=overview, error=None, why_waiting="")


def _jobs_of_split(version: DatasetVersion, split: Split) -> JobQuerySet:
    """Return a canonical split's jobs, newest first."""
    return Job.objects.filter(overviews_of_split(version.pk, key_of(split))).order_by("-pk")


def _ended_job(version: DatasetVersion, split: Split, homes: Collection[Project]) -> Job | None:
    return _jobs_of_split(version, split).filter(project__in=homes, state__in=ENDED_WITHOUT).first()


def _overview_of_version(
    version: DatasetVersion, split: Split, version_overview: Overview | None
) -> SplitOverview | None:
    profile = version.profile
    overview = version_overview or (datasets.read_overview(version) if profile is not None else None)
    if overview is None or profile is None or canonical(overview.split, profile) != split:
        return None
    return SplitOverview(**{name: getattr(overview, name) for name in SplitOverview.model_fields})


def _computed_overview(job: Job) -> SplitOverview | None:
    return datasets.most_complete_overview(job, SplitOverview)
