"""Shows the parts of any split of a dataset version, and lets a worker compare them."""

from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.data import split_overviews as actions
from jobs.errors import NotFound
from jobs.messages.overview import Overview
from jobs.models import DatasetVersion
from jobs.queries.data import split_overviews as queries
from jobs.spec.data.profile import Profile
from jobs.states import FINAL
from webapp.forms.data import split as forms
from webapp.pages.data.dataset_lookup import dataset_of, home_of, project_for, version_of
from webapp.pages.shortcuts import Request, form_page, redirect, render, url
from webapp.report_figures import overview


def split_context(
    request: Request, version: DatasetVersion, profile: Profile, known: Overview | None = None
) -> dict[str, Any]:
    """Return the context of `data/split.html`; the query of the page has the chosen split.

    Args:
        request: of the page.
        version: the data.
        profile: of the version.
        known: the overview of the version, if it was read.
    """
    form = forms.form_of(request.GET.dict(), profile)
    is_ready = version.state == DatasetVersion.State.READY
    home = project_for(request, version.dataset)
    context: dict[str, Any] = {
        "split_form": form,
        "may_split": is_ready and home is not None,
        "split_query": request.GET.urlencode(),
    }
    if not form.is_asked:
        return context
    split, wrong = form.checked
    if split is None:
        return {**context, "split_wrong": wrong}
    homes = [each for each in (version.dataset.project or home,) if each is not None]
    found = queries.overview_of_split(
        version, split, reader=request.user, homes=homes, version_overview=known
    )
    is_open = found.state != queries.NONE and found.state not in FINAL
    parts = overview.parts_context(found.overview) if found.overview is not None else {}
    return {**context, "chosen": found, "chosen_is_open": is_open, "chosen_parts": parts}


@form_page
def split(request: Request, slug: str, number: int) -> HttpResponse:
    """Return the parts of the split in the query, or let a worker compare those of the form."""
    dataset = dataset_of(request, slug)
    version = version_of(dataset, number)
    profile = version.profile
    if profile is None:
        raise NotFound(f"{version} is {version.state}; its rows can be split once it is ready.")
    if request.method != "POST":
        context = {
            **split_context(request, version, profile),
            "version": version,
            "dataset": dataset,
            "home": home_of(dataset),
        }
        return render(request, "data/split_result.html", context)
    home = project_for(request, dataset)
    access.require(request.user, dataset.project or home, access.Action.WRITE)
    chosen, _ = forms.form_of(request.POST.dict(), profile).checked
    if chosen is not None:
        actions.request_overview(version, chosen, by=request.user, project=home)
    # The page shows the problems of the entries.
    query = {"project": home_of(dataset), **forms.query_of(request.POST.dict())}
    return redirect(url("dataset_version", slug, number, **query) + "#split-title")


urls = [path("datasets/<slug:slug>/versions/<int:number>/split", split, name="dataset_split")]
