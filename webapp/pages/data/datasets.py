"""Lists data sets, and opens the newest version of one."""

from django.db.models import F
from django.http import HttpResponse
from django.urls import path

from jobs.errors import NotFound
from jobs.queries.data import datasets as queries
from jobs.queries.paging import page_of
from webapp.pages.data.dataset_lookup import dataset_of, home_of
from webapp.pages.shortcuts import Request, crumbs, page, redirect, render, url, writable_projects


@page
def list_page(request: Request) -> HttpResponse:
    """List the data sets that the user may see: those of their projects and the bundled ones."""
    rows = queries.datasets_with_versions(request.user)
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
    return render(request, "data/list.html", context)


@page
def newest(request: Request, slug: str) -> HttpResponse:
    """Redirect to the newest version of a data set."""
    dataset = dataset_of(request, slug)
    version = dataset.versions.order_by("-number").first()
    if version is None:
        raise NotFound(f"Data set {slug!r} has no version yet.")
    return redirect(url("dataset_version", slug, version.number, project=home_of(dataset)))


urls = [
    path("datasets", list_page, name="datasets"),
    path("datasets/<slug:slug>", newest, name="dataset"),
]
