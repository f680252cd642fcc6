"""Builds the template variables for the head on a job's page, which all tabs share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import reverse

from jobs import access
from jobs.access import Action
from jobs.answers.runs.jobs import JobOut
from jobs.answers.runs.results import ResultsOut
from jobs.models import Job, Trial
from jobs.queries.code import sandboxes
from jobs.queries.code.sandboxes import Shown
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import lost_work, queue
from jobs.queries.runs import restarts as restart_queries
from jobs.queries.runs.lost_work import LostWork
from jobs.queries.runs.restarts import Restart
from jobs.queries.search import baseline, ensembles, outcomes, scoring, trials, waiting
from jobs.queries.search.algorithm_state import found_hyperparameters
from jobs.queries.search.scoring import Scoring
from jobs.spec.sections.search import Objective
from jobs.spec.space.hyperparameters import describe_values
from jobs.states import FINAL, Desired, JobState, TrialState
from webapp.forms.search.search_changes import ReviseForm
from webapp.pages.runs.job_commands import accepted_commands, may_revise
from webapp.pages.runs.job_overview import RegistrationChoice, registration_context, runs_script
from webapp.pages.runs.job_steps import StepGroup, group_steps, later_steps
from webapp.pages.runs.job_tabs import preloaded_modules, trial_looks
from webapp.pages.runs.job_trail import name_in_trail, trail_to_job
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    Tabs,
    crumbs,
    url,
)
from webapp.pages.starts import edit_address
from webapp.template_context import Context


@dataclass(frozen=True)
class JobHead(Context):
    """The head on a job's page, which every tab shares."""

    job: Job
    detail: JobOut
    track: list[StepGroup]
    cursor: int
    tabs: Tabs
    here: str
    crumbs: Crumbs
    edit_url: str
    may_write: bool
    may_run: bool
    may_register: bool
    sandbox: Shown | None
    commands: set[str]
    may_kill_runner: bool
    unregistered: str
    is_register_quiet: bool
    is_final: bool
    restarts: list[Restart]
    is_search: bool
    runs_script: bool
    unit: str
    lost_work: LostWork | None
    has_checkpoints: bool
    has_begun: bool
    place: int | None
    later_steps: list[str]
    notes: int
    tab: str


def head_contexts(
    request: Request, row: Job, tab: str, tabs: Sequence[str], revise_form: ReviseForm | None = None
) -> tuple[Context, ...]:
    """Return the variables for a job's head with the names of its `tabs`; `revise_form` is a refused one."""
    may_run = sandboxes.may_run(request.user, row)
    if not row.facts.has_trials:
        head = _job_head(request, row, tab, tabs, may_run=may_run, has_begun=row.started is not None)
        can_register = head.may_register and bool(head.unregistered)
        return head, registration_context(row) if can_register else RegistrationChoice()
    counts = trials.trial_counts(row)
    has_begun = any(count for state, count in counts.items() if state != TrialState.QUEUED)
    # First, because it reads the steps of the job, which the search then need not read again.
    head = _job_head(request, row, tab, tabs, may_run=may_run, has_begun=has_begun)
    reasons = waiting.waiting_reasons(row, request.user)
    return head, _search_head(row, counts, reasons, revise_form, may_run=may_run)


def _job_head(
    request: Request, row: Job, tab: str, tabs: Sequence[str], *, may_run: bool, has_begun: bool
) -> JobHead:
    here = reverse("job", args=[row.pk])
    detail = job_queries.job_out(row, request.user)
    unregistered = _unregistered_digest(row, detail.results)
    restarts = restart_queries.restarts_of_job(row)
    may_write = access.can(request.user, row.project, Action.WRITE)
    # The file of a script is registered without its code.
    is_script = runs_script(row)
    may_register = may_run or (may_write and is_script)
    return JobHead(
        job=row,
        detail=detail,
        track=group_steps(detail.steps),
        # Of the row that was read before all else: the page then receives every later event, and misses none.
        cursor=_root_of(row).event_seq,
        tabs=[
            (name, name.capitalize(), url("job", row.pk, tab="" if name == "overview" else name))
            for name in tabs
        ],
        here=here,
        crumbs=crumbs(*trail_to_job(row), name_in_trail(row)),
        edit_url=edit_address(row) if may_write else "",
        may_write=may_write,
        may_run=may_run,
        may_register=may_register,
        sandbox=sandboxes.sandbox_of_job(row),
        commands=accepted_commands(row, may_run=may_run),
        may_kill_runner=settings.TRAINYARD_DEMO
        and row.state in (JobState.STARTING, JobState.RUNNING)
        and access.can(request.user, row.project, Action.MANAGE),
        unregistered=unregistered if may_register else "",
        is_register_quiet=bool(unregistered) and _has_learned_nothing(_root_of(row)),
        is_final=row.state in FINAL,
        restarts=restarts,
        is_search=row.facts.has_trials,
        runs_script=is_script,
        unit="step" if is_script else "epoch",
        lost_work=lost_work.work_lost_by_pause(row) if may_write else None,
        has_checkpoints=row.facts.has_trials or row.facts.trains,
        has_begun=has_begun,
        place=queue.queue_position(row),
        later_steps=later_steps(detail.steps),
        tab=tab,
        notes=len(restarts) + _count_notes(row, detail.results, waits=bool(detail.why_waiting)),
    )


def _root_of(row: Job) -> Job:
    # A root names itself, and need not be read again.
    return row if row.root_id == row.pk or row.root is None else row.root


def _has_learned_nothing(root: Job) -> bool:
    """Return whether no trial of a search beats the constant prediction: registering is not advised then."""
    compared = baseline.comparison_of_search(root)
    return compared is not None and not compared.is_beaten


def _unregistered_digest(row: Job, results: ResultsOut) -> str:
    """Return the digest if a completed training's model is not registered; else an empty text."""
    if row.facts.has_trials or row.state != JobState.COMPLETED or results["versions"]:
        return ""
    models = [
        artifact
        for artifact in results["artifacts"]
        if artifact["job"] == row.pk and artifact["role"] == "model"
    ]
    return models[-1]["digest"] if models and row.project_id is not None else ""


def _count_notes(row: Job, results: ResultsOut, *, waits: bool) -> int:
    """Return how many warnings, errors and reasons for waiting the overview shows."""
    return len(results["warnings"]) + bool(row.error) + waits


@dataclass(frozen=True)
class SearchHead(Context):
    """A search's progress: its trials, its best scores, and the form to change it."""

    phases: Mapping[int, str]
    counts: list[tuple[str, int]]
    trials_run: bool
    why_trials_wait: list[tuple[str, list[int]]]
    best: Trial | None
    scoring: Scoring
    may_finish: bool
    best_scores: list[tuple[str, float]]
    front: int
    objective: Objective
    warm_start: int | None
    found: list[tuple[str, str, int]]
    revise_form: ReviseForm | None
    trial_looks: dict[str, Any]
    preloaded: list[str]
    takes_members: bool


def _search_head(
    row: Job,
    counts: Mapping[str, int],
    reasons: Mapping[int, str],
    revise_form: ReviseForm | None,
    *,
    may_run: bool,
) -> SearchHead:
    search, ranking = outcomes.search_of(row), outcomes.pareto_front(row)
    best = outcomes.best_trials(row, limit=1).first()
    scores = ranking.scores.get(best.pk, ()) if best is not None else ()
    return SearchHead(
        phases=waiting.phases_of_search(row),
        counts=[(state, count) for state, count in counts.items() if count],
        trials_run=bool(counts.get(TrialState.RUNNING)),
        why_trials_wait=[
            (reason, [number for number, why in reasons.items() if why == reason])
            for reason in dict.fromkeys(reasons.values())
        ],
        best=best,
        scoring=scoring.scoring_of_search(row),
        may_finish=best is not None
        and row.desired in (Desired.RUNNING, Desired.PAUSED)
        and trials.accepts_trials(row),
        best_scores=list(zip(ranking.objectives, scores, strict=True)) if scores else [],
        front=len(ranking.members),
        objective=outcomes.objective_of(row),
        warm_start=search.warm_start if search.info.learns_from_earlier else None,
        found=[
            (one.name, describe_values(one.row), one.trial)
            for one in found_hyperparameters(row)
            if one.row is not None
        ],
        revise_form=revise_form or (ReviseForm(row) if may_run and may_revise(row) else None),
        trial_looks=trial_looks(),
        preloaded=preloaded_modules(),
        takes_members=ensembles.takes_members(row),
    )
