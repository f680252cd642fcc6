"""Lists data sets, shows one version, and accepts uploads."""

from collections.abc import Container
from typing import Any, NamedTuple, get_args

from django.db.models import F
from django.http import HttpResponse
from django.urls import path
from django.utils.text import slugify

from jobs import access
from jobs.access import Action
from jobs.actions import datasets as actions
from jobs.actions.datasets import Roles
from jobs.contracts.data import Split, Task
from jobs.contracts.problems import Problem
from jobs.contracts.profile import Column, Profile
from jobs.errors import NotFound, TrainyardError
from jobs.models import Dataset, DatasetVersion, Project
from jobs.queries import datasets as queries
from jobs.queries.paging import Page, page_of
from webapp.pages.pictures import Bar, histogram_bars, png_uri
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    is_partial,
    notify,
    page,
    problems_of,
    redirect,
    render,
    url,
    writable_projects,
)
from webapp.uploads import check_size, received

SAMPLE_ROWS = 12
SHOWN_COLUMNS = 100
"""Columns on one page; an upload may have many thousand, each with a histogram."""
SHOWN_CLASSES = 100


@page
def list_page(request: Request) -> HttpResponse:
    """List the data sets that the user may see: those of their projects and the bundled ones."""
    rows = queries.listed(request.user)
    if text := request.GET.get("q", ""):
        rows = rows.filter(slug__icontains=text) | rows.filter(name__icontains=text)
    rows = rows.annotate(home=F("project__slug"))
    shown = page_of(rows, cursor=request.GET.get("cursor"), order="slug")
    context = {
        "shown": shown,
        "text": text,
        "rows": [
            # `max`, not a query: the versions are prefetched.
            (dataset, max(dataset.versions.all(), key=lambda version: version.number, default=None))
            for dataset in shown.items
        ],
        "may_upload": writable_projects(request.user).exists(),
        "crumbs": crumbs("Datasets"),
    }
    return render(request, "datasets/list.html", context)


class ColumnView(NamedTuple):
    """A column with the bars of its histogram."""

    column: Column
    bars: list[Bar]
    role: str


class ClassShare(NamedTuple):
    """A class with its share of the rows."""

    label: str
    rows: int
    percent: float
    width: float


@page
def newest(request: Request, slug: str) -> HttpResponse:
    """Redirect to the newest version of a data set."""
    dataset = _dataset(request, slug)
    version = dataset.versions.order_by("-number").first()
    if version is None:
        raise NotFound(f"Data set {slug!r} has no version yet.")
    return redirect(url("dataset_version", slug, version.number, project=_home(dataset)))


@page
def version_page(request: Request, slug: str, number: int) -> HttpResponse:
    """Show one version: sample, columns, class balance, split, findings and the experiments that use it."""
    dataset = _dataset(request, slug)
    version = dataset.versions.select_related("created_by", "upload").filter(number=number).first()
    if version is None:
        raise NotFound(f"Data set {slug!r} has no version {number}.")
    profile = version.profile
    context = {
        "dataset": dataset,
        "version": version,
        "home": _home(dataset),
        # Without the profiles, which can be large.
        "versions": dataset.versions.order_by("-number").defer("profile_json"),
        "profile": profile,
        "job": queries.profile_job(version),
        "used_by": queries.used_by(request.user, dataset)[:10],
        "may_write": access.can(request.user, dataset.project, Action.WRITE),
        "may_retry": request.user.is_superuser or access.can(request.user, dataset.project, Action.WRITE),
        "start_in": _project_for_experiment(request, dataset),
        "tasks": get_args(Task),
        "crumbs": crumbs(("Datasets", url("datasets")), dataset.slug, f"v{number}"),
        **(_profile_context(profile, _first_column(request)) if profile is not None else {}),
    }
    response = render(request, "datasets/version.html", context, partial="body")
    # The part is reloaded while the version is prepared; then the header of the page changes too.
    if is_partial(request) and version.state != DatasetVersion.State.PREPARING:
        response["HX-Refresh"] = "true"
    return response


def _dataset(request: Request, slug: str, wanted: Action = Action.VIEW) -> Dataset:
    home = request.GET.get("project")
    project = access.get_project(request.user, home) if home else None
    return access.get_dataset(request.user, slug, project, wanted)


def _home(dataset: Dataset) -> str:
    return dataset.project.slug if dataset.project is not None else ""


def _project_for_experiment(request: Request, dataset: Dataset) -> Project | None:
    """Return the project in which a new experiment on this data set is created."""
    mine = list(writable_projects(request.user))
    if dataset.project is not None:
        return next((project for project in mine if project.pk == dataset.project_id), None)
    current = request.session.get("project")
    return next((project for project in mine if project.slug == current), mine[0] if mine else None)


def _first_column(request: Request) -> int:
    """Return the position of the first column that is shown."""
    given = request.GET.get("cursor", "")
    # More digits cannot be a position, and `int` refuses thousands of them.
    return int(given) if given.isascii() and given.isdigit() and len(given) < 9 else 0


def _profile_context(profile: Profile, first: int) -> dict[str, Any]:
    shown = profile.columns[first : first + SHOWN_COLUMNS]
    after = first + len(shown)
    features = frozenset(profile.features)
    columns = [_column_view(column, profile, features) for column in shown]
    return {
        "columns": columns,
        "columns_page": Page(
            columns, str(after) if 0 < after < len(profile.columns) else None, len(profile.columns)
        ),
        "sample": [[_cell(row.get(c.name), c) for c in shown] for row in profile.preview[:SAMPLE_ROWS]],
        "balance": _class_shares(profile),
        "more_classes": max(len(profile.class_labels) - SHOWN_CLASSES, 0),
        "parts": queries.part_sizes(profile, Split()),
        "inputs": " × ".join(str(size) for size in profile.input_shape),
    }


def _column_view(column: Column, profile: Profile, features: Container[str]) -> ColumnView:
    role = "target" if column.name == profile.target else "feature" if column.name in features else ""
    return ColumnView(column, histogram_bars(column.histogram), role)


def _cell(value: Any, column: Column) -> dict[str, Any]:
    """Return a value of the sample as an image if the column has images, else as text."""
    if len(column.shape) in (2, 3) and column.min is not None and column.max is not None:
        return {"image": png_uri(value, column.min, column.max), "text": "image"}
    return {"image": None, "text": value if not isinstance(value, list) else f"{len(value)} values"}


def _class_shares(profile: Profile) -> list[ClassShare]:
    most = max(profile.class_counts, default=0)
    return [
        ClassShare(label, count, 100 * count / profile.rows, 100 * count / most if most else 0)
        for label, count in zip(profile.class_labels[:SHOWN_CLASSES], profile.class_counts, strict=False)
    ]


@form_page
def upload(request: Request) -> HttpResponse:
    """Create a data set from a file, or add a version to one (`?dataset=&project=`)."""
    check_size(request)
    slug = request.GET.get("dataset", "")
    dataset = _dataset(request, slug, Action.WRITE) if slug else None
    if request.method != "POST":
        return _show_upload(request, dataset)
    try:
        version = _save_upload(request, dataset)
    except TrainyardError as error:
        return _show_upload(request, dataset, problems=problems_of(error), status=error.status)
    notify(request, f"{version} is uploaded. A worker is profiling it.")
    home = _home(version.dataset)
    return redirect(url("dataset_version", version.dataset.slug, version.number, project=home))


def _save_upload(request: Request, dataset: Dataset | None) -> DatasetVersion:
    given = request.POST
    roles = Roles.read(given.get("target", ""), given.get("features", ""), given.get("task", ""))
    if dataset is not None:
        with received(request, dataset.project) as file:
            stored = actions.store_upload(file, dataset.project)
        return actions.add_version(dataset, stored=stored, roles=roles, by=request.user)
    project = access.get_project(request.user, given.get("project", ""), Action.WRITE)
    with received(request, project) as file:
        slug = actions.check_slug(given.get("slug", "").strip() or slugify(file.name.rsplit(".", 1)[0]))
        stored = actions.store_upload(file, project)
    return actions.create(
        project,
        slug=slug,
        stored=stored,
        name=given.get("name", "").strip()[:200],
        description=given.get("description", "").strip(),
        roles=roles,
        by=request.user,
    )


def _show_upload(
    request: Request,
    dataset: Dataset | None,
    *,
    problems: tuple[Problem, ...] = (),
    status: int = 200,
) -> HttpResponse:
    context = {
        "dataset": dataset,
        "projects": writable_projects(request.user),
        "chosen": request.POST.get("project") or request.session.get("project"),
        "given": request.POST,
        "problems": problems,
        "wrong": {problem.pointer: problem.message for problem in problems},
        "tasks": get_args(Task),
        "crumbs": crumbs(("Datasets", url("datasets")), "New version" if dataset else "Upload"),
    }
    return render(request, "datasets/upload.html", context, status=status)


@action
def set_roles(request: Request, slug: str, number: int) -> HttpResponse:
    """Create a version of the same file with other column roles."""
    dataset = _dataset(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    given = request.POST
    roles = Roles.read(given.get("target", ""), given.get("features", ""), given.get("task", ""))
    made = actions.set_roles(version, roles, by=request.user)
    notify(request, f"{made} has the new roles. A worker is profiling it.")
    return redirect(url("dataset_version", slug, made.number, project=_home(dataset)))


@action
def try_again(request: Request, slug: str, number: int) -> HttpResponse:
    """Retry the profile of a failed version."""
    dataset = _dataset(request, slug)
    version = access.get_dataset_version(request.user, slug, number, dataset.project)
    actions.profile_again(version, by=request.user)
    notify(request, f"{version} is being profiled again.")
    return redirect(url("dataset_version", slug, number, project=_home(dataset)))


urls = [
    path("datasets", list_page, name="datasets"),
    path("datasets/new", upload, name="dataset_upload"),
    path("datasets/<slug:slug>", newest, name="dataset"),
    path("datasets/<slug:slug>/versions/<int:number>", version_page, name="dataset_version"),
    path("datasets/<slug:slug>/versions/<int:number>/roles", set_roles, name="dataset_roles"),
    path("datasets/<slug:slug>/versions/<int:number>/again", try_again, name="dataset_again"),
]
