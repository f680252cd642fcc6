"""Shows one data set version, reads a failed one again, and cancels its fetch."""

from dataclasses import dataclass
from typing import Any, get_args

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.data import fetches, profiles
from jobs.answers.data.datasets import FetchOut, LoadedByOut
from jobs.models import CodeVersion, Dataset, DatasetVersion, Experiment, Job, JobArtifact, Project
from jobs.queries.data import code_data
from jobs.queries.data import datasets as queries
from jobs.queries.runs.jobs import reasons_to_wait
from jobs.spec.data.columns import OfferedRole, OfferedType
from jobs.spec.data.profile import Column, Profile
from jobs.spec.sections.data import TARGET_GAPS, Task
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.forms.data.dialects import BAD_ROWS_HINT
from webapp.pages.data import version_settings
from webapp.pages.data.dataset_columns import FirstRows, preview_rows, profile_context
from webapp.pages.data.dataset_lookup import dataset_of, home_of, project_for, version_of
from webapp.pages.data.dataset_split import split_context
from webapp.pages.data.thumbnails import ThumbnailRow, thumbnail_rows
from webapp.pages.data.version_origin import origin_context
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    is_partial,
    notify,
    page,
    redirect,
    render_page,
    url,
)
from webapp.report_figures.overview import overview_context, pending_titles
from webapp.template_context import Context

MEGABYTE = 1e6


@dataclass(frozen=True)
class DatasetVersionPage(Context):
    """A data set version, without the parts that a worker computes."""

    dataset: Dataset
    version: DatasetVersion
    home: str
    versions: QuerySet[DatasetVersion]
    profile: Profile | None
    used_by: QuerySet[Experiment]
    may_write: bool
    may_retry: bool
    start_in: Project | None
    tasks: tuple[str, ...]
    has_target_gaps: bool
    roles: tuple[str, ...]
    types: tuple[str, ...]
    date_formats: tuple[version_settings.DateFormatChoice, ...]
    has_file: bool
    may_edit_roles: bool
    may_accept_offers: bool
    offers: version_settings.OffersPage
    dialect_fields: list[dialects.DialectField]
    thumbnails: list[ThumbnailRow]
    image_fields: image_options.ImageFields | None
    has_other_settings: bool
    image_fits: tuple[tuple[str, str], ...]
    bad_share: str | None
    bad_rows_hint: str
    array: Column | None
    bad_rows: JobArtifact | None
    crumbs: Crumbs


@page
def version_page(request: Request, slug: str, number: int) -> HttpResponse:
    """Show one version: sample, columns, class balance, split, findings and the experiments that use it."""
    dataset = dataset_of(request, slug)
    version = version_of(dataset, number)
    profile = queries.profile_of(version)
    context = DatasetVersionPage(
        dataset=dataset,
        version=version,
        home=home_of(dataset),
        # Without the profiles, which can be large.
        versions=dataset.versions.order_by("-number").defer("profile_json"),
        profile=profile,
        used_by=queries.experiments_using(request.user, dataset)[:10],
        may_write=access.can(request.user, dataset.project, Action.WRITE),
        may_retry=request.user.is_superuser or access.can(request.user, dataset.project, Action.WRITE),
        start_in=project_for(request, dataset),
        tasks=get_args(Task),
        has_target_gaps=(version.error or {}).get("code") == TARGET_GAPS,
        roles=get_args(OfferedRole),
        types=get_args(OfferedType),
        date_formats=version_settings.DATE_FORMATS,
        has_file=version_settings.has_file(version),
        may_edit_roles=version_settings.may_edit_roles(request, version),
        may_accept_offers=version_settings.may_accept_offers(request, version),
        offers=version_settings.offers_page(profile.offers if profile is not None else (), request),
        dialect_fields=version_settings.fields_of_dialect(version),
        thumbnails=thumbnail_rows(version, profile),
        image_fields=version_settings.image_fields(version, profile),
        # The columns of tables are edited in their own table.
        has_other_settings=profile is None or not profile.has_pipeline or profile.images is not None,
        image_fits=image_options.FITS,
        bad_share=version_settings.bad_share(version),
        bad_rows_hint=BAD_ROWS_HINT,
        array=version_settings.array_of_two_axes(profile),
        bad_rows=queries.bad_rows_file(version),
        crumbs=crumbs(("Datasets", url("datasets")), dataset.slug, f"v{number}"),
    )
    origin = (
        _reading_context(version),
        _fetch_context(version),
        _loader_context(version),
        origin_context(version),
    )
    computed = _computed_contexts(request, version, profile)
    response = render_page(request, "data/version.html", context, *origin, *computed, partial="body")
    # The part is reloaded while the version is prepared; then the header of the page changes too.
    if is_partial(request) and version.state != DatasetVersion.State.PREPARING:
        response["HX-Refresh"] = "true"
    return response


@dataclass(frozen=True)
class ReadingSection(Context):
    """The job that reads a version, and the reason why it waits."""

    job: Job | None
    why_waiting: str = ""


def _reading_context(version: DatasetVersion) -> ReadingSection:
    job = queries.profile_job(version)
    return ReadingSection(job) if job is None else ReadingSection(job, reasons_to_wait([job])[job.pk])


@dataclass(frozen=True)
class FirstRowsSection(Context):
    """The first rows, while the columns are not described yet."""

    first_rows: FirstRows | None


@dataclass(frozen=True)
class PendingSection(Context):
    """The titles for sections that a worker still computes."""

    pending_sections: list[str]


def _computed_contexts(
    request: Request, version: DatasetVersion, profile: Profile | None
) -> tuple[Context, ...]:
    """Return the parts that a worker has computed until now."""
    if profile is None:
        sample = queries.read_sample(version)
        return (FirstRowsSection(preview_rows(sample) if sample is not None else None),)
    computed = queries.read_overview(version)
    is_preparing = version.state == DatasetVersion.State.PREPARING
    return (
        profile_context(profile, request),
        split_context(request, version, profile, computed),
        *((overview_context(computed),) if computed is not None else ()),
        PendingSection(pending_titles(computed, profile, is_preparing=is_preparing)),
    )


@dataclass(frozen=True)
class FetchSection(Context):
    """The fetch from an address, and its progress."""

    fetch: FetchOut | None = None
    fetch_progress: dict[str, Any] | None = None
    is_fetching: bool = False


def _fetch_context(version: DatasetVersion) -> FetchSection:
    fetch = queries.fetch_out(version)
    if fetch is None:
        return FetchSection()
    progress = {
        "done": round(fetch.received / MEGABYTE, 1),
        "total": round((fetch.total or 0) / MEGABYTE, 1),
        "fraction": fetch.received / fetch.total if fetch.total else None,
        "unit": "MB",
        "eta_seconds": fetch.eta_seconds,
    }
    is_open = fetch.state in ("waiting", "running")
    return FetchSection(fetch, progress, is_open)


@dataclass(frozen=True)
class LoaderSection(Context):
    """The code that has loaded the rows, and the job that executed it."""

    loaded_by: LoadedByOut | None = None
    code: CodeVersion | None = None


def _loader_context(version: DatasetVersion) -> LoaderSection:
    loader = queries.loader_code_out(version)
    return LoaderSection() if loader is None else LoaderSection(loader, code_data.code_of(version))


@action
def try_again(request: Request, slug: str, number: int) -> HttpResponse:
    """Fetch or profile a failed version again."""
    dataset = dataset_of(request, slug)
    version = access.get_dataset_version(request.user, slug, number, dataset.project)
    fetch = queries.fetch_out(version)
    if fetch is not None and fetch.state != "done":
        fetches.fetch_again(version, by=request.user)
        notify(request, f"{version} is being fetched again.")
        return redirect(url("dataset_version", slug, number, project=home_of(dataset)))
    profiles.profile_again(version, by=request.user)
    notify(request, f"{version} is being profiled again.")
    return redirect(url("dataset_version", slug, number, project=home_of(dataset)))


@action
def cancel_fetch(request: Request, slug: str, number: int) -> HttpResponse:
    """Cancel a version's fetch."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    fetches.cancel(version, by=request.user)
    notify(request, f"The fetch of {version} is cancelled.")
    return redirect(url("dataset_version", slug, number, project=home_of(dataset)))


urls = [
    path("datasets/<slug:slug>/versions/<int:number>", version_page, name="dataset_version"),
    path("datasets/<slug:slug>/versions/<int:number>/again", try_again, name="dataset_again"),
    path("datasets/<slug:slug>/versions/<int:number>/cancel", cancel_fetch, name="dataset_cancel"),
]
