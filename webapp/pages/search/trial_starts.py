"""Trains a trial's values again, longer or alone, once it has shown what would run."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.code import own_code
from jobs.actions.search import trials as actions
from jobs.models import Trial
from jobs.queries.experiments import duration_history, repeats
from jobs.spec.plan.estimate import estimate_time
from jobs.spec.sections.after import AfterSpec
from webapp.pages.shortcuts import Request, notify, redirect, start_page, url
from webapp.pages.starts import (
    Figures,
    Start,
    plan_figures,
    plan_of_spec,
    show_start,
    time_in_words,
    wants_draft,
)
from webapp.whole_numbers import read_whole


@start_page
def trial_again(request: Request, job_id: int, number: int) -> HttpResponse:
    """Queue a trial with another one's values; a different seed shows the score's variance."""
    row = access.get_trial(request.user, job_id, number, Action.WRITE)
    if request.method == "POST":
        new_trial = actions.queue_by_hand(row.job, row.values, by=request.user)
        notify(request, f"Trial {new_trial.number} is queued with the values of trial {number}.")
        return redirect("trial", job_id, new_trial.number)
    own_code.require_right(request.user, row.job.project, row.job.revision)
    start = Start(
        heading=f"Queue the values of trial {number} again",
        about=f"A further trial of job {job_id} with the same values.",
        figures=_figures(row, _epochs_of_training(row)),
        sameness="New seeds: the score will differ, which shows how much of it is chance.",
        back=url("trial", job_id, number),
    )
    return show_start(request, start)


@start_page
def continue_trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Continue a completed trial's training from its checkpoint."""
    row = access.get_trial(request.user, job_id, number, Action.WRITE)
    entries = request.POST if request.method == "POST" else request.GET
    until = read_whole(entries.get("epochs", ""))
    if request.method == "POST":
        actions.continue_training(row, until, by=request.user)
        notify(request, f"Trial {row.number} continues to epoch {row.until}.")
        return redirect("trial", row.job_id, row.number)
    actions.require_continuable(row, until, by=request.user)
    trained = max((execution.epochs for execution in row.executions.all()), default=0)
    start = Start(
        heading=f"Continue trial {number} to epoch {until}",
        about=f"It resumes from its checkpoints under its own number; it has trained {trained} epochs.",
        figures=_figures(row, (until or trained) - trained),
        fields={"epochs": [str(until)]},
        back=url("trial", job_id, number),
    )
    return show_start(request, start)


def _epochs_of_training(trial: Trial) -> int:
    revision = trial.job.revision
    return revision.spec.fit.epochs if revision is not None else 0


def _figures(trial: Trial, epochs: int) -> Figures:
    """Return the plan for further epochs of each of a trial's executions."""
    search = trial.job
    executions = max(trial.executions.count(), 1)
    runs = "one training" if executions == 1 else f"{executions} trainings"
    if search.revision is None or search.project is None or search.revision.spec.model.info.trains_itself:
        return [("Runs", runs)]
    spec = search.revision.spec
    alone = spec.model_copy(update={"after": AfterSpec()})
    history = duration_history.past_durations(search.project, spec, search.experiment)
    estimate = estimate_time(alone, executions, executions * epochs, history)
    return [
        ("Runs", runs),
        ("Epochs", f"≤ {epochs} each"),
        ("Slots", str(search.slots)),
        ("Expected time", time_in_words(estimate.hours, estimate.likely_hours)),
    ]


@start_page
def train_trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Retrain a trial's values as a separate experiment."""
    row = access.get_trial(request.user, job_id, number, Action.WRITE)
    if wants_draft(request):
        experiment = actions.draft_retraining(row, by=request.user)
        notify(request, f"Created {experiment.name}. It has not been submitted.")
        return redirect("experiment_edit", experiment.project.slug, experiment.pk)
    if request.method == "POST":
        retraining = actions.retrain(row, by=request.user)
        notify(request, f"Job {retraining.pk} retrains the values of trial {number}.")
        return redirect("job", retraining.pk)
    return show_start(request, start_of_retraining(request, row))


def start_of_retraining(request: Request, trial: Trial) -> Start:
    """Describe the training of a trial's values as a separate experiment, without a version."""
    project, experiment, spec = actions.retraining_spec(trial, by=request.user)
    plan, problems = plan_of_spec(project, spec.to_json(), by=request.user, experiment=experiment)
    is_script = spec.model.info.trains_itself
    earlier = repeats.earlier_retraining(trial)
    same = repeats.compare_rerun(earlier, spec, 1) if earlier is not None else None
    return Start(
        heading=f"{'Run' if is_script else 'Retrain'} trial {trial.number} as a job",
        about=f"A new experiment with the values of trial {trial.number}, which can be changed further."
        if is_script
        else f"A new experiment trains the values of trial {trial.number} on training and validation rows.",
        figures=plan_figures(plan),
        sameness=same.sentence if same is not None else "",
        is_same=same is not None and same.is_same,
        problems=problems,
        may_draft=True,
        back=url("trial", trial.job_id, trial.number),
    )


_TRIAL = "jobs/<int:job_id>/trials/<int:number>"
urls = [
    path(f"{_TRIAL}/again", trial_again, name="trial_again"),
    path(f"{_TRIAL}/train", train_trial, name="trial_train"),
    path(f"{_TRIAL}/continue", continue_trial, name="trial_continue"),
]
