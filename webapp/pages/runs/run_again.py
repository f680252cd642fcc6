"""Runs a job or an experiment again with the same settings, once it has shown what would run."""

from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.code import own_code
from jobs.actions.experiments import experiments as actions
from jobs.actions.runs import submit
from jobs.errors import BadInput, Conflict
from jobs.models import Experiment, Job
from jobs.queries.experiments import plan as plans
from jobs.queries.experiments import repeats
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from webapp.pages.experiments.experiment_lookup import experiment_in_project
from webapp.pages.search.ensemble_start import ensemble_figures
from webapp.pages.shortcuts import Request, notify, redirect, start_page, url
from webapp.pages.starts import Start, edit_address, plan_figures, show_start, wants_registration


@start_page
def run_again(request: Request, job_id: int) -> HttpResponse:
    """Submit a job's revision again as a new job."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    if request.method != "POST":
        return show_start(request, _start_of_job(request, row))
    again = submit.clone(row, by=request.user, registers=wants_registration(request))
    notify(request, f"Job {again.pk} is queued.")
    return redirect("job", again.pk)


def _start_of_job(request: Request, row: Job) -> Start:
    """Describe a copy of a job."""
    if row.project is None or row.revision is None or row.parent_id is not None:
        raise Conflict(f"job {row.pk} ({row.facts.noun}) has no experiment of its own and cannot run again")
    own_code.require_right(request.user, row.project, row.revision)
    heading, back = f"Run job {row.pk} again", url("job", row.pk)
    if (chosen := row.payload.chosen_trials()) is not None:
        search = access.get_job(request.user, chosen.search)
        return Start(
            heading=heading,
            about=f"A new job retrains the same {len(chosen.trials)} trials and pools their models.",
            figures=ensemble_figures(search, chosen.numbers, by=request.user),
            sameness=f"Same values, seeds and data as job {row.pk}: the same result.",
            is_same=row.state == "completed",
            back=back,
        )
    return _start_of_spec(
        request,
        row.revision.experiment,
        row.revision.spec_json,
        earlier=row,
        heading=heading,
        about=f"A new job with the same settings: revision {row.revision.number} of "
        f"{row.revision.experiment.name}.",
        edit=edit_address(row),
        back=back,
    )


@start_page
def submit_experiment(request: Request, project: str, id: int) -> HttpResponse:  # noqa: A002
    """Submit an experiment: its draft, else its newest revision."""
    experiment = experiment_in_project(request, project, id, Action.WRITE)
    if request.method != "POST":
        return show_start(request, _start_of_experiment(request, experiment))
    registers = wants_registration(request, default=_earlier_run(experiment) is None)
    job = actions.submit(experiment, by=request.user, registers=registers)
    notify(request, f"Job {job.pk} is queued.")
    return redirect("job", job.pk)


def _start_of_experiment(request: Request, experiment: Experiment) -> Start:
    newest = experiment.revisions.order_by("-number").select_related("experiment").first()
    draft = experiment.draft
    if newest is None and draft is None:
        raise BadInput(f"{experiment.name} has no spec yet", [Problem("/spec", "nothing to submit")])
    own_code.require_right(request.user, experiment.project, newest)
    earlier = _earlier_run(experiment)
    settings = "its draft" if draft is not None or newest is None else f"revision {newest.number}"
    return _start_of_spec(
        request,
        experiment,
        draft if draft is not None or newest is None else newest.spec_json,
        earlier=earlier,
        heading=f"Run {experiment.name}{' again' if earlier is not None else ''}",
        about=f"A new job with the settings of {settings}.",
        edit=url("experiment_edit", experiment.project.slug, experiment.pk),
        back=url("experiment", experiment.project.slug, experiment.pk),
    )


def _earlier_run(experiment: Experiment) -> Job | None:
    """Return the newest job with the settings that would run now; None if these never ran."""
    newest = experiment.revisions.order_by("-number").first()
    return repeats.last_run(newest) if newest is not None and experiment.draft is None else None


def _start_of_spec(
    request: Request,
    experiment: Experiment,
    body: Any,
    *,
    earlier: Job | None,
    heading: str,
    about: str,
    edit: str,
    back: str,
) -> Start:
    """Describe a run of a spec; one that repeats an earlier job registers nothing unless it is asked to."""
    validation = plans.validate_spec(experiment.project, body, by=request.user, experiment=experiment)
    spec, plan = validation.spec, validation.plan
    parallel = plan.parallel_trials if plan is not None else 1
    same = (
        repeats.compare_rerun(earlier, spec, parallel) if spec is not None and earlier is not None else None
    )
    return Start(
        heading=heading,
        about=about,
        figures=plan_figures(plan),
        sameness=same.sentence if same is not None else "",
        is_same=same is not None and same.is_same,
        model=_registered_model(spec),
        is_registered=earlier is None,
        problems=validation.problems,
        edit=edit,
        back=back,
    )


def _registered_model(spec: ExperimentSpec | None) -> str:
    registration = spec.after.register_ if spec is not None else None
    return registration.model if registration is not None else ""


urls = [
    path("jobs/<int:job_id>/clone", run_again, name="job_clone"),
    path("p/<slug:project>/experiments/<int:id>/submit", submit_experiment, name="experiment_submit"),
]
