"""What follows what: a search's trials, then retraining, ensemble, quantization, registration.

`advance` looks at the rows and does the next step, or nothing. It may be called at any time by any
process, twice or after a crash: unique constraints keep a step from being made twice.
"""

import logging
from collections.abc import Callable
from typing import Any

from django.db import InterfaceError, OperationalError, transaction

from jobs import clock
from jobs.actions import suggest
from jobs.actions.transition import move, move_trial
from jobs.errors import Conflict, NotFound, StaleState
from jobs.models import Attempt, Job
from jobs.queries import outcomes
from jobs.queries.steps import has_after
from jobs.spec.experiment import ExperimentSpec
from jobs.states import (
    FINAL,
    TRIAL_FINAL,
    AttemptState,
    Desired,
    JobKind,
    JobState,
    TrialState,
)

log = logging.getLogger(__name__)


def advance(root: Job) -> None:
    """Do the next step of a root job, if there is one to do."""
    with transaction.atomic():
        root = Job.objects.select_for_update(of=("self",)).select_related("revision").get(pk=root.pk)
        if root.state in FINAL or root.state == JobState.DRAFT:
            return
        if root.desired == Desired.RUNNING:
            _go_on(root)
        elif root.state != JobState.PAUSED or root.desired != Desired.PAUSED:
            _wind_down(root)


def _busy(root: Job) -> bool:
    """Say whether a worker still holds anything of the family."""
    held = Attempt.objects.exclude(state=AttemptState.ENDED)
    return held.filter(job__in=[root.pk, *root.family.values_list("pk", flat=True)]).exists()


def _wind_down(root: Job) -> None:
    """Bring a family that shall pause or stop to rest, once no worker holds a part of it."""
    pausing = root.desired == Desired.PAUSED
    for trial in root.trials.filter(state=TrialState.QUEUED):
        move_trial(trial, TrialState.PAUSED if pausing else TrialState.STOPPED)
    for child in root.family.exclude(state__in=FINAL):
        _rest(child, pausing=pausing)
    if _busy(root):
        return
    if not pausing:
        for trial in root.trials.filter(state=TrialState.PAUSED):
            move_trial(trial, TrialState.STOPPED)
    _rest(root, pausing=pausing)


def _rest(job: Job, *, pausing: bool) -> None:
    if job.attempts.exclude(state=AttemptState.ENDED).exists():
        return
    reason = "killed" if job.desired == Desired.KILLED else ""
    if pausing:
        if job.state in (JobState.STARTING, JobState.RUNNING):
            move(job, JobState.PAUSED)
        return
    if job.state in (JobState.STARTING, JobState.RUNNING):
        move(job, JobState.STOPPING, reason=reason)
    if job.state == JobState.LOST:
        move(job, JobState.RETRYING)
    move(job, JobState.STOPPED, reason=reason, results=outcomes.results(job))
    task_stopped(job)


def _go_on(root: Job) -> None:
    if root.kind == JobKind.SEARCH and not _search_is_over(root):
        return
    if root.kind not in (JobKind.SEARCH, JobKind.TRAIN) or root.revision is None:
        return  # gate, register, profile: one task, ended by `task_done`
    if root.kind == JobKind.TRAIN and not root.payload.get("task_done"):
        return
    if root.state == JobState.QUEUED or root.state == JobState.RETRYING:
        move(root, JobState.STARTING)
    _follow(root, root.revision.spec)


def _search_is_over(root: Job) -> bool:
    """Ask for what the search still needs; say whether all its trials are final."""
    search = outcomes.search_of(root)
    states = list(root.trials.order_by("-finished").values_list("state", flat=True))
    if _keeps_failing(root, search.max_consecutive_failures):
        _give_up(root)
        return False
    made = root.trials.filter(source="algorithm").count()
    if made < search.trials_planned() and not root.payload.get("exhausted"):
        suggest.ask(root, search, made)
        return False
    return all(TrialState(state) in TRIAL_FINAL for state in states)


def _keeps_failing(root: Job, limit: int) -> bool:
    newest = root.trials.filter(finished__isnull=False).order_by("-finished")[:limit]
    states = [trial.state for trial in newest]
    return len(states) == limit and all(state == TrialState.FAILED for state in states)


def _give_up(root: Job) -> None:
    newest = root.trials.filter(state=TrialState.FAILED).order_by("-finished").first()
    cause = (newest.error or {}).get("message", "") if newest else ""
    for trial in root.trials.filter(state__in=(TrialState.QUEUED, TrialState.PAUSED)):
        move_trial(trial, TrialState.STOPPED)
    if _busy(root):
        return
    if root.state == JobState.QUEUED:
        move(root, JobState.STARTING)
    message = f"the newest trials failed one after another; the last said: {cause}"
    move(
        root,
        JobState.FAILED,
        error={"code": "trials_keep_failing", "message": message},
        results=outcomes.results(root),
    )


def _follow(root: Job, spec: ExperimentSpec) -> None:
    """Make the next step's jobs once those of the step before are completed."""
    if root.kind == JobKind.SEARCH and not outcomes.best_trials(root, limit=1):
        message = "no trial was completed, so there is nothing to go on with"
        move(root, JobState.FAILED, error={"code": "no_trial_completed", "message": message})
        return
    for make in (_train, _ensemble, _quantize, _register):
        try:
            children = make(root, spec)
        except StaleState:
            raise
        except (Conflict, NotFound) as refusal:  # the model's name is another project's, or a file is missing
            error = {"code": refusal.code, "message": refusal.message}
            move(root, JobState.FAILED, error=error, results=outcomes.results(root))
            return
        failed = [child for child in children if child.state in (JobState.FAILED, JobState.STOPPED)]
        if any(child.state not in FINAL for child in children):
            return
        if failed:
            _fail_with(root, failed[0])
            return
    move(root, JobState.COMPLETED, results=outcomes.results(root))


def _fail_with(root: Job, child: Job) -> None:
    cause = (child.error or {}).get("message", f"it was {child.state}")
    message = f"step {child.kind} (job {child.pk}) did not complete: {cause}"
    move(
        root,
        JobState.FAILED,
        error={"code": "step_failed", "message": message},
        results=outcomes.results(root),
    )


def _child(
    root: Job, kind: JobKind, ordinal: int, *, title: str, payload: dict[str, Any], slots: int = 1
) -> Job:
    child, _ = Job.objects.get_or_create(
        parent=root,
        kind=kind,
        ordinal=ordinal,
        defaults={
            "root": root,
            "project": root.project,
            "experiment": root.experiment,
            "revision": root.revision,
            "title": title,
            "payload": {"dataset_version": root.payload.get("dataset_version")} | payload,
            "pool": root.pool,
            "priority": root.priority,
            "slots": slots,
            "max_restarts": root.max_restarts,
            "queued": clock.now(),
            "created_by": root.created_by,
        },
    )
    return child


def _train(root: Job, spec: ExperimentSpec) -> list[Job]:
    if root.kind == JobKind.TRAIN or not has_after(spec):
        return []
    existing = list(root.children.filter(kind=JobKind.TRAIN).order_by("ordinal"))
    if existing:
        return existing
    top = spec.after.retrain.top if spec.after.retrain else 1
    return [
        _child(
            root,
            JobKind.TRAIN,
            rank,
            title=f"Retrain trial {trial.number}",
            payload={"trial": trial.number, "values": trial.values},
            slots=root.slots,
        )
        for rank, trial in enumerate(outcomes.best_trials(root, limit=top), start=1)
    ]


def _ensemble(root: Job, spec: ExperimentSpec) -> list[Job]:
    if spec.after.ensemble is None:
        return []
    members = list(root.children.filter(kind=JobKind.TRAIN).order_by("ordinal").values_list("pk", flat=True))
    return [_child(root, JobKind.ENSEMBLE, 1, title="Ensemble", payload={"members": members})]


def _quantize(root: Job, spec: ExperimentSpec) -> list[Job]:
    if spec.after.quantize is None:
        return []
    source = outcomes.final_candidate(root)
    title = f"Quantize to {spec.after.quantize.mode}"
    return [_child(root, JobKind.QUANTIZE, 1, title=title, payload={"source": source.pk})]


def _register(root: Job, spec: ExperimentSpec) -> list[Job]:
    if spec.after.register_ is None:
        return []
    existing = list(root.children.filter(kind=JobKind.REGISTER).order_by("ordinal"))
    if len(existing) == len(spec.after.register_.what):
        return existing
    from jobs.actions import registry  # registry submits jobs of its own

    versions = registry.register_outputs(root)
    return [
        _child(
            root,
            JobKind.REGISTER,
            ordinal,
            title=f"Register {version.model.name} v{version.number}",
            payload={"version": version.pk},
        )
        for ordinal, version in enumerate(versions, start=1)
    ]


def task_done(job: Job, result: dict[str, Any]) -> None:
    """Take in the result of a job's own task, inside the caller's transaction."""
    if job.state == JobState.STARTING:
        move(job, JobState.RUNNING, fence=job.fence)
    take_result(job, result)
    job.results = result if job.kind != JobKind.PROFILE else {}  # the version has it
    job.payload = job.payload | {"task_done": True}
    job.save(update_fields=["results", "payload"])
    if job.parent_id is None and job.kind == JobKind.TRAIN and job.revision and has_after(job.revision.spec):
        return  # a root is final only when all that follows it is: `advance` goes on
    move(job, JobState.COMPLETED, fence=job.fence)


def take_result(job: Job, result: dict[str, Any]) -> None:
    """Hand a job's result to the rows that wait for it."""
    if hook := _DONE.get(JobKind(job.kind)):
        hook(job, result)


def task_failed(job: Job, error: dict[str, Any]) -> None:
    """Tell whoever waits for a job's result that there will be none."""
    if hook := _FAILED.get(JobKind(job.kind)):
        hook(job, error)


def task_stopped(job: Job) -> None:
    """Tell them the same of a job that somebody stopped."""
    task_failed(job, {"code": "stopped", "message": f"job {job.pk} was stopped by hand"})


def _profiled(job: Job, result: dict[str, Any]) -> None:
    from jobs.actions import datasets

    table = job.artifacts.filter(role="dataset").latest("pk").artifact
    datasets.profiled(job.payload["dataset_version"], result, table)


def _profile_failed(job: Job, error: dict[str, Any]) -> None:
    from jobs.actions import datasets

    datasets.profile_failed(job.payload["dataset_version"], error)


def _registered(job: Job, result: dict[str, Any]) -> None:
    from jobs.actions import registry

    registry.validated(job.payload["version"], result)


def _register_failed(job: Job, error: dict[str, Any]) -> None:
    from jobs.actions import registry

    registry.invalid(job.payload["version"], error)


def _gated(job: Job, result: dict[str, Any]) -> None:
    from jobs.actions import promotions

    promotions.gated(job.payload["promotion"], result)


def _gate_failed(job: Job, error: dict[str, Any]) -> None:
    from jobs.actions import promotions

    promotions.gate_failed(job.payload["promotion"], error)


_DONE: dict[JobKind, Callable[[Job, dict[str, Any]], None]] = {
    JobKind.PROFILE: _profiled,
    JobKind.REGISTER: _registered,
    JobKind.GATE: _gated,
}
_FAILED: dict[JobKind, Callable[[Job, dict[str, Any]], None]] = {
    JobKind.PROFILE: _profile_failed,
    JobKind.REGISTER: _register_failed,
    JobKind.GATE: _gate_failed,
}


def advance_all() -> None:
    """Advance every open root job."""
    open_roots = Job.objects.filter(parent=None).exclude(state__in=[*FINAL, JobState.DRAFT])
    for root in open_roots.order_by("pk"):
        try:
            advance(root)
        except StaleState:
            continue  # it ended or moved under our eyes; the next call sees how
        except (OperationalError, InterfaceError):
            raise  # the database is away: the loop waits for it
        except Exception:  # one broken job must never hold up all others
            log.exception("job %s cannot go on", root.pk)
