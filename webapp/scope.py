"""The project scope: the project whose rows lists show, or all projects.

A list's address may name it as `?project=`, empty for all projects; else it is the choice in the switcher,
which the session keeps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from jobs import access
from jobs.models import (
    CodeVersion,
    Dataset,
    DatasetVersion,
    Endpoint,
    Experiment,
    Job,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    Trial,
    User,
)

PROJECT_KEY = "project"
"""In the session: the slug of the project that was chosen last."""

ALL_KEY = "all_projects"
"""In the session: whether all projects were chosen after it."""

ROWS = "_rows_of_page"
"""The attribute of a request with the rows that its page shows."""


@dataclass(frozen=True)
class Scope:
    """The project whose rows a list shows; None for all projects."""

    project: Project | None

    def limit[Rows: QuerySet[Any]](
        self, rows: Rows, path: str = "project", *, or_shared: bool = False
    ) -> Rows:
        """Return the rows of the scope.

        Args:
            rows: the rows that the user may see.
            path: the lookup of a row's project.
            or_shared: whether rows without a project, such as bundled data sets, are in each scope.
        """
        if self.project is None:
            return rows
        shared = Q(**{f"{path}__isnull": True}) if or_shared else Q()
        return rows.filter(Q(**{path: self.project}) | shared)

    def has(self, project_id: int | None) -> bool:
        """Return whether a row with this project is in the scope."""
        return self.project is None or self.project.pk == project_id


def scope_of(request: HttpRequest, user: User) -> Scope:
    """Return the scope of a list.

    Raises:
        NotFound: the address names a project that the user may not see.
    """
    slug = _named_in_address(request)
    if slug is None:
        has_chosen = PROJECT_KEY in request.session
        return Scope(chosen_project(request, list(access.projects_of(user))) if has_chosen else None)
    project = access.get_project(user, slug) if slug else None
    if project is not None:
        show_rows(request, [project])
    return Scope(project)


def _named_in_address(request: HttpRequest) -> str | None:
    """Return the project in the address of the page; None if it names none."""
    if "project" in request.GET:
        return request.GET["project"]
    # A part of a page is asked for without the page's query.
    page = urlsplit(request.headers.get("HX-Current-URL", ""))
    if page.path != request.path:
        return None
    return next(iter(parse_qs(page.query, keep_blank_values=True).get("project", ())), None)


def chosen_project(request: HttpRequest, projects: Sequence[Project]) -> Project | None:
    """Return the project that the person chose, one of `projects`; None for all projects."""
    if request.session.get(ALL_KEY):
        return None
    slug = request.session.get(PROJECT_KEY)
    return next((project for project in projects if project.slug == slug), None)


def choose(request: HttpRequest, project: Project | None) -> None:
    """Keep the person's choice; None for all projects."""
    request.session[ALL_KEY] = project is None
    if project is not None:
        request.session[PROJECT_KEY] = project.slug


def show_rows(request: HttpRequest, rows: Iterable[Any]) -> None:
    """Record the rows that a page shows, so that its frame can name their project."""
    setattr(request, ROWS, [*getattr(request, ROWS, ()), *(row for row in rows if isinstance(row, Model))])


def project_of_page(request: HttpRequest, projects: Sequence[Project]) -> Project | None:
    """Return the project to which a page belongs; None if it belongs to none or to several."""
    match = request.resolver_match
    slug = match.kwargs.get("project") if match else None
    if slug:
        return next((project for project in projects if project.slug == slug), None)
    keys = {key for row in getattr(request, ROWS, ()) if (key := _project_id(row)) is not None}
    return next((project for project in projects if keys == {project.pk}), None)


def _project_id(row: Any) -> int | None:
    match row:
        case Project():
            return row.pk
        case Job() | Experiment() | RegisteredModel() | Dataset() | CodeVersion():
            return row.project_id
        case Trial():
            return row.job.project_id
        case DatasetVersion():
            return row.dataset.project_id
        case ModelVersion() | Endpoint() | PromotionRequest():
            return row.model.project_id
    return None
