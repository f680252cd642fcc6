"""Shows the form that uploads data or names its address."""

from dataclasses import dataclass
from typing import get_args

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict

from jobs import access
from jobs.answers.data.resumable_uploads import ResumableUploadOut
from jobs.errors import BadInput, NotFound
from jobs.models import Credential, Dataset, Project, ResumableUpload
from jobs.public_path import beside_public_path
from jobs.queries.data import credentials
from jobs.queries.data import resumable_uploads as resumable_queries
from jobs.spec.problems import Problem
from jobs.spec.sections.data import Task
from jobs.upload_formats import SUFFIXES
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.pages.data.dataset_lookup import home_of
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    Tabs,
    crumbs,
    render_page,
    url,
    writable_projects,
)
from webapp.template_context import Context
from webapp.uploads import arrived

ADDRESS_HINT = (
    "https://…, s3://bucket/key, gs://bucket/key, or the path of a file in a folder that the operator opened."
)


def is_address_form(request: Request) -> bool:
    """Return whether the form asks for an address, not a file."""
    return request.GET.get("from") == "address"


def _upload_tabs(dataset: Dataset | None) -> list[tuple[str, str, str]]:
    target = {"dataset": dataset.slug, "project": home_of(dataset)} if dataset is not None else {}
    return [
        ("file", "File of this computer", url("dataset_upload", **target)),
        ("address", "From an address", url("dataset_upload", **target, **{"from": "address"})),
    ]


def _usable_credentials(request: Request, dataset: Dataset | None) -> list[tuple[Credential, str]]:
    """Return the credentials that the form may name, each with its label."""
    if dataset is not None and dataset.project is not None:
        projects = [dataset.project]
    else:
        projects = list(writable_projects(request.user))
    return [(row, credentials.credential_label(row)) for row in credentials.credentials_of_projects(projects)]


@dataclass(frozen=True)
class UploadPage(Context):
    """The form for a file or an address with a version's data."""

    dataset: Dataset | None
    is_address: bool
    tab: str
    tabs: Tabs
    credentials: list[tuple[Credential, str]]
    address_hint: str
    held: list[ResumableUpload]
    snippet: str
    unfinished: list[ResumableUploadOut]
    limit: int
    suffixes: tuple[str, ...]
    projects: QuerySet[Project]
    chosen: str | None
    entries: QueryDict
    dialect_fields: list[dialects.DialectField]
    image_fields: image_options.ImageFields
    image_fits: tuple[tuple[str, str], ...]
    bad_rows_hint: str
    problems: tuple[Problem, ...]
    wrong: dict[str, str]
    tasks: tuple[str, ...]
    crumbs: Crumbs


def show_upload(
    request: Request,
    dataset: Dataset | None,
    *,
    problems: tuple[Problem, ...] = (),
    status: int = 200,
) -> HttpResponse:
    """Show the form for new data; a refused one with its problems and entries."""
    is_address = is_address_form(request)
    held = _held_uploads(request)
    context = UploadPage(
        dataset=dataset,
        is_address=is_address,
        tab="address" if is_address else "file",
        tabs=_upload_tabs(dataset),
        credentials=_usable_credentials(request, dataset) if is_address else [],
        address_hint=ADDRESS_HINT,
        held=held,
        snippet=_upload_command(request, dataset),
        unfinished=[] if is_address else resumable_queries.unused_uploads(request.user),
        limit=settings.TRAINYARD_MAX_RESUMABLE_BYTES,
        suffixes=tuple(SUFFIXES),
        projects=writable_projects(request.user),
        chosen=request.POST.get("project") or _only_home(held) or request.session.get("project"),
        entries=request.POST,
        dialect_fields=dialects.dialect_fields(request.POST),
        image_fields=image_options.sent_image_fields(request.POST),
        image_fits=image_options.FITS,
        bad_rows_hint=dialects.BAD_ROWS_HINT,
        problems=problems,
        wrong={problem.pointer: problem.message for problem in problems},
        tasks=get_args(Task),
        crumbs=crumbs(("Datasets", url("datasets")), "New version" if dataset else "Upload"),
    )
    return render_page(request, "data/upload.html", context, status=status)


def _upload_command(request: Request, dataset: Dataset | None) -> str:
    """Return the same upload as a command."""
    place = "datasets" if dataset is None else f"datasets/{dataset.slug}/versions"
    address = request.build_absolute_uri(beside_public_path(f"/api/v1/{place}"))
    project = home_of(dataset) if dataset is not None else "PROJECT"
    slug = "" if dataset is not None else " -F slug=orders"
    header = '-H "Authorization: Bearer $TOKEN"'
    return f"curl {header} {address} \\\n  -F project={project}{slug} -F file=@orders.csv"


def _held_uploads(request: Request) -> list[ResumableUpload]:
    """Return the uploads in a form that is shown again. Their files need not be sent twice.

    The page lists whole uploads with an address that begins a form with one upload.
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
