"""Reads data sets and their versions."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.fields.json import KT

from jobs import access
from jobs.contracts.answers.datasets import (
    ColumnOut,
    DatasetOut,
    DatasetVersionOut,
    LatestVersionOut,
    PreviewOut,
)
from jobs.contracts.data import Split
from jobs.contracts.profile import Profile
from jobs.models import Dataset, DatasetVersion, Experiment, Job, JobArtifact, Project, Revision, User
from jobs.queries.causes import cause_of
from jobs.queries.outcomes import dataset_in

READY = DatasetVersion.State.READY


def listed(user: User, project: Project | None = None, *, profiles: bool = False) -> QuerySet[Dataset]:
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


def with_profile(project: Project, slug: str, number: int | None = None) -> DatasetVersion | None:
    """Return the version that a spec refers to: the given number, or else the newest ready one."""
    dataset = dataset_in(project, slug)
    if dataset is None:
        return None
    rows = dataset.versions.filter(number=number) if number else dataset.versions.filter(state=READY)
    return rows.select_related("dataset").order_by("-number").first()


def is_being_read(project: Project, slug: str) -> bool:
    """Return whether a version of the data set may still become ready."""
    dataset = dataset_in(project, slug)
    return dataset is not None and dataset.versions.filter(state=DatasetVersion.State.PREPARING).exists()


def profile_job(version: DatasetVersion) -> Job | None:
    """Return the newest job that reads this version."""
    return Job.objects.profiling(version.pk).order_by("-pk").first()


def used_by(user: User, dataset: Dataset) -> QuerySet[Experiment]:
    """Return the visible experiments whose newest revision uses the data set."""
    newest = Revision.objects.filter(experiment=OuterRef("pk")).order_by("-number")
    slugs = newest.annotate(slug=KT("spec_json__data__dataset")).values("slug")
    rows = access.visible_experiments(user).annotate(data_slug=Subquery(slugs[:1]))
    if dataset.project is not None:
        rows = rows.filter(project=dataset.project)
    return rows.filter(data_slug=dataset.slug).select_related("project").order_by("-updated")


class PartSizes(NamedTuple):
    """The number of rows for training, validation and test."""

    train: int
    validation: int
    test: int


def part_sizes(profile: Profile, split: Split) -> PartSizes:
    """Return the rows of each part. Exact for random and stratified splits, approximate for others.

    A stratified split divides each class separately, as the engine does.
    """
    is_stratified = split.stratify and profile.task in ("binary", "multiclass") and profile.class_counts
    groups = profile.class_counts if is_stratified else (profile.rows,)
    validation = sum(_share(rows, split.validation) for rows in groups)
    test = sum(_share(rows, split.test) for rows in groups)
    return PartSizes(profile.rows - validation - test, validation, test)


def _share(rows: int, fraction: float) -> int:
    # The engine gives each part at least one row if there are enough for all three.
    return max(round(rows * fraction), 1 if rows >= 3 else 0)


def shown_dataset(dataset: Dataset) -> DatasetOut:
    """Return the API representation of a data set."""
    # `listed` has prefetched the versions: a sort or a filter in the database would query them again.
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


def shown_version(version: DatasetVersion) -> DatasetVersionOut:
    """Return the API representation of a version of a data set."""
    return shown_versions([version])[0]


def shown_versions(versions: Sequence[DatasetVersion]) -> list[DatasetVersionOut]:
    """Return the API representation of versions, with one query for the jobs that read them."""
    jobs = Job.objects.profiling_any([version.pk for version in versions]).only("kind", "payload_json")
    # In ascending order, so that the newest job of each version remains.
    job_of = {job.payload.dataset_version: job.pk for job in jobs.order_by("pk")}
    return [_shown_version(version, job_of.get(version.pk)) for version in versions]


def _shown_version(version: DatasetVersion, job: int | None) -> DatasetVersionOut:
    profile = version.profile
    return DatasetVersionOut(
        dataset=version.dataset.slug,
        project=version.dataset.project.slug if version.dataset.project else None,
        number=version.number,
        state=version.state,
        source=version.request.get("source", ""),
        file=version.request.get("file"),
        digest=version.digest or None,
        rows=version.rows,
        schema_=profile.schema_alone() if profile else None,
        columns=[
            ColumnOut.model_validate(column, from_attributes=True)
            for column in (profile.columns if profile else ())
        ],
        error=cause_of(version.error),
        job=job,
        created_by=version.created_by.username if version.created_by else None,
        created=version.created,
    )


def bad_rows(version: DatasetVersion) -> JobArtifact | None:
    """Return the file with the rows that were left out when a version was read; None if there is none."""
    job = profile_job(version)
    if job is None:
        return None
    return job.artifacts.filter(role="bad_rows").select_related("artifact").order_by("pk").last()


def preview(version: DatasetVersion) -> PreviewOut:
    """Return the first rows of a version; none until it is ready."""
    profile = version.profile
    if profile is None:
        return PreviewOut(state=version.state, columns=[], rows=[])
    names = [column.name for column in profile.columns]
    return PreviewOut(state=version.state, columns=names, rows=list(profile.preview))
