"""Accepts data of users: files of their computers, and addresses from which they are fetched."""

from typing import get_args

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.urls import path
from django.utils.text import slugify

from jobs import access
from jobs.access import Action
from jobs.actions.data import datasets as actions
from jobs.actions.data import fetches, resumable_uploads
from jobs.actions.data.datasets import Roles
from jobs.errors import BadInput, NotFound, TrainyardError
from jobs.models import Credential, Dataset, DatasetVersion, Project, ResumableUpload
from jobs.queries.data import credentials
from jobs.queries.data import resumable_uploads as resumable_queries
from jobs.spec.data.dialect import SAMPLE_BYTES, ReadOptions
from jobs.spec.data.fetching import FetchMode, FetchRequest
from jobs.spec.problems import Problem
from jobs.spec.sections.data import Task
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.http_errors import TooLarge, UnsupportedMediaType
from webapp.pages.data.dataset_lookup import dataset_of, home_of
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    notify,
    problems_of,
    redirect,
    render,
    url,
    valid_choice,
    writable_projects,
)
from webapp.uploads import arrived, check_size, received

SAMPLE_TYPE = "application/octet-stream"
ADDRESS_HINT = (
    "https://…, s3://bucket/key, gs://bucket/key, or the path of a file in a folder that the operator opened."
)


@form_page
def upload(request: Request) -> HttpResponse:
    """Create a data set, or add a version to one (`?dataset=&project=`), from a file or `?from=address`."""
    check_size(request)
    slug = request.GET.get("dataset", "")
    dataset = dataset_of(request, slug, Action.WRITE) if slug else None
    if request.method != "POST":
        return _show_upload(request, dataset)
    try:
        if _is_address(request):
            version = _save_address(request, dataset)
            notify(request, f"{version} is fetched from its address.")
        else:
            version = _save_upload(request, dataset)
            notify(request, f"{version} is uploaded. A worker is profiling it.")
    except TrainyardError as error:
        return _show_upload(request, dataset, problems=problems_of(error), status=error.status)
    home = home_of(version.dataset)
    return redirect(url("dataset_version", version.dataset.slug, version.number, project=home))


@action
def sample(request: Request) -> HttpResponse:
    """Show the dialect and the first rows of a file that a person has chosen, from its first bytes.

    Raises:
        UnsupportedMediaType: a form instead of bytes.
        TooLarge: more bytes than a sample has.
        BadInput: a part of the dialect has an invalid value.
    """
    # The body of a form has been parsed by now.
    if request.content_type != SAMPLE_TYPE:
        raise UnsupportedMediaType(f"Send the first bytes of the file as {SAMPLE_TYPE}.")
    start = request.body
    if len(start) > SAMPLE_BYTES:
        raise TooLarge(f"A sample has at most {SAMPLE_BYTES:,} bytes; this one has {len(start):,}.")
    known = actions.read_options(dialects.read(request.GET)).dialect
    is_all = request.GET.get("all") == "1"
    context = dialects.sample_context(start, is_all=is_all, given=request.GET, known=known)
    return render(request, "data/sample.html", context)


def _given_roles(given: QueryDict) -> Roles:
    return Roles.read(
        given.get("target", ""),
        given.get("features", ""),
        given.get("task", ""),
        rows_without_target=given.get("rows_without_target", ""),
    )


def _given_reading(given: QueryDict) -> ReadOptions:
    return actions.read_options(
        dialects.read(given), given.get("max_bad_share", ""), image_options.read(given)
    )


def _save_upload(request: Request, dataset: Dataset | None) -> DatasetVersion:
    given = request.POST
    roles, reading = _given_roles(given), _given_reading(given)
    parts = arrived(request, request.user)
    if dataset is not None:
        stored = _stored(request, dataset.project, parts)
        version = actions.add_version(dataset, stored=stored, roles=roles, reading=reading, by=request.user)
    else:
        project = access.get_project(request.user, given.get("project", ""), Action.WRITE)
        name = _file_name(request, parts)
        slug = actions.check_slug(given.get("slug", "").strip() or slugify(name.rsplit(".", 1)[0]))
        version = actions.create(
            project,
            slug=slug,
            stored=_stored(request, project, parts),
            name=given.get("name", "").strip()[:200],
            description=given.get("description", "").strip(),
            roles=roles,
            reading=reading,
            by=request.user,
        )
    for upload in parts:
        resumable_uploads.end_used(upload)
    return version


def _file_name(request: Request, parts: list[ResumableUpload]) -> str:
    """Return the name of the first file."""
    if parts:
        return parts[0].name
    files = request.FILES.getlist("file")
    return (files[0].name if files else None) or "upload"


def _stored(request: Request, project: Project | None, parts: list[ResumableUpload]) -> actions.StoredUpload:
    """Store the form's files, or the uploads that it names."""
    if parts:
        return actions.combine_uploads(
            [resumable_uploads.store_received(upload, project) for upload in parts]
        )
    with received(request, project) as files:
        return actions.combine_uploads([actions.store_upload(file, project) for file in files])


def _is_address(request: Request) -> bool:
    """Return whether the form asks for an address instead of a file."""
    return request.GET.get("from") == "address"


def _save_address(request: Request, dataset: Dataset | None) -> DatasetVersion:
    given = request.POST
    roles, reading = _given_roles(given), _given_reading(given)
    names = ("url", "credential", "file_name", "sha256")
    mode = valid_choice(given.get("mode"), get_args(FetchMode), "copy")
    wanted = FetchRequest(mode=mode, **{name: given.get(name, "").strip() for name in names})
    if dataset is not None:
        return fetches.add_version(dataset, request=wanted, roles=roles, reading=reading, by=request.user)
    project = access.get_project(request.user, given.get("project", ""), Action.WRITE)
    file_name = wanted.file_name or wanted.url.partition("?")[0].rsplit("/", 1)[-1]
    slug = given.get("slug", "").strip() or slugify(file_name.rsplit(".", 1)[0])
    return fetches.create(
        project,
        slug=actions.check_slug(slug),
        request=wanted,
        description=given.get("description", "").strip(),
        roles=roles,
        reading=reading,
        by=request.user,
    )


def _upload_tabs(dataset: Dataset | None) -> list[tuple[str, str, str]]:
    of = {"dataset": dataset.slug, "project": home_of(dataset)} if dataset is not None else {}
    return [
        ("file", "File of this computer", url("dataset_upload", **of)),
        ("address", "From an address", url("dataset_upload", **of, **{"from": "address"})),
    ]


def _usable_credentials(request: Request, dataset: Dataset | None) -> list[tuple[Credential, str]]:
    """Return the credentials that the form may name, each with its label."""
    if dataset is not None and dataset.project is not None:
        projects = [dataset.project]
    else:
        projects = list(writable_projects(request.user))
    return [(row, credentials.credential_label(row)) for row in credentials.credentials_of_projects(projects)]


def _show_upload(
    request: Request,
    dataset: Dataset | None,
    *,
    problems: tuple[Problem, ...] = (),
    status: int = 200,
) -> HttpResponse:
    is_address = _is_address(request)
    held = _held(request)
    context = {
        "dataset": dataset,
        "is_address": is_address,
        "tab": "address" if is_address else "file",
        "tabs": _upload_tabs(dataset),
        "credentials": _usable_credentials(request, dataset) if is_address else [],
        "address_hint": ADDRESS_HINT,
        "held": held,
        "snippet": _snippet(request, dataset),
        "unfinished": [] if is_address else resumable_queries.unused_uploads(request.user),
        "limit": settings.TRAINYARD_MAX_RESUMABLE_BYTES,
        "projects": writable_projects(request.user),
        "chosen": request.POST.get("project") or _only_home(held) or request.session.get("project"),
        "given": request.POST,
        "dialect_fields": dialects.fields(request.POST),
        "image_fields": image_options.fields(request.POST),
        "image_fits": image_options.FITS,
        "bad_rows_hint": dialects.BAD_ROWS_HINT,
        "problems": problems,
        "wrong": {problem.pointer: problem.message for problem in problems},
        "tasks": get_args(Task),
        "crumbs": crumbs(("Datasets", url("datasets")), "New version" if dataset else "Upload"),
    }
    return render(request, "data/upload.html", context, status=status)


def _snippet(request: Request, dataset: Dataset | None) -> str:
    """Return the same upload as a command."""
    place = "datasets" if dataset is None else f"datasets/{dataset.slug}/versions"
    address = request.build_absolute_uri(f"/api/v1/{place}")
    project = home_of(dataset) if dataset is not None else "PROJECT"
    slug = "" if dataset is not None else " -F slug=orders"
    header = '-H "Authorization: Bearer $TOKEN"'
    return f"curl {header} {address} \\\n  -F project={project}{slug} -F file=@orders.csv"


def _held(request: Request) -> list[ResumableUpload]:
    """Return the uploads of a form that is shown again: their files need not be sent a second time.

    The page lists whole uploads with an address that begins a form with one of them.
    """
    try:
        if request.method == "GET" and (key := request.GET.get("use")):
            return [access.get_upload(request.user, key)]
        return arrived(request, request.user)
    except (BadInput, NotFound):
        return []


def _only_home(held: list[ResumableUpload]) -> str | None:
    """Return the only project in which uploads can be used."""
    return held[0].project.slug if held else None


urls = [
    path("datasets/new", upload, name="dataset_upload"),
    path("datasets/sample", sample, name="dataset_sample"),
]
