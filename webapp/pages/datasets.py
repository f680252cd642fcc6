"""Lists data sets, shows one version, and accepts uploads."""

from collections.abc import Container
from typing import Any, NamedTuple, get_args

from django.db.models import F
from django.http import HttpResponse, QueryDict
from django.urls import path
from django.utils.text import slugify

from jobs import access
from jobs.access import Action
from jobs.actions import datasets as actions
from jobs.actions.datasets import Roles
from jobs.contracts.columns import OfferedRole, OfferedType
from jobs.contracts.data import Split, Task
from jobs.contracts.dialect import SAMPLE_BYTES, DialectRequest, ReadOptions
from jobs.contracts.problems import Problem
from jobs.contracts.profile import Column, Profile
from jobs.errors import BadInput, NotFound, TrainyardError
from jobs.models import Dataset, DatasetVersion, Project
from jobs.queries import datasets as queries
from jobs.queries.paging import Page, page_of
from webapp.forms import dialects
from webapp.http_errors import TooLarge, UnsupportedMediaType
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
SAMPLE_TYPE = "application/octet-stream"
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
        "roles": get_args(OfferedRole),
        "types": get_args(OfferedType),
        "may_edit_roles": _may_edit_roles(request, version),
        "dialect_fields": _dialect_fields(version),
        "bad_rows": queries.bad_rows(version),
        "crumbs": crumbs(("Datasets", url("datasets")), dataset.slug, f"v{number}"),
        **(_profile_context(profile, _first_column(request)) if profile is not None else {}),
    }
    response = render(request, "datasets/version.html", context, partial="body")
    # The part is reloaded while the version is prepared; then the header of the page changes too.
    if is_partial(request) and version.state != DatasetVersion.State.PREPARING:
        response["HX-Refresh"] = "true"
    return response


def _may_edit_roles(request: Request, version: DatasetVersion) -> bool:
    """Return whether the table of columns is a form. A bundled file has the same roles for everyone."""
    profile = version.profile
    if profile is None or version.upload is None:
        return False
    return access.can(request.user, version.dataset.project, Action.WRITE)


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
    if isinstance(value, list):
        return {"image": None, "text": f"{len(value)} values"}
    if column.type == "date" and value is not None:
        # Without the time if it is midnight, and without fractions of a second.
        return {"image": None, "text": str(value)[:19].removesuffix("T00:00:00").replace("T", " ")}
    is_whole = isinstance(value, float) and value.is_integer()
    return {"image": None, "text": int(value) if is_whole else value}


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
    return render(request, "datasets/sample.html", context)


def _save_upload(request: Request, dataset: Dataset | None) -> DatasetVersion:
    given = request.POST
    roles = Roles.read(given.get("target", ""), given.get("features", ""), given.get("task", ""))
    reading = actions.read_options(dialects.read(given), given.get("max_bad_share", ""))
    if dataset is not None:
        with received(request, dataset.project) as file:
            stored = actions.store_upload(file, dataset.project)
        return actions.add_version(dataset, stored=stored, roles=roles, reading=reading, by=request.user)
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
        reading=reading,
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
        "dialect_fields": dialects.fields(request.POST),
        "bad_rows_hint": "The share that may be left out, such as 0.01. They are listed in a file.",
        "problems": problems,
        "wrong": {problem.pointer: problem.message for problem in problems},
        "tasks": get_args(Task),
        "crumbs": crumbs(("Datasets", url("datasets")), "New version" if dataset else "Upload"),
    }
    return render(request, "datasets/upload.html", context, status=status)


@action
def set_roles(request: Request, slug: str, number: int) -> HttpResponse:
    """Create a version of the same file with other roles and types of columns."""
    dataset = _dataset(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    given = request.POST
    dialect = _chosen_dialect(given, version)
    columns = _columns(given, version) if dialect is None else _columns_read_again(given, version, dialect)
    roles = Roles.read(given.get("target", ""), given.get("features", ""), given.get("task", ""), columns)
    made = actions.set_roles(version, roles, by=request.user, dialect=dialect)
    notify(request, f"{made} is read with these settings by a worker.")
    return redirect(url("dataset_version", slug, made.number, project=_home(dataset)))


def _chosen_dialect(given: QueryDict, version: DatasetVersion) -> DialectRequest | None:
    """Return the dialect in the form if it differs from that with which the version was read; else None."""
    if version.request.get("source") != "csv" or not any(name.startswith(dialects.PREFIX) for name in given):
        return None
    chosen = actions.read_options(dialects.read(given)).dialect
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    found = version.profile.dialect if version.profile is not None else None
    for name in DialectRequest.model_fields:
        value = getattr(chosen, name)
        # Without a choice it is detected, as before if there was none before either.
        if value != getattr(before if value is None else found or before, name):
            return chosen
    return None


def _columns_read_again(
    given: QueryDict, version: DatasetVersion, dialect: DialectRequest
) -> list[dict[str, str]]:
    """Return what remains of the corrections if the file is read with another dialect.

    Types are always proposed again. Another delimiter, encoding or header may give the columns other names,
    so roles remain only if nothing but the decimal sign has changed.
    """
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    if dialect.model_copy(update={"decimal": before.decimal}) != before:
        return []
    columns = _columns(given, version)
    return [{name: value for name, value in column.items() if name != "type"} for column in columns]


def _columns(given: QueryDict, version: DatasetVersion) -> list[dict[str, str]]:
    """Return the columns that were corrected on this page of the table, and those that were before."""
    profile = version.profile
    edited = _edited_columns(given, profile.target if profile is not None else None)
    names = {column["name"] for column in edited}
    others = [column for column in version.request.get("columns", ()) if column["name"] not in names]
    if edited and profile is not None and profile.target not in names:
        # The target is on another page of the table. It keeps its role unless another column has it now.
        others = [column for column in others if column["name"] != profile.target]
        if all(column["role"] != "target" for column in edited):
            others.append({"name": profile.target, "role": "target"})
    return [*others, *edited]


def _edited_columns(given: QueryDict, target: str | None) -> list[dict[str, str]]:
    """Return the roles and types of the table of columns; the button "Include" makes a column a feature.

    Raises:
        BadInput: several columns are the target, or none, although the present one is on this page.
    """
    lists = (given.getlist(name) for name in ("column", "role", "type"))
    columns = [
        {"name": name, "role": "feature" if name == given.get("include") else role, "type": kind}
        for name, role, kind in zip(*lists, strict=False)
    ]
    targets = [column["name"] for column in columns if column["role"] == "target"]
    names = {column["name"] for column in columns}
    if len(targets) > 1 or (not targets and target in names):
        named = ", ".join(targets) or "no column"
        message = f"Give exactly one column the role target; now it is {named}."
        raise BadInput(message, [Problem("/role", message)])
    return columns


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
    path("datasets/sample", sample, name="dataset_sample"),
    path("datasets/<slug:slug>", newest, name="dataset"),
    path("datasets/<slug:slug>/versions/<int:number>", version_page, name="dataset_version"),
    path("datasets/<slug:slug>/versions/<int:number>/roles", set_roles, name="dataset_roles"),
    path("datasets/<slug:slug>/versions/<int:number>/again", try_again, name="dataset_again"),
]
