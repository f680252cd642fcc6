"""Shows the parts in any split for a dataset version, and has a worker compare them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.data import split_overviews as actions
from jobs.answers.data.datasets import SplitOverviewOut
from jobs.errors import NotFound
from jobs.messages.overview import Overview
from jobs.models import Dataset, DatasetVersion
from jobs.queries.data import split_overviews as queries
from jobs.spec.data.profile import Profile
from jobs.states import FINAL
from webapp.forms.data import split as forms
from webapp.pages.data.dataset_lookup import dataset_of, home_of, project_for, version_of
from webapp.pages.shortcuts import Request, form_page, redirect, render_page, url
from webapp.report_figures import overview
from webapp.template_context import Context


@dataclass(frozen=True)
class SplitSection(Context):
    """The form for a split, and the parts in the split that the query chooses."""

    split_form: forms.SplitForm
    may_split: bool
    split_query: str
    split_wrong: Mapping[str, str] = field(default_factory=dict)
    chosen: SplitOverviewOut | None = None
    chosen_is_open: bool = False
    chosen_parts: overview.PartsFigure | None = None


def split_context(
    request: Request, version: DatasetVersion, profile: Profile, version_overview: Overview | None = None
) -> SplitSection:
    """Return the variables for `data/split.html`. The page's query has the chosen split.

    Args:
        request: the page's request.
        version: the data set version.
        profile: the version's profile.
        version_overview: the version's overview, if the caller has read it.
    """
    form = forms.split_form(request.GET.dict(), profile)
    is_ready = version.state == DatasetVersion.State.READY
    home = project_for(request, version.dataset)
    context = SplitSection(
        split_form=form,
        may_split=is_ready and home is not None,
        split_query=request.GET.urlencode(),
    )
    if not form.is_asked:
        return context
    split, wrong = form.checked
    if split is None:
        return replace(context, split_wrong=wrong)
    homes = [project for project in (version.dataset.project or home,) if project is not None]
    chosen = queries.overview_of_split(
        version, split, reader=request.user, homes=homes, version_overview=version_overview
    )
    is_open = chosen.state != queries.NONE and chosen.state not in FINAL
    parts = overview.parts_figure(chosen.overview) if chosen.overview is not None else None
    return replace(context, chosen=chosen, chosen_is_open=is_open, chosen_parts=parts)


@dataclass(frozen=True)
class SplitPage(Context):
    """The version whose rows are split."""

    version: DatasetVersion
    dataset: Dataset
    home: str


@form_page
def split(request: Request, slug: str, number: int) -> HttpResponse:
    """Show the split in the query, or have a worker compare the parts in the form's split."""
    dataset = dataset_of(request, slug)
    version = version_of(dataset, number)
    profile = version.profile
    if profile is None:
        raise NotFound(f"{version} is {version.state}; its rows can be split once it is ready.")
    if request.method != "POST":
        context = SplitPage(version=version, dataset=dataset, home=home_of(dataset))
        section = split_context(request, version, profile)
        return render_page(request, "data/split_result.html", context, section)
    home = project_for(request, dataset)
    access.require(request.user, dataset.project or home, access.Action.WRITE)
    chosen, _ = forms.split_form(request.POST.dict(), profile).checked
    if chosen is not None:
        actions.request_overview(version, chosen, by=request.user, project=home)
    # The page shows the problems of the entries.
    query = {"project": home_of(dataset), **forms.query_of_entries(request.POST.dict())}
    return redirect(url("dataset_version", slug, number, **query) + "#split-title")


urls = [path("datasets/<slug:slug>/versions/<int:number>/split", split, name="dataset_split")]
