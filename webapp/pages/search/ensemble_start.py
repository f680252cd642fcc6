"""Creates an ensemble from chosen trials, once it has shown what would run."""

from collections.abc import Sequence

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.search import ensembles
from jobs.actions.search import trials as actions
from jobs.models import Job, User
from webapp.forms.search.trials import read_numbers
from webapp.pages.shortcuts import Request, notify, redirect, start_page, url
from webapp.pages.starts import Figures, Start, expected_time, plan_figures, plan_of_spec, show_start


@start_page
def make_ensemble(request: Request, job_id: int) -> HttpResponse:
    """Create an ensemble from the selected trials."""
    search = access.get_job(request.user, job_id, Action.WRITE)
    entries = request.POST if request.method == "POST" else request.GET
    numbers = read_numbers(entries.getlist("trials"))
    if request.method == "POST":
        ensemble = ensembles.queue_ensemble(search, numbers, by=request.user)
        notify(request, f"Job {ensemble.pk} creates the ensemble.")
        return redirect("job", ensemble.pk)
    payload = ensembles.ensemble_payload(search, numbers, by=request.user)
    chosen = [member.trial for member in payload.chosen]
    listed = ", ".join(map(str, chosen))
    start = Start(
        heading=f"Create an ensemble of {len(chosen)} trials",
        about=f"A new job trains trials {listed} again on training and validation data and combines the "
        "models. This search does not change, and no version is registered.",
        figures=ensemble_figures(search, chosen, by=request.user),
        fields={"trials": [str(number) for number in chosen]},
        back=url("job", search.pk, tab="trials"),
    )
    return show_start(request, start)


def ensemble_figures(search: Job, numbers: Sequence[int], *, by: User) -> Figures:
    """Return the plan of an ensemble of these trials, each of which is retrained as the first one."""
    trials = [("Runs", f"{len(numbers)} retrainings, then one ensemble")]
    first = search.trials.filter(number__in=numbers).order_by("number").first()
    if first is None or search.project is None:
        return trials
    project, experiment, spec = actions.retraining_spec(first, by=by)
    plan, _ = plan_of_spec(project, spec.to_json(), by=by, experiment=experiment)
    if plan is None:
        return trials
    devices = [pair for pair in plan_figures(plan) if pair[0] in ("Devices", "Slots")]
    return [*trials, *devices, ("Expected time", expected_time(plan, times=len(numbers)))]


urls = [path("jobs/<int:job_id>/ensemble", make_ensemble, name="job_ensemble")]
