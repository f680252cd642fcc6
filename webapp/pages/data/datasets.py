"""Lists data sets, and opens the newest version in one."""

from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.http import HttpResponse
from django.urls import path

from jobs.errors import NotFound
from jobs.models import Dataset, DatasetVersion
from jobs.queries.data import datasets as queries
from jobs.queries.paging import Page, page_of
from webapp.pages.data.dataset_lookup import dataset_of, home_of
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    page,
    redirect,
    render_page,
    url,
    writable_projects,
)
from webapp.scope import scope_of
from webapp.template_context import Context


@dataclass(frozen=True)
class DatasetsPage(Context):
    """The data sets that the user may see, each with its newest version."""

    page: Page[Any]  # of data sets with the slugs of their projects
    text: str
    rows: list[tuple[Dataset, DatasetVersion | None]]
    may_upload: bool
    crumbs: Crumbs


@page
def list_page(request: Request) -> HttpResponse:
    """List the data sets that the user may see, in projects and bundled ones."""
    rows = scope_of(request, request.user).limit(queries.datasets_with_versions(request.user), or_shared=True)
    if text := request.GET.get("q", ""):
        rows = rows.filter(slug__icontains=text) | rows.filter(name__icontains=text)
    rows = rows.annotate(home=F("project__slug"))
    listed = page_of(rows, cursor=request.GET.get("cursor"), order="slug")
    context = DatasetsPage(
        page=listed,
        text=text,
        rows=[
            # `max`, not a query: the versions are prefetched.
            (dataset, max(dataset.versions.all(), key=lambda version: version.number, default=None))
            for dataset in listed.items
        ],
        may_upload=writable_projects(request.user).exists(),
        crumbs=crumbs("Datasets"),
    )
    return render_page(request, "data/list.html", context)


@page
def newest(request: Request, slug: str) -> HttpResponse:
    """Redirect to a data set's newest version."""
    dataset = dataset_of(request, slug)
    version = dataset.versions.order_by("-number").first()
    if version is None:
        raise NotFound(f"Data set {slug!r} has no version yet.")
    return redirect(url("dataset_version", slug, version.number, project=home_of(dataset)))


urls = [
    path("datasets", list_page, name="datasets"),
    path("datasets/<slug:slug>", newest, name="dataset"),
]
