"""Shows "Find me a good model": a form that starts a search over all templates that take the data."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.experiments.find_model import find_model
from jobs.models import Project
from jobs.queries.data import datasets
from jobs.queries.registry.registry import model_names
from webapp.forms.experiments.find_model import FindModelForm
from webapp.pages.experiments.target_doubts import TargetDoubts, doubts_on
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class FindModelPage(Context):
    """The form that starts a search over all templates."""

    form: FindModelForm
    project: Project
    crumbs: Crumbs
    doubts: TargetDoubts | None
    models: list[str]


@form_page
def find(request: Request, project: str) -> HttpResponse:
    """Start the search, or open its experiment in the form.

    `?dataset=&version=` or `?dataset=slug:number` choose the data, and `?objective=` the objective.
    """
    home = access.get_project(request.user, project, Action.WRITE)
    rows = datasets.datasets_with_versions(request.user, home).order_by("slug")
    form = FindModelForm(rows, request.POST or None, initial=_initial_values(request))
    is_submitted = request.POST.get("do") != "edit"
    started = form.apply(
        lambda values: find_model(
            home,
            form.version(),
            form.budget(),
            by=request.user,
            name=values["name"],
            objective=values["objective"],
            register_as=values["register_as"],
            submitted=is_submitted,
        )
    )
    if started is not None and started.job is not None:
        notify(request, f"Job {started.job.pk} searches a good model.")
        return redirect("job", started.job.pk)
    if started is not None:
        for reason in started.left_out:
            notify(request, f"{reason}.", level="info")
        return redirect("experiment_edit", home.slug, started.experiment.pk)
    trail = crumbs(("Experiments", url("experiments", home.slug)), "Find a good model")
    context = FindModelPage(
        form=form,
        project=home,
        crumbs=trail,
        doubts=doubts_on(form.shown_version()),
        models=model_names(home),
    )
    return render_page(
        request,
        "experiments/find_model.html",
        context,
        partial="data",
        status=form.status if form.errors else 200,
    )


def _initial_values(request: Request) -> dict[str, str]:
    dataset, version = request.GET.get("dataset", ""), request.GET.get("version")
    return {
        "dataset": dataset if version is None else f"{dataset}:{version}",
        "objective": request.GET.get("objective", ""),
    }


urls = [path("p/<slug:project>/find-model", find, name="find_model")]
