"""Finds the obstacles to a deletion: outside rows that refer to its rows, and unfinished work."""

from collections.abc import Iterator, Mapping
from itertools import islice

from django.db.models import Model, Q, QuerySet

from jobs.answers.storage.deletions import ReferrerOut
from jobs.kinds.rows import owner_keys, retraining_trials_of, that_read_any
from jobs.models import (
    Alias,
    Attempt,
    Dataset,
    Endpoint,
    Experiment,
    Job,
    ModelVersion,
    PromotionRequest,
    RegisteredModel,
    ReleaseRecord,
    Revision,
)
from jobs.queries.storage.deletion_scope import Scope
from jobs.states import FINAL

MAX_NAMED = 20


def find_referrers(scope: Scope) -> list[ReferrerOut]:
    """Return the rows that prevent the deletion, at most `MAX_NAMED`."""
    return list(islice(_all_referrers(scope), MAX_NAMED))


def _all_referrers(scope: Scope) -> Iterator[ReferrerOut]:
    yield from _unfinished_jobs(scope)
    yield from _readers_of_jobs(scope)
    yield from _versions_from_jobs(scope)
    yield from _readers_of_datasets(scope)
    yield from _users_of_versions(scope)
    yield from _versions_with_code(scope)
    yield from _experiments_with_code(scope)


def _limit_rows[M: Model](rows: QuerySet[M]) -> QuerySet[M]:
    return rows.order_by("pk")[:MAX_NAMED]


def _unfinished_jobs(scope: Scope) -> Iterator[ReferrerOut]:
    for job in _limit_rows(scope.jobs.unfinished()):
        yield _job_out(job, f"is {job.state}: stop it first")
    ending = Attempt.objects.open().filter(job__in=scope.jobs.values("pk"))
    for attempt in _limit_rows(ending.select_related("job")):
        if attempt.job.state in FINAL:
            yield _job_out(attempt.job, "is ending: its runner has not exited yet")


def _readers_of_jobs(scope: Scope) -> Iterator[ReferrerOut]:
    """Yield the unfinished jobs outside that continue from a job's trials."""
    searches = list(scope.jobs.with_trials().values_list("pk", flat=True))
    if not searches:
        return
    outside = Job.objects.unfinished().exclude(pk__in=scope.jobs.values("pk"))
    warm_started = Q(revision__spec_json__search__warm_start__in=searches)
    for job in _limit_rows(outside.filter(retraining_trials_of(searches) | warm_started)):
        yield _job_out(job, "continues from trials of it and has not ended")


def _versions_from_jobs(scope: Scope) -> Iterator[ReferrerOut]:
    """Yield the model versions and open requests outside that need these jobs."""
    outside = ModelVersion.objects.exclude(pk__in=scope.versions.values("pk")).select_related("model")
    for version in _limit_rows(outside.filter(source_job__in=scope.jobs.values("pk"))):
        yield _version_out(version, "was made by it and needs its lineage")
    validated = owner_keys("version", scope.jobs.roots())
    for version in _limit_rows(outside.filter(pk__in=validated)):
        yield _version_out(version, "was validated by it")
    gates = PromotionRequest.objects.open().filter(gate_job__in=scope.jobs.values("pk"), version__in=outside)
    for request in _limit_rows(gates.select_related("version__model")):
        yield _request_out(request)


def _readers_of_datasets(scope: Scope) -> Iterator[ReferrerOut]:
    """Yield the experiments and jobs outside that use a data set."""
    for dataset in scope.datasets.select_related("project"):
        yield from _readers_of(dataset, scope)


def _readers_of(dataset: Dataset, scope: Scope) -> Iterator[ReferrerOut]:
    outside = Experiment.objects.filter(project=dataset.project).exclude(
        pk__in=scope.experiments.values("pk")
    )
    by_revision = Revision.objects.filter(spec_json__data__dataset=dataset.slug).values("experiment")
    uses = Q(pk__in=by_revision) | Q(draft__data__dataset=dataset.slug)
    for experiment in _limit_rows(outside.filter(uses).select_related("project")):
        yield _experiment_out(experiment, "uses its data")
    versions = list(dataset.versions.values_list("pk", flat=True))
    jobs = Job.objects.roots().exclude(pk__in=scope.jobs.values("pk"))
    for job in _limit_rows(jobs.filter(that_read_any(versions))):
        yield _job_out(job, "was trained on its data")


def _users_of_versions(scope: Scope) -> Iterator[ReferrerOut]:
    versions = scope.versions.values("pk")
    yield from _releasing_endpoints(scope)
    requests = PromotionRequest.objects.open()
    concerned = Q(version__in=versions) | Q(baseline_version__in=versions)
    for request in _limit_rows(requests.filter(concerned).select_related("version__model")):
        yield _request_out(request)
    outside = RegisteredModel.objects.exclude(pk__in=scope.models.values("pk"))
    for alias in _limit_rows(
        Alias.objects.filter(version__in=versions, model__in=outside).select_related("model")
    ):
        why = "points at it: move or delete the alias first"
        yield ReferrerOut(
            kind="alias", name=f"{alias.model.name}/{alias.name}", label=f"alias {alias.name}", why=why
        )
    for version in scope.versions.select_related("model"):
        # A revision has the number also if it was written with an alias; a draft may have either.
        named = {"kind": "version", "model": version.model.name, "number": version.number}
        for experiment in _limit_rows(_experiments_whose_model(scope, named)):
            yield _experiment_out(experiment, "starts from its weights")


def _experiments_whose_model(scope: Scope, fields: Mapping[str, object]) -> QuerySet[Experiment]:
    """Return the experiments outside whose model has these values, in a revision or in the draft."""
    revision = {f"spec_json__model__{key}": value for key, value in fields.items()}
    draft = Q(**{f"draft__model__{key}": value for key, value in fields.items()})
    revised = Revision.objects.filter(**revision).values("experiment")
    experiments = Experiment.objects.filter(Q(pk__in=revised) | draft)
    return experiments.exclude(pk__in=scope.experiments.values("pk")).select_related("project")


def _versions_with_code(scope: Scope) -> Iterator[ReferrerOut]:
    """Yield the model versions outside that were made with this code, or cannot be loaded without it."""
    outside = ModelVersion.objects.exclude(pk__in=scope.versions.values("pk")).select_related("model")
    for version in _limit_rows(outside.filter(code__in=scope.code.values("pk"))):
        why = "cannot be loaded without it" if version.needs_code else "was made with it and names it"
        yield _version_out(version, why)


def _experiments_with_code(scope: Scope) -> Iterator[ReferrerOut]:
    """Yield the experiments outside that run this code."""
    for version in scope.code:
        experiments = _experiments_whose_model(scope, {"digest": version.digest})
        for experiment in _limit_rows(experiments.filter(project=version.project_id)):
            yield _experiment_out(experiment, "runs it")


def _releasing_endpoints(scope: Scope) -> Iterator[ReferrerOut]:
    """Yield the endpoints that serve or once served a version. Their history names it."""
    versions = scope.versions.values("pk")
    served = Q(production__in=versions) | Q(previous__in=versions) | Q(staging__in=versions)
    once = ReleaseRecord.objects.filter(Q(version__in=versions) | Q(replaced__in=versions))
    endpoints = Endpoint.objects.filter(served | Q(pk__in=once.values("endpoint"))).select_related("model")
    for endpoint in _limit_rows(endpoints):
        yield ReferrerOut(
            kind="endpoint",
            name=endpoint.model.name,
            label=f"endpoint {endpoint.model.name}",
            why="has released it, and its history is kept",
        )


def _job_out(job: Job, why: str) -> ReferrerOut:
    return ReferrerOut(kind="job", name=str(job.pk), label=f"job {job.pk}", why=why)


def _experiment_out(experiment: Experiment, why: str) -> ReferrerOut:
    return ReferrerOut(
        kind="experiment",
        name=str(experiment.pk),
        label=f"experiment {experiment.name}",
        project=experiment.project.slug,
        why=why,
    )


def _version_out(version: ModelVersion, why: str) -> ReferrerOut:
    return ReferrerOut(
        kind="version", name=f"{version.model.name}/{version.number}", label=str(version), why=why
    )


def _request_out(request: PromotionRequest) -> ReferrerOut:
    return ReferrerOut(
        kind="promotion",
        name=str(request.pk),
        label=f"promotion request {request.pk}",
        why=f"is {request.state}: reject or withdraw it first",
    )
