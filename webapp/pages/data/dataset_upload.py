"""Accepts data from users: files on their computers, and addresses from which they are fetched."""

from typing import get_args

from django.http import HttpResponse, QueryDict
from django.urls import path
from django.utils.text import slugify

from jobs import access
from jobs.access import Action
from jobs.actions.data import datasets as actions
from jobs.actions.data import fetches, resumable_uploads
from jobs.actions.data.datasets import Roles
from jobs.errors import TrainyardError
from jobs.models import Dataset, DatasetVersion, Project, ResumableUpload
from jobs.spec.data.dialect import SAMPLE_BYTES, ReadOptions
from jobs.spec.data.fetching import FetchMode, FetchRequest
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.http_errors import TooLarge, UnsupportedMediaType
from webapp.pages.data.dataset_lookup import dataset_of, home_of
from webapp.pages.data.upload_form import is_address_form, show_upload
from webapp.pages.shortcuts import (
    Request,
    action,
    form_page,
    notify,
    problems_of,
    redirect,
    render_page,
    url,
    valid_choice,
)
from webapp.uploads import arrived, check_size, received

SAMPLE_TYPE = "application/octet-stream"


@form_page
def upload(request: Request) -> HttpResponse:
    """Create a data set, or add a version to one (`?dataset=&project=`), from a file or `?from=address`."""
    check_size(request)
    slug = request.GET.get("dataset", "")
    dataset = dataset_of(request, slug, Action.WRITE) if slug else None
    if request.method != "POST":
        return show_upload(request, dataset)
    try:
        if is_address_form(request):
            version = _save_address(request, dataset)
            notify(request, f"{version} is fetched from its address.")
        else:
            version = _save_upload(request, dataset)
            notify(request, f"{version} is uploaded. A worker is profiling it.")
    except TrainyardError as error:
        return show_upload(request, dataset, problems=problems_of(error), status=error.status)
    home = home_of(version.dataset)
    return redirect(url("dataset_version", version.dataset.slug, version.number, project=home))


@action
def sample(request: Request) -> HttpResponse:
    """Show a chosen file's dialect and first rows, from its first bytes.

    Raises:
        UnsupportedMediaType: a form arrived, not bytes.
        TooLarge: more bytes than a sample has.
        BadInput: the dialect has an invalid value.
    """
    # The body of a form has been parsed by now.
    if request.content_type != SAMPLE_TYPE:
        raise UnsupportedMediaType(f"Send the first bytes of the file as {SAMPLE_TYPE}.")
    start = request.body
    if len(start) > SAMPLE_BYTES:
        raise TooLarge(f"A sample has at most {SAMPLE_BYTES:,} bytes; this one has {len(start):,}.")
    dialect = actions.read_options(dialects.read_dialect(request.GET)).dialect
    is_all = request.GET.get("all") == "1"
    context = dialects.sample_context(start, is_all=is_all, entries=request.GET, requested=dialect)
    return render_page(request, "data/sample.html", context)


def _read_roles(entries: QueryDict) -> Roles:
    return Roles.read(
        entries.get("target", ""),
        entries.get("features", ""),
        entries.get("task", ""),
        rows_without_target=entries.get("rows_without_target", ""),
    )


def _read_options(entries: QueryDict) -> ReadOptions:
    return actions.read_options(
        dialects.read_dialect(entries),
        entries.get("max_bad_share", ""),
        image_options.read_image_options(entries),
    )


def _save_upload(request: Request, dataset: Dataset | None) -> DatasetVersion:
    entries = request.POST
    roles, reading = _read_roles(entries), _read_options(entries)
    parts = arrived(request, request.user)
    if dataset is not None:
        stored = _store_files(request, dataset.project, parts)
        version = actions.add_version(dataset, stored=stored, roles=roles, reading=reading, by=request.user)
    else:
        project = access.get_project(request.user, entries.get("project", ""), Action.WRITE)
        name = _file_name(request, parts)
        slug = actions.check_slug(entries.get("slug", "").strip() or slugify(name.rsplit(".", 1)[0]))
        version = actions.create(
            project,
            slug=slug,
            stored=_store_files(request, project, parts),
            name=entries.get("name", "").strip()[:200],
            description=entries.get("description", "").strip(),
            roles=roles,
            reading=reading,
            by=request.user,
        )
    for upload in parts:
        resumable_uploads.end_used(upload)
    return version


def _file_name(request: Request, parts: list[ResumableUpload]) -> str:
    """Return the first file's name."""
    if parts:
        return parts[0].name
    files = request.FILES.getlist("file")
    return (files[0].name if files else None) or "upload"


def _store_files(
    request: Request, project: Project | None, parts: list[ResumableUpload]
) -> actions.StoredUpload:
    """Store the form's files, or the uploads that it names."""
    if parts:
        return actions.combine_uploads(
            [resumable_uploads.store_received(upload, project) for upload in parts]
        )
    with received(request, project) as files:
        return actions.combine_uploads([actions.store_upload(file, project) for file in files])


def _save_address(request: Request, dataset: Dataset | None) -> DatasetVersion:
    entries = request.POST
    roles, reading = _read_roles(entries), _read_options(entries)
    names = ("url", "credential", "file_name", "sha256")
    mode = valid_choice(entries.get("mode"), get_args(FetchMode), "copy")
    fetch = FetchRequest(mode=mode, **{name: entries.get(name, "").strip() for name in names})
    if dataset is not None:
        return fetches.add_version(dataset, request=fetch, roles=roles, reading=reading, by=request.user)
    project = access.get_project(request.user, entries.get("project", ""), Action.WRITE)
    file_name = fetch.file_name or fetch.url.partition("?")[0].rsplit("/", 1)[-1]
    slug = entries.get("slug", "").strip() or slugify(file_name.rsplit(".", 1)[0])
    return fetches.create(
        project,
        slug=actions.check_slug(slug),
        request=fetch,
        description=entries.get("description", "").strip(),
        roles=roles,
        reading=reading,
        by=request.user,
    )


urls = [
    path("datasets/new", upload, name="dataset_upload"),
    path("datasets/sample", sample, name="dataset_sample"),
]
