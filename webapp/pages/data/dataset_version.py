"""Shows one version of a data set, reads a failed one again, and cancels its fetch."""

from typing import Any, NamedTuple, get_args

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.data import fetches, profiles
from jobs.models import DatasetVersion
from jobs.queries.data import code_data
from jobs.queries.data import datasets as queries
from jobs.queries.runs.jobs import reasons_to_wait
from jobs.spec.data.columns import OfferedRole, OfferedType
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.data.profile import Column, Profile
from jobs.spec.sections.data import TARGET_GAPS, Task
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.forms.data.dialects import BAD_ROWS_HINT
from webapp.pages.data.dataset_columns import first_rows, profile_context
from webapp.pages.data.dataset_lookup import dataset_of, home_of, project_for, version_of
from webapp.pages.data.dataset_split import split_context
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    is_partial,
    notify,
    page,
    redirect,
    render,
    url,
)
from webapp.report_figures import overview

MEGABYTE = 1e6
WITH_BAD_ROWS = ("csv", "json_lines", "images")
"""Sources whose rows are left out if they are damaged."""


class Sheet(NamedTuple):
    """A file with thumbnails, and its size in pixels."""

    address: str
    width: int
    height: int


class ThumbnailRow(NamedTuple):
    """The thumbnails of one label: a part of the sheet, in pixels.

    Attributes:
        label: empty if the target is a number.
        rows: number of images with this label, if it is a class.
        sheet: the file.
        top: of the part.
        width: of the part.
        height: of the part.
    """

    label: str
    rows: int | None
    sheet: Sheet
    top: int
    width: int
    height: int


@page
def version_page(request: Request, slug: str, number: int) -> HttpResponse:
    """Show one version: sample, columns, class balance, split, findings and the experiments that use it."""
    dataset = dataset_of(request, slug)
    version = version_of(dataset, number)
    profile = queries.profile_of(version)
    context = {
        "dataset": dataset,
        "version": version,
        "home": home_of(dataset),
        # Without the profiles, which can be large.
        "versions": dataset.versions.order_by("-number").defer("profile_json"),
        "profile": profile,
        **_job_context(version),
        **_fetch_context(version),
        **_code_context(version),
        "used_by": queries.experiments_using(request.user, dataset)[:10],
        "may_write": access.can(request.user, dataset.project, Action.WRITE),
        "may_retry": request.user.is_superuser or access.can(request.user, dataset.project, Action.WRITE),
        "start_in": project_for(request, dataset),
        "tasks": get_args(Task),
        "has_target_gaps": (version.error or {}).get("code") == TARGET_GAPS,
        "roles": get_args(OfferedRole),
        "types": get_args(OfferedType),
        "has_file": _has_file(version),
        "may_edit_roles": _may_edit_roles(request, version),
        "dialect_fields": _dialect_fields(version),
        "thumbnails": _thumbnail_rows(version, profile),
        "image_fields": _image_fields(version, profile),
        # The columns of tables are edited in their own table.
        "has_other_settings": profile is None or not profile.has_pipeline or profile.images is not None,
        "image_fits": image_options.FITS,
        "bad_share": _bad_share(version),
        "bad_rows_hint": BAD_ROWS_HINT,
        "array": _array_of_two_axes(profile),
        "bad_rows": queries.bad_rows_file(version),
        "crumbs": crumbs(("Datasets", url("datasets")), dataset.slug, f"v{number}"),
        **_computed_context(request, version, profile),
    }
    response = render(request, "data/version.html", context, partial="body")
    # The part is reloaded while the version is prepared; then the header of the page changes too.
    if is_partial(request) and version.state != DatasetVersion.State.PREPARING:
        response["HX-Refresh"] = "true"
    return response


def _job_context(version: DatasetVersion) -> dict[str, Any]:
    """Return the job that reads a version, and why it waits."""
    job = queries.profile_job(version)
    if job is None:
        return {"job": None}
    return {"job": job, "why_waiting": reasons_to_wait([job])[job.pk]}


def _computed_context(request: Request, version: DatasetVersion, profile: Profile | None) -> dict[str, Any]:
    """Return the parts of a version that a worker has computed until now."""
    if profile is None:
        return {
            "first_rows": first_rows(found) if (found := queries.read_sample(version)) is not None else None
        }
    found_overview = queries.read_overview(version)
    is_preparing = version.state == DatasetVersion.State.PREPARING
    return {
        **profile_context(profile, request),
        **split_context(request, version, profile, found_overview),
        **(overview.context(found_overview) if found_overview is not None else {}),
        "pending_sections": overview.pending_titles(found_overview, profile, is_preparing=is_preparing),
    }


def _fetch_context(version: DatasetVersion) -> dict[str, Any]:
    fetch = queries.fetch_out(version)
    if fetch is None:
        return {}
    progress = {
        "done": round(fetch.received / MEGABYTE, 1),
        "total": round((fetch.total or 0) / MEGABYTE, 1),
        "fraction": fetch.received / fetch.total if fetch.total else None,
        "unit": "MB",
        "eta_seconds": fetch.eta_seconds,
    }
    is_open = fetch.state in ("waiting", "running")
    return {"fetch": fetch, "fetch_progress": progress, "is_fetching": is_open}


def _code_context(version: DatasetVersion) -> dict[str, Any]:
    """Return the code that has loaded the rows, and the job that executed it."""
    found = queries.loader_code_out(version)
    return {} if found is None else {"loaded_by": found, "code": code_data.code_of(version)}


def _thumbnail_rows(version: DatasetVersion, profile: Profile | None) -> list[ThumbnailRow]:
    """Return the thumbnails of an archive of images, one row for each label."""
    images = profile.images if profile is not None else None
    stored = queries.thumbnails_file(version) if images is not None else None
    if profile is None or images is None or stored is None:
        return []
    layout = images.thumbnails
    address = f"/api/v1/artifacts/{stored.artifact.digest}"
    rows = dict(zip(profile.class_labels, profile.class_counts, strict=False))
    sheet = Sheet(address, layout.side * layout.tiles, layout.side * len(layout.labels))
    return [
        ThumbnailRow(label, rows.get(label), sheet, i * layout.side, count * layout.side, layout.side)
        for i, (label, count) in enumerate(zip(layout.labels, layout.counts, strict=True))
    ]


def _image_fields(version: DatasetVersion, profile: Profile | None) -> dict[str, object] | None:
    """Return the size of the images in a version's form; None for other data."""
    if version.request.get("source") != "images":
        return None
    if profile is not None and profile.images is not None:
        return image_options.fields_of(profile.images.shape)
    return image_options.fields_of(ReadOptions.model_validate(version.request.get("reading", {})).images)


def _may_edit_roles(request: Request, version: DatasetVersion) -> bool:
    """Return whether the table of columns is a form. A bundled file has the same roles for everyone."""
    profile = version.profile
    if profile is None or not _has_file(version) or profile.images is not None:
        return False
    return access.can(request.user, version.dataset.project, Action.WRITE)


def _array_of_two_axes(profile: Profile | None) -> Column | None:
    """Return the feature whose rows may be images or sequences; None for other data."""
    if profile is None or profile.has_pipeline:
        return None
    found = (column for column in profile.columns if column.name in profile.features)
    return next((column for column in found if len(column.shape) == 2), None)


def _bad_share(version: DatasetVersion) -> str | None:
    """Return the share of rows that may be left out, to be changed if the file could not be read."""
    if version.state != DatasetVersion.State.FAILED or version.request.get("source") not in WITH_BAD_ROWS:
        return None
    return f"{ReadOptions.model_validate(version.request.get('reading', {})).max_bad_share:g}"


def _has_file(version: DatasetVersion) -> bool:
    """Return whether the file of a version can be read again, from the store or from its address."""
    if version.upload is not None:
        return True
    fetch = queries.fetch_out(version)
    return fetch is not None and fetch.state == "done"


def _dialect_fields(version: DatasetVersion) -> list[dialects.DialectField]:
    """Return the selects of the dialect of a table of text; none for other formats and bundled data."""
    if version.request.get("source") != "csv":
        return []
    given = ReadOptions.model_validate(version.request.get("reading", {})).dialect.model_dump(mode="json")
    chosen = {
        f"{dialects.PREFIX}{name}": _as_text(value) for name, value in given.items() if value is not None
    }
    return dialects.fields(chosen, version.profile.dialect if version.profile is not None else None)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
    """Cancel the fetch of a version."""
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
