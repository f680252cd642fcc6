"""Finds the jobs, experiments and versions to compare, with the model that represents each."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import OuterRef, Prefetch, Subquery

from jobs import access
from jobs.answers.runs.job_comparison import SubjectKind
from jobs.models import Experiment, Job, ModelVersion, Revision, User
from jobs.queries.runs.job_comparison.requested import Requested
from jobs.queries.search import outcomes
from jobs.states import FINAL, JobState

CHILD_FIELDS = ("parent", "kind", "ordinal", "title", "state", "results_json", "payload_json", "finished")
"""The fields of a job's steps that a comparison reads. Others are large, such as tracebacks."""


@dataclass(frozen=True)
class Subject:
    """Something to compare.

    Attributes:
        kind: of the subject.
        name: unique in the comparison.
        job: the job that is compared; of an experiment its newest one; of a version the one that made it.
        model_job: the step of this job whose model represents it; None if there is no such model.
        training: the training whose learning curve represents it; None if none has completed.
        experiment: of a job or an experiment.
        revision: whose settings are compared.
        version: of a version.
    """

    kind: SubjectKind
    name: str
    job: Job | None
    model_job: Job | None
    training: Job | None
    experiment: Experiment | None
    revision: Revision | None
    version: ModelVersion | None = None

    @property
    def values(self) -> dict[str, object]:
        """Return the hyperparameter values with which its model was trained."""
        source = self.training or self.model_job
        return dict(source.payload.hyperparameters()) if source is not None else {}


def find_subjects(user: User, requested: Requested) -> tuple[list[Subject], list[str]]:
    """Return the requested things that `user` may see, and the names of the others."""
    experiments = _experiments(user, requested.experiments)
    newest_jobs = {pk: job for pk, (_, job, _) in experiments.items() if job is not None}
    jobs = _jobs(user, {*requested.jobs, *newest_jobs.values()})
    versions = _versions(user, requested.versions)
    subjects = [_subject_of_job(jobs[pk]) for pk in requested.jobs if pk in jobs]
    for pk in requested.experiments:
        if pk in experiments:
            experiment, job, revision = experiments[pk]
            subjects.append(_subject_of_experiment(experiment, jobs.get(job or 0), revision))
    subjects += [_subject_of_version(versions[key]) for key in requested.versions if key in versions]
    missing = [
        *requested.unreadable,
        *(f"job {pk}" for pk in requested.jobs if pk not in jobs),
        *(f"experiment {pk}" for pk in requested.experiments if pk not in experiments),
        *(
            f"version {name}:{number}"
            for name, number in requested.versions
            if (name, number) not in versions
        ),
    ]
    return subjects, missing


def _jobs(user: User, keys: Collection[int]) -> dict[int, Job]:
    if not keys:
        return {}
    children = Prefetch("children", Job.objects.only(*CHILD_FIELDS))
    rows = access.visible_jobs(user).filter(pk__in=keys)
    rows = rows.select_related("project", "experiment", "revision").prefetch_related(children)
    return {job.pk: job for job in rows}


def _experiments(
    user: User, keys: Collection[int]
) -> dict[int, tuple[Experiment, int | None, Revision | None]]:
    """Return experiments with the key of their newest job, and their newest revision."""
    if not keys:
        return {}
    newest_job = Job.objects.roots().filter(experiment=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    rows = access.visible_experiments(user).filter(pk__in=keys).select_related("project")
    found = {row.pk: row for row in rows.annotate(last_job=Subquery(newest_job))}
    revisions = Revision.objects.filter(experiment__in=found).order_by("number")
    newest = {revision.experiment_id: revision for revision in revisions}
    return {pk: (row, row.last_job, newest.get(pk)) for pk, row in found.items()}


def _versions(user: User, keys: Collection[tuple[str, int]]) -> dict[tuple[str, int], ModelVersion]:
    if not keys:
        return {}
    names = {name for name, _ in keys}
    numbers = {number for _, number in keys}
    related = ("model__project", "artifact", "source_job__revision")
    rows = access.visible_versions(user).select_related(*related)
    rows = rows.filter(model__name__in=names, number__in=numbers)
    return {(row.model.name, row.number): row for row in rows}


def _subject_of_job(job: Job) -> Subject:
    return Subject(
        kind="job",
        name=f"{job.label} · job {job.pk}",
        job=job,
        model_job=_model_job(job),
        training=_training(job),
        experiment=job.experiment,
        revision=job.revision,
    )


def _subject_of_experiment(experiment: Experiment, job: Job | None, revision: Revision | None) -> Subject:
    return Subject(
        kind="experiment",
        name=f"{experiment.name} · experiment {experiment.pk}",
        job=job,
        model_job=_model_job(job) if job is not None else None,
        training=_training(job) if job is not None else None,
        experiment=experiment,
        revision=job.revision if job is not None else revision,
    )


def _subject_of_version(version: ModelVersion) -> Subject:
    # A model is registered in the project of its job; the job of another project is not shown.
    is_own = version.source_job is not None and version.source_job.project_id == version.model.project_id
    source = version.source_job if is_own else None
    return Subject(
        kind="version",
        name=f"{version.model.name} v{version.number}",
        job=source,
        model_job=source,
        training=source if source is not None and source.facts.trains else None,
        experiment=None,
        revision=source.revision if source is not None else None,
        version=version,
    )


def _model_job(job: Job) -> Job | None:
    """Return the step that made a job's final candidate: its ensemble, or else its best training."""
    pooled = [step for step in _completed_steps(job) if step.facts.candidate == "ensemble"]
    if pooled:
        return pooled[-1]
    return _training(job) or (job if job.facts.evaluates else None)


def _training(job: Job) -> Job | None:
    """Return a job's best completed training; a training itself, also while it runs."""
    if job.facts.trains:
        return job
    trained = [step for step in _completed_steps(job) if step.facts.trains]
    return outcomes.best_of(trained, outcomes.objective_of(job)) if trained else None


def _completed_steps(job: Job) -> list[Job]:
    steps = [step for step in job.children.all() if step.state == JobState.COMPLETED]
    return sorted(steps, key=lambda step: step.ordinal)


def why_without_test(subject: Subject) -> str:
    """Return why a subject has no metrics on test rows, as a sentence."""
    job, version = subject.job, subject.version
    if version is not None:
        if version.source_job is None:
            return "An uploaded file has no evaluation on test rows."
        return "The job that made it measured nothing on test rows."
    if job is None:
        return "It was never run." if subject.revision is not None else "A draft that was never submitted."
    if job.state not in FINAL:
        return f"The job is {job.state}; its model has not been measured on test rows yet."
    if job.state == JobState.FAILED:
        return "The job failed before its model was measured on test rows."
    if job.state == JobState.STOPPED:
        return "The job was stopped before its model was measured on test rows."
    if job.facts.has_trials:
        return "The search retrained no trial, and only retrained models are measured on test rows."
    return "It measured nothing on test rows."
