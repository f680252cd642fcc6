"""Shows a trial, queues a configuration by hand, and retries a trial."""

import shlex
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.search import trials
from jobs.answers.search.trials import TrialOut
from jobs.errors import BadInput, Conflict
from jobs.models import Attempt, Checkpoint, Job, Trial
from jobs.queries.code import dry_builds, sandboxes, script_checks
from jobs.queries.data import datasets
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import restarts
from jobs.queries.runs.restarts import Restart
from jobs.queries.search import baseline, outcomes, scoring, trial_decisions, trial_details, waiting
from jobs.queries.search import ensembles as ensemble_queries
from jobs.queries.search import trials as queries
from jobs.queries.search.baseline import Comparison
from jobs.queries.search.ensembles import Candidate
from jobs.queries.search.scoring import Scoring
from jobs.queries.search.trial_decisions import Decision, RungPosition
from jobs.spec.sections.search import Objective
from jobs.states import FINAL, TRIAL_FINAL, TrialState
from webapp.forms.search.trials import TrialForm
from webapp.pages.runs.job_overview import Again, buttons_to_train, runs_script
from webapp.pages.runs.job_tabs import pair_metrics, space_of
from webapp.pages.runs.job_trail import name_in_trail, trail_to_job
from webapp.pages.runs.jobs import job_page
from webapp.pages.runs.run_settings import settings_context
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render_page,
    url,
    valid_choice,
)
from webapp.template_context import Context
from webapp.templatetags.problem_labels import message_of


@form_page
def queue_trial(request: Request, job_id: int) -> HttpResponse:
    """Queue one configuration by hand."""
    row = access.get_job(request.user, job_id, Action.WRITE)
    # The page of the invalid form is at this address: it was reloaded, or its table sorted.
    if request.method != "POST":
        return redirect(url("job", row.pk, tab="trials", sort=request.GET.get("sort")))
    form = TrialForm(space_of(row), request.POST)
    # A search that has ended refuses valid and invalid values alike: its page has no form for their errors.
    if form.is_valid() or not queries.accepts_trials(row):
        try:
            trial_row = trials.queue_by_hand(row, form.values, by=request.user)
        except BadInput as error:
            form.add_problems(error)
        except Conflict as error:
            notify(request, message_of(error), level="error")
            return redirect(url("job", row.pk, tab="trials"))
        else:
            notify(request, f"Trial {trial_row.number} is queued.")
            return redirect(url("job", row.pk, tab="trials"))
    return job_page(request, row, "trials", status=422, trial_form=form)


@dataclass(frozen=True)
class TrialPage(Context):
    """A trial beside the best one: its values, metrics, executions and checkpoints."""

    trial: Trial
    detail: TrialOut
    best: Trial | None
    compared: Comparison | None
    job: Job
    is_final: bool
    is_over: bool
    not_started: list[int]
    restarts: list[Restart]
    cursor: int
    rows: list[tuple[str, Any, Any | None]]
    metrics: list[tuple[str, float | None, float | None]]
    weighted_by: str
    place: RungPosition | None
    decisions: list[Decision]
    candidates: list[Candidate]
    checkpoints: list[Checkpoint]
    most_checkpoints: int
    removed: int
    attempts: QuerySet[Attempt]
    phase: str
    why_waiting: str
    metric_pairs: list[list[str]]
    objective: Objective
    scoring: Scoring
    may_run: bool
    may_queue: bool
    may_train: bool
    runs_script: bool
    again: Again
    unsaved: str
    command: str
    unit: str
    least_epochs: int
    may_retry: bool
    crumbs: Crumbs


@page
def trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Show a trial: its values beside the best trial's, curves per execution, and log."""
    row = access.get_trial(request.user, job_id, number)
    best = outcomes.best_trials(row.job, limit=1).first()
    may_run = sandboxes.may_run(request.user, row.job)
    is_script = runs_script(row.job)
    unsaved = dry_builds.why_unsaved(row.job)
    names = [name for name in job_queries.metric_names(row.job, row) if not name.startswith("system/")]
    context = TrialPage(
        trial=row,
        detail=queries.trial_out(row, best=best.number if best else None),
        best=best,
        compared=baseline.compare_with_constant(row.job, best),
        job=row.job,
        is_final=row.job.state in FINAL,
        is_over=row.state in TRIAL_FINAL,
        not_started=_not_started(row),
        restarts=restarts.restarts_of_trial(row),
        cursor=(row.job.root or row.job).event_seq,
        rows=_values_beside_best(row, best),
        metrics=trial_details.metric_comparisons(row, best),
        weighted_by=datasets.weight_column(row.job),
        place=trial_decisions.rung_position(row),
        decisions=trial_decisions.decisions_on_trial(row),
        candidates=_ensemble_candidates(row) if may_run else [],
        checkpoints=trial_details.trial_checkpoints(row),
        most_checkpoints=trial_details.MAX_CHECKPOINTS,
        removed=row.checkpoints.exclude(removed=None).count(),
        attempts=trial_details.trial_attempts(row),
        phase=waiting.phases_of_search(row.job).get(row.number, ""),
        why_waiting=waiting.waiting_reasons(row.job, request.user).get(row.number, ""),
        metric_pairs=pair_metrics(names),
        objective=outcomes.objective_of(row.job),
        scoring=scoring.scoring_of_search(row.job),
        may_run=may_run,
        may_queue=queries.accepts_trials(row.job),
        may_train=row.job.experiment_id is not None,
        runs_script=is_script,
        again=buttons_to_train(row.job, unsaved),
        unsaved=unsaved,
        command=shlex.join(script_checks.command_of_trial(row.job, row.values)) if is_script else "",
        unit="step" if is_script else "epoch",
        least_epochs=_least_epochs(row),
        may_retry=row.state in ("failed", "stopped") and queries.accepts_trials(row.job),
        crumbs=_crumbs(row),
    )
    part = valid_choice(request.GET.get("part"), ("head", "body"), "")
    return render_page(request, "search/trial.html", context, settings_context(row.job), partial=part)


def _values_beside_best(row: Trial, best: Trial | None) -> list[tuple[str, Any, Any]]:
    """Return each hyperparameter's name, its value, and that of the best trial, if there is one."""
    space = outcomes.widest_space(row.job)
    return [(p.name, row.values.get(p.name), best.values.get(p.name) if best else None) for p in space]


def _ensemble_candidates(row: Trial) -> list[Candidate]:
    return ensemble_queries.ensemble_candidates(row) if ensemble_queries.can_join(row) else []


def _crumbs(row: Trial) -> Crumbs:
    job = (name_in_trail(row.job), reverse("job", args=[row.job_id]))
    return crumbs(*trail_to_job(row.job), job, f"Trial {row.number}")


def _not_started(row: Trial) -> list[int]:
    """Return the execution numbers that an ended trial left waiting."""
    if row.state not in TRIAL_FINAL:
        return []
    return [execution.number for execution in row.executions.all() if execution.state == TrialState.QUEUED]


def _least_epochs(row: Trial) -> int:
    """Return the first epoch to which a completed trial can continue; 0 if it cannot."""
    if row.state != "completed" or not queries.accepts_trials(row.job):
        return 0
    has_checkpoint = row.checkpoints.kept().exists()
    return max((e.epochs for e in row.executions.all()), default=0) + 1 if has_checkpoint else 0


@action
def retry_trial(request: Request, job_id: int, number: int) -> HttpResponse:
    """Retry a failed or stopped trial."""
    row = trials.retry(access.get_trial(request.user, job_id, number, Action.WRITE), by=request.user)
    notify(request, f"Trial {row.number} is queued again.")
    return redirect("trial", row.job_id, row.number)


urls = [
    path("jobs/<int:job_id>/trials", queue_trial, name="job_queue_trial"),
    path("jobs/<int:job_id>/trials/<int:number>", trial, name="trial"),
    path("jobs/<int:job_id>/trials/<int:number>/retry", retry_trial, name="trial_retry"),
]
