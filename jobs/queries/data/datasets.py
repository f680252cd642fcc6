"""Reads data sets and their versions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.core.cache import cache
from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from pydantic import ValidationError

from jobs import access, clock
from jobs.answers.data.datasets import (
    ColumnOut,
    DatasetOut,
    DatasetVersionOut,
    FetchOut,
    LatestVersionOut,
    LoadedByOut,
    OverviewOut,
    PreviewOut,
)
from jobs.errors import NotFound
from jobs.kinds.profile.payload import ProfilePayload
from jobs.kinds.profile.rows import profiles_of_any
from jobs.messages.overview import Overview, Sample, SplitOverview
from jobs.models import Dataset, DatasetVersion, Experiment, Fetch, Job, JobArtifact, Project, Revision, User
from jobs.models.job import JobQuerySet
from jobs.queries.data.causes import cause_of
from jobs.queries.search.outcomes import find_dataset
from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import is_stratified, named_part_rows, resolved
from jobs.spec.sections.data import Split
from jobs.store import store

CACHED_SECONDS = 3600
READY = DatasetVersion.State.READY


def datasets_with_versions(
    user: User, project: Project | None = None, *, profiles: bool = False
) -> QuerySet[Dataset]:
    """Return the data sets that `user` may see, with their versions.

    Args:
        user: the reader.
        project: only its own data sets and the bundled ones.
        profiles: whether to load the profiles, which can be large.
    """
    rows = access.visible_datasets(user).select_related("project", "created_by")
    if project is not None:
        rows = rows.filter(Q(project=project) | Q(project=None))
    versions = DatasetVersion.objects.order_by("number")
    if not profiles:
        versions = versions.defer("profile_json")
    newest = DatasetVersion.objects.filter(dataset=OuterRef("pk")).order_by("-number")
    return rows.annotate(
        version_count=Count("versions"), newest_number=Subquery(newest.values("number")[:1])
    ).prefetch_related(Prefetch("versions", queryset=versions))


def ready_datasets(user: User, project: Project) -> list[str]:
    """Return the names of data sets on which a project may train, its own and the bundled ones."""
    rows = access.visible_datasets(user).filter(Q(project=project) | Q(project=None), versions__state=READY)
    return list(rows.order_by("slug").values_list("slug", flat=True).distinct())


def newest_own(datasets: Iterable[Dataset]) -> DatasetVersion | None:
    """Return the newest ready version of those data sets that belong to a project, not to Trainyard."""
    own = (dataset for dataset in datasets if dataset.project_id is not None)
    ready = (version for dataset in own for version in dataset.versions.all() if version.state == READY)
    return max(ready, key=lambda version: version.pk, default=None)


def find_version(project: Project, slug: str, number: int | None = None) -> DatasetVersion | None:
    """Return the version that a spec refers to: the given number, or else the newest ready one."""
    dataset = find_dataset(project, slug)
    if dataset is None:
        return None
    rows = dataset.versions.filter(number=number) if number else dataset.versions.filter(state=READY)
    return rows.select_related("dataset").order_by("-number").first()


def is_being_read(project: Project, slug: str) -> bool:
    """Return whether any version of the data set may still become ready."""
    dataset = find_dataset(project, slug)
    return dataset is not None and dataset.versions.filter(state=DatasetVersion.State.PREPARING).exists()


def version_of_job(job: Job) -> DatasetVersion | None:
    """Return the dataset version that a job reads; None if it reads none, or it is deleted."""
    pk = job.payload.dataset_version
    return DatasetVersion.objects.select_related("dataset").filter(pk=pk).first() if pk is not None else None


def profile_payload(version: DatasetVersion) -> ProfilePayload:
    """Build the payload for the job that reads and describes a version."""
    return ProfilePayload(dataset_version=version.pk)


def profile_jobs(versions: Iterable[DatasetVersion]) -> JobQuerySet:
    """Return the jobs that read and describe these versions."""
    return Job.objects.filter(profiles_of_any([version.pk for version in versions]))


def profile_job(version: DatasetVersion) -> Job | None:
    """Return the newest job that reads this version."""
    return profile_jobs([version]).order_by("-pk").first()


def experiments_using(user: User, dataset: Dataset) -> QuerySet[Experiment]:
    """Return the visible experiments whose newest revision uses the data set."""
    newest = Revision.objects.filter(experiment=OuterRef("pk")).order_by("-number")
    slugs = newest.annotate(slug=KT("spec_json__data__dataset")).values("slug")
    rows = access.visible_experiments(user).annotate(data_slug=Subquery(slugs[:1]))
    if dataset.project is not None:
        rows = rows.filter(project=dataset.project)
    return rows.filter(data_slug=dataset.slug).select_related("project").order_by("-updated")


def weight_column(job: Job) -> str:
    """Return the column that weighs the rows in a job's data; empty if each row counts once."""
    if job.payload.dataset_version is None or not (job.facts.evaluates or job.facts.has_trials):
        return ""
    # The rest of the profile can be large.
    rows = DatasetVersion.objects.filter(pk=job.payload.dataset_version).annotate(
        weight=KT("profile_json__weight")
    )
    return rows.values_list("weight", flat=True).first() or ""


class PartSizes(NamedTuple):
    """How many rows training, validation and test have."""

    train: int
    validation: int
    test: int


def part_sizes(profile: Profile, split: Split) -> PartSizes:
    """Count the rows in each part. Exact for random, stratified and named parts, else approximate.

    A stratified split divides each class separately, as the engine does.
    """
    if (named := named_part_rows(split, profile)) is not None:
        return PartSizes(*named)
    is_divided = is_stratified(resolved(split, profile), profile) and profile.class_counts
    groups = profile.class_counts if is_divided else (profile.rows,)
    validation = sum(_share_of_part(rows, split.validation) for rows in groups)
    test = sum(_share_of_part(rows, split.test) for rows in groups)
    return PartSizes(profile.rows - validation - test, validation, test)


def _share_of_part(rows: int, fraction: float) -> int:
    # The engine gives each part at least one row if there are enough for all three.
    return max(round(rows * fraction), 1 if rows >= 3 else 0)


def dataset_out(dataset: Dataset) -> DatasetOut:
    """Return a data set's API representation."""
    # The versions are prefetched: a sort or a filter in the database would query them again.
    versions = list(dataset.versions.all())
    newest = max(versions, key=lambda version: version.number, default=None)
    latest = newest and LatestVersionOut(
        number=newest.number, state=newest.state, digest=newest.digest or None, rows=newest.rows
    )
    return DatasetOut(
        slug=dataset.slug,
        name=dataset.name,
        description=dataset.description,
        project=dataset.project.slug if dataset.project else None,
        source=dataset.source,
        versions=len(versions),
        latest=latest,
        created_by=dataset.created_by.username if dataset.created_by else None,
        created=dataset.created,
    )


def version_out(version: DatasetVersion) -> DatasetVersionOut:
    """Return a dataset version's API representation."""
    return versions_out([version])[0]


def versions_out(versions: Sequence[DatasetVersion]) -> list[DatasetVersionOut]:
    """Return the versions' API representation, with one query for the jobs that read them."""
    jobs = profile_jobs(versions).only("kind", "payload_json")
    # In ascending order, so that the newest job of each version remains.
    job_of = {job.payload.dataset_version: job.pk for job in jobs.order_by("pk")}
    fetch_of = {
        fetch.version_id: fetch
        for fetch in Fetch.objects.filter(version__in=[version.pk for version in versions])
    }
    return [_version_out(version, job_of.get(version.pk), fetch_of.get(version.pk)) for version in versions]


def fetch_out(version: DatasetVersion) -> FetchOut | None:
    """Return the fetch for a version's file. None if the file was uploaded or is bundled."""
    row = Fetch.objects.filter(version=version).first()
    return _fetch_out(row) if row is not None else None


def _fetch_out(row: Fetch) -> FetchOut:
    return FetchOut(
        url=row.shown,
        mode=row.mode,
        state=row.state,
        credential=row.credential_name or None,
        received=row.received,
        total=row.total,
        eta_seconds=_seconds_left(row),
        attempt=row.attempts,
        etag=row.etag or None,
        modified=row.modified or None,
        sha256=row.sha256 or None,
    )


def _seconds_left(row: Fetch) -> float | None:
    if row.state != Fetch.State.RUNNING or not row.total or not row.received or row.started is None:
        return None
    elapsed = (clock.estimate() - row.started).total_seconds()
    return max(0.0, round(elapsed * (row.total - row.received) / row.received, 1))


def _version_out(version: DatasetVersion, job: int | None, fetch: Fetch | None) -> DatasetVersionOut:
    profile = version.profile
    return DatasetVersionOut(
        dataset=version.dataset.slug,
        project=version.dataset.project.slug if version.dataset.project else None,
        number=version.number,
        state=version.state,
        source=version.request.get("source", ""),
        file=version.request.get("file"),
        files=version.files,
        digest=version.digest or None,
        rows=version.rows,
        schema_=profile.schema_alone() if profile else None,
        columns=[
            ColumnOut.model_validate(column, from_attributes=True)
            for column in (profile.columns if profile else ())
        ],
        error=cause_of(version.error),
        job=job,
        fetch=_fetch_out(fetch) if fetch is not None else None,
        code=loader_code_out(version),
        created_by=version.created_by.username if version.created_by else None,
        created=version.created,
    )


def loader_code_out(version: DatasetVersion) -> LoadedByOut | None:
    """Return the code that has loaded a version; None for all other data."""
    loaded = version.request.get("code")
    return LoadedByOut.model_validate(loaded) if loaded is not None else None


def bad_rows_file(version: DatasetVersion) -> JobArtifact | None:
    """Return the file with the rows that a version left out. None if there is none."""
    return _newest_artifact(version, "bad_rows")


def thumbnails_file(version: DatasetVersion) -> JobArtifact | None:
    """Return the thumbnails file for a version with images. None for all others."""
    return _newest_artifact(version, "thumbnails")


def _newest_artifact(version: DatasetVersion, role: str) -> JobArtifact | None:
    job = profile_job(version)
    if job is None:
        return None
    return job.artifacts.filter(role=role).select_related("artifact").order_by("pk").last()


def read_overview(version: DatasetVersion) -> Overview | None:
    """Return the overview of a version's columns and parts, as far as it is computed.

    Versions from earlier releases have none.
    """
    job = profile_job(version)
    return most_complete_overview(job, Overview) if job is not None else None


def most_complete_overview[Found: SplitOverview](job: Job, kind: type[Found]) -> Found | None:
    """Return a job's overview with the most sections. None without a readable one."""
    overviews = (_parse_artifact(row, kind) for row in job.artifacts.filter(role="overview").order_by("-pk"))
    # An attempt whose worker was killed may have computed more than the newest has until now.
    return min(filter(None, overviews), key=lambda overview: len(overview.pending), default=None)


def profile_of(version: DatasetVersion) -> Profile | None:
    """Return a version's profile, also while it is being prepared. None before."""
    if version.profile is not None or version.state != DatasetVersion.State.PREPARING:
        return version.profile
    return _read_newest(version, "profile", Profile)


def read_sample(version: DatasetVersion) -> Sample | None:
    """Return a version's first rows while its profile is being computed."""
    if version.state != DatasetVersion.State.PREPARING:
        return None
    return _read_newest(version, "sample", Sample)


def _read_newest[Described: Frozen](
    version: DatasetVersion, role: str, kind: type[Described]
) -> Described | None:
    """Return a role's newest file. None without one, or if the runner wrote an invalid one."""
    file = _newest_artifact(version, role)
    return None if file is None else _parse_artifact(file, kind)


def _parse_artifact[Described: Frozen](file: JobArtifact, kind: type[Described]) -> Described | None:
    try:
        return kind.model_validate_json(read_content(file.artifact_id))
    except (NotFound, OSError, ValidationError):
        return None


def read_content(digest: str) -> bytes:
    """Return a stored file's content. It is immutable, so it is cached."""
    key = f"overview:{digest}"
    cached: bytes | None = cache.get(key)
    if cached is None:
        cached = store().path(digest).read_bytes()
        cache.set(key, cached, timeout=CACHED_SECONDS)
    return cached


def preview_out(version: DatasetVersion) -> PreviewOut:
    """Return a version's first rows, as soon as a worker has read them."""
    profile = profile_of(version)
    if profile is None:
        head = read_sample(version)
        columns, rows = (list(head.columns), list(head.preview)) if head is not None else ([], [])
        return PreviewOut(state=version.state, columns=columns, rows=rows, thumbnails=None)
    names = [column.name for column in profile.columns if profile.images is None or column.type != "image"]
    sheet = thumbnails_file(version) if profile.images is not None else None
    digest = None if sheet is None else sheet.artifact.digest
    return PreviewOut(state=version.state, columns=names, rows=list(profile.preview), thumbnails=digest)


def overview_out(version: DatasetVersion) -> OverviewOut:
    """Return the overview's API representation."""
    return OverviewOut(state=version.state, overview=read_overview(version))
