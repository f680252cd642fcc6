"""Probes for fields that decide about database rows: jobs, trials, attempts and versions.

Each returns no primary keys, since those differ between two calls.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any
from unittest.mock import patch

from django.db import transaction
from django.utils import timezone

from jobs.actions.registry import registration
from jobs.actions.runs import attempt_end, pipeline, schedule, time_limits
from jobs.actions.search import suggest
from jobs.kinds.ensemble.actions import EnsembleActions
from jobs.kinds.quantize.actions import QuantizeActions
from jobs.kinds.train.actions import TrainActions
from jobs.messages.suggest import Answer, Suggestion
from jobs.models import Attempt, Dataset, DatasetVersion, Job
from jobs.queries.search import outcomes
from jobs.spec.experiment import ExperimentSpec
from jobs.states import Outcome
from tests.factories import make_artifact, make_job, make_job_artifact, make_trials
from tests.jobs.yard import PretendWorker, Yard, make_yard
from tests.present import present


def in_new_rows(look: Callable[[ExperimentSpec, Yard], Any]) -> Callable[[ExperimentSpec, object], Any]:
    """Let a probe begin with a new installation's rows, and roll its own back."""

    @wraps(look)
    def probe(spec: ExperimentSpec, _: object) -> Any:
        with transaction.atomic():
            produced = look(spec, make_yard())
            transaction.set_rollback(True)
        return produced

    return probe


def _submit(yard: Yard, spec: ExperimentSpec) -> Job:
    return yard.submit(**{name: value for name, value in spec.to_json().items() if name != "version"})


@in_new_rows
def dataset_version(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the data set and the version that a job reads."""
    trees = Dataset.objects.create(project=yard.project, slug="trees", name="trees", created_by=yard.owner)
    for dataset, number in ((yard.dataset.dataset, 2), (trees, 1)):
        table = make_artifact()
        ready = DatasetVersion.State.READY
        DatasetVersion.objects.create(
            dataset=dataset, number=number, state=ready, table=table, profile_json={}
        )
    version = DatasetVersion.objects.get(pk=present(_submit(yard, spec).payload.dataset_version))
    return version.dataset.slug, version.number


@in_new_rows
def executions(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return a trial's trainings."""
    PretendWorker(slots=4)
    job = _submit(yard, spec)
    ticket = suggest.claim_request(job.pk)
    assert ticket is not None
    values = {"learning_rate": 0.01}
    suggest.add_suggestions(ticket, Answer(suggestions=(Suggestion(values=values),)))
    return list(
        job.trials.get().executions.order_by("number").values_list("number", "seed", "repeat", "fold")
    )


@in_new_rows
def request(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return how many trials are requested at once, and how many earlier ones the algorithm gets to know."""
    PretendWorker(slots=4)
    assert spec.search is not None
    if spec.search.warm_start is not None:
        earlier = yard.submit(search=spec.search.model_dump(mode="json", exclude={"warm_start"}))
        for trial in make_trials(earlier):
            trial.values = {"learning_rate": trial.number / 100}
            trial.save(update_fields=["values"])
        # The test cannot know the number of a job that does not exist yet.
        spec = spec.model_copy(update={"search": spec.search.model_copy(update={"warm_start": earlier.pk})})
    ticket = suggest.claim_request(_submit(yard, spec).pk)
    assert ticket is not None
    return ticket.request["count"], len(ticket.request["trials"])


@in_new_rows
def ranking(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the best trials' numbers, and the Pareto front's size."""
    job = _submit(yard, spec)
    make_trials(job)
    best = [trial.number for trial in outcomes.best_trials(job, limit=3)]
    return best, len(outcomes.pareto_front(job).members)


@in_new_rows
def patience_with_failures(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return a search's state after two trials have failed."""
    worker = PretendWorker(slots=2)
    job = _submit(yard, spec)
    ticket = suggest.claim_request(job.pk)
    assert ticket is not None
    suggestions = tuple(Suggestion(values={"learning_rate": rate}) for rate in (0.01, 0.02))
    suggest.add_suggestions(ticket, Answer(suggestions=suggestions))
    schedule.place_jobs()
    for attempt in worker.claim_all():
        attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "x", "message": "x"})
    pipeline.advance_all()
    job.refresh_from_db()
    return job.state


@in_new_rows
def ended_after_five_minutes(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return whether a search that began five minutes ago, and has scores, ends early."""
    job = _submit(yard, spec)
    make_trials(job)
    Job.objects.filter(pk=job.pk).update(started=timezone.now() - timedelta(minutes=5))
    pipeline.advance_all()
    job.refresh_from_db()
    return job.payload.finishing


@in_new_rows
def first_trials(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the trial values that a search begins with."""
    job = _submit(yard, spec)
    pipeline.advance_all()
    return list(job.trials.order_by("number").values_list("source", "values"))


@in_new_rows
def retrained(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the number of trainings that follow a search."""
    job = _submit(yard, spec)
    make_trials(job)
    return len(TrainActions().children(job, spec))


@in_new_rows
def steps(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return a job's kind, and the kinds of the steps that follow it."""
    job = _submit(yard, spec)
    make_trials(job)
    with patch.object(outcomes, "best_single", return_value=job):
        followers = [
            step
            for kind in (TrainActions(), EnsembleActions(), QuantizeActions())
            for step in kind.children(job, spec)
        ]
    return job.kind, [step.kind for step in followers]


@in_new_rows
def versions(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the versions that are registered."""
    job = _submit(yard, spec)
    quantized = make_job(by=yard.owner, project=yard.project, kind="quantize", parent=job, state="completed")
    for source in (job, quantized):
        make_job_artifact(source)
    return [(version.model.name, version.what) for version in registration.register_outputs(job)]


@in_new_rows
def placement(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the pool and the slots that a job gets, and whether it overtakes an older one."""
    for pool in ("default", "large"):
        PretendWorker(slots=3, pool=pool, name=pool)
    older = yard.submit(resources={"slots": 2, "pool": spec.resources.pool})
    job = _submit(yard, spec)
    schedule.place_jobs()
    placed = Attempt.objects.filter(job__in=(older, job)).select_related("worker").order_by("pk")
    return [(attempt.job_id == job.pk, attempt.worker.pool, attempt.slots) for attempt in placed]


@in_new_rows
def ended_after_half_an_hour(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return whether a training that has run for half an hour is requested to stop."""
    worker = PretendWorker(slots=4)
    job = _submit(yard, spec)
    schedule.place_jobs()
    worker.claim_all()
    Attempt.objects.update(claimed=timezone.now() - timedelta(minutes=30))
    time_limits.end_overdue()
    job.refresh_from_db()
    return job.desired


@in_new_rows
def restarts(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return a job's state after its worker was lost."""
    worker = PretendWorker(slots=4)
    job = _submit(yard, spec)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    attempt_end.finish(attempt.pk, Outcome.LOST)
    job.refresh_from_db()
    return job.state
