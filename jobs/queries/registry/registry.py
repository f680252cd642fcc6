"""Reads registered models and their versions."""

from typing import cast

from django.db.models import Count, Max, Q, QuerySet, prefetch_related_objects
from django.utils.text import slugify

from jobs import access
from jobs.answers.base import SignatureOut
from jobs.answers.registry.registry import (
    LineageOut,
    ModelOut,
    PackageChangeOut,
    ReleaseOut,
    VersionCodeOut,
    VersionOut,
    VersionPackagesOut,
)
from jobs.kinds.rows import that_read_any
from jobs.models import (
    DatasetVersion,
    Endpoint,
    Job,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    ReleaseRecord,
    User,
)
from jobs.queries.code import package_sets
from jobs.queries.data.causes import cause_of
from jobs.queries.registry import versions
from jobs.queries.registry.versions import version_number
from jobs.queries.search import retraining
from jobs.spec.plan import names

MAX_COMPARED = 50
"""The newest versions from a data set whose target is compared."""


def models_for_lists(user: User) -> QuerySet[RegisteredModel]:
    """Return the models that `user` may see, with the related rows that lists need."""
    related = ("project", "created_by", "endpoint__production", "endpoint__staging", "endpoint__previous")
    is_kept = Q(versions__deletion=None)
    annotations = {
        "version_count": Count("versions", filter=is_kept, distinct=True),
        "newest_number": Max("versions__number", filter=is_kept),
    }
    rows = access.visible_models(user).select_related(*related).prefetch_related("aliases__version")
    return rows.annotate(**annotations)


def model_names(project: Project) -> list[str]:
    """Return a project's model names in alphabetical order."""
    return list(project.models.order_by("name").values_list("name", flat=True))


def is_name_taken(name: str) -> bool:
    """Return whether any model in the installation has this name."""
    # A deleted one may be restored.
    return RegisteredModel.everything.filter(name=name).exists()


def is_name_of_another(name: str, project: Project) -> bool:
    """Return whether a model of another project, or a deleted one, has this name."""
    return RegisteredModel.everything.filter(name=name).exclude(project=project, deletion=None).exists()


def free_name(job: Job) -> str:
    """Derive a model name from a job's experiment; empty if that name is taken."""
    name = _name_from(job)
    return "" if is_name_taken(name) else name


def model_name_for(job: Job) -> str:
    """Return the model name for a job: from its spec, else an existing model's, else a new one.

    An experiment that has versions in a model of its project keeps that model. Otherwise a model for the same
    column of the same data set is proposed, then the only model if it has no version yet. A retrained trial
    gets the name that fits its search. If another project has a model with a new name, the job's number is
    added.
    """
    job = retraining.source_search(job) or job
    register = job.revision.spec.after.register_ if job.revision is not None else None
    if register is None and (current_name := _existing_model(job)) is not None:
        return current_name
    name = register.model if register is not None else _name_from(job) or f"job-{job.pk}"
    if RegisteredModel.everything.filter(name=name).exclude(project=job.project).exists():
        suffix = f"-{job.pk}"
        return f"{name[: 63 - len(suffix)]}{suffix}"
    return name


def _existing_model(job: Job) -> str | None:
    return _model_of(job) or _named_like(job) or _model_for_data(job) or _only_empty_model(job)


def _named_like(job: Job) -> str | None:
    name = _name_from(job)
    return name if RegisteredModel.objects.filter(name=name, project=job.project_id).exists() else None


def _model_for_data(job: Job) -> str | None:
    """Return the name of the model with the newest version for the same column of the same data set."""
    same = DatasetVersion.objects.filter(dataset__versions=job.payload.dataset_version)
    keys = list(same.values_list("pk", flat=True)) if job.payload.dataset_version is not None else []
    if not keys:
        return None
    readers = Job.objects.filter(that_read_any(keys), project=job.project_id)
    rows = ModelVersion.objects.filter(
        model__project=job.project_id, model__deletion=None, source_job__in=readers
    ).select_related("model", "source_job__revision")
    newest = list(rows.order_by("-pk")[:MAX_COMPARED])
    sources = {each.pk: each.source_job for each in newest if not versions.is_foreign(each)}
    own, *others = versions.answers_of_jobs([job, *(source for source in sources.values() if source)])
    answers = dict(zip(sources, others, strict=True))
    unknown = versions.Answer("", None)
    return next((each.model.name for each in newest if answers.get(each.pk, unknown) == own), None)


def _only_empty_model(job: Job) -> str | None:
    """Return the name of the project's model if there is one alone, which waits for its first version."""
    names = list(RegisteredModel.objects.filter(project=job.project_id).values_list("name", flat=True)[:2])
    is_empty = len(names) == 1 and not ModelVersion.objects.filter(model__name=names[0]).exists()
    return names[0] if is_empty else None


def _model_of(job: Job) -> str | None:
    """Return the name of the model with the newest version from the job's experiment."""
    if job.experiment_id is None:
        return None
    from_experiment = Q(source_job__experiment=job.experiment_id) | Q(
        source_job__root__experiment=job.experiment_id
    )
    rows = ModelVersion.objects.filter(from_experiment, model__project=job.project_id, model__deletion=None)
    return rows.order_by("-pk").values_list("model__name", flat=True).first()


def _name_from(job: Job) -> str:
    name = job.experiment.name if job.experiment is not None else job.title
    if job.revision is not None:
        name = names.name_model(name, job.revision.spec_json)
    return slugify(name)[:63].strip("-_")


def versions_of(model: RegisteredModel) -> QuerySet[ModelVersion]:
    """Return a model's versions with the related rows that lists need."""
    related = ("model__endpoint", "artifact", "created_by", "source_job", "code")
    return model.versions.select_related(*related).prefetch_related("aliases", "promotions")


def was_approved_by_single_person(version: ModelVersion) -> bool:
    """Return whether a request for the version was approved under the single-person rule."""
    approved = (PromotionRequest.State.APPROVED, PromotionRequest.State.RELEASED)
    return any(
        promotion.single_person and promotion.state in approved for promotion in version.promotions.all()
    )


def stage_of(version: ModelVersion, endpoint: Endpoint) -> str | None:
    """Return a version's stage on its endpoint: production, staging, previous or None."""
    places = {
        "production": endpoint.production_id,
        "staging": endpoint.staging_id,
        "previous": endpoint.previous_id,
    }
    return next((stage for stage, pk in places.items() if pk == version.pk), None)


def model_out(model: RegisteredModel) -> ModelOut:
    """Return a model's API representation."""
    endpoint = model.endpoint
    # This costs no query for a row of a list, which has its aliases already.
    prefetch_related_objects([model], "aliases__version")
    count = getattr(model, "version_count", None)  # annotated by `models_for_lists`
    return ModelOut(
        name=model.name,
        project=model.project.slug,
        description=model.description,
        production=version_number(endpoint.production),
        previous=version_number(endpoint.previous),
        staging=version_number(endpoint.staging),
        generation=endpoint.generation,
        versions=model.versions.count() if count is None else count,
        aliases={alias.name: alias.version.number for alias in model.aliases.all()},
        created_by=_user_name(model.created_by),
        created=model.created,
    )


def version_out(version: ModelVersion) -> VersionOut:
    """Return a version's API representation."""
    return VersionOut(
        model=version.model.name,
        number=version.number,
        digest=version.artifact_id,
        identity=version.identity,
        code=version_code_out(version),
        bytes=version.artifact.bytes,
        state=version.state,
        stage=stage_of(version, version.model.endpoint),
        single_person=was_approved_by_single_person(version),
        what=version.what,
        metrics=version.metrics,
        signature=cast(SignatureOut, version.signature),
        class_labels=version.class_labels,
        lineage=cast(LineageOut, version.lineage),
        aliases=sorted(alias.name for alias in version.aliases.all()),
        card=version.card,
        error=cause_of(version.error),
        job=version.source_job_id,
        created_by=_user_name(version.created_by),
        created=version.created,
    )


def version_code_out(version: ModelVersion) -> VersionCodeOut | None:
    """Return the version's code, as the API represents it."""
    code = version.code
    if code is None:
        return None
    return VersionCodeOut(
        digest=code.digest,
        name=code.name,
        needed=version.needs_code,
        requirements_digest=version.requirements_digest or None,
        # A version has the code of the job that made it; an upload has no metrics.
        reported_metrics=version.source_job_id is not None,
        packages_digest=version.packages_id,
    )


def version_packages_out(version: ModelVersion, production: ModelVersion | None) -> VersionPackagesOut:
    """Return a version's packages, compared with those in production, as the API represents them."""
    other = production if production is not None and production.pk != version.pk else None
    if other is not None and not (
        package_sets.has_known_packages(other) and package_sets.has_known_packages(version)
    ):
        other = None
    return VersionPackagesOut(
        digest=version.packages_id,
        packages=list(package_sets.packages_of(version)),
        compared_with=version_number(other),
        changes=[
            PackageChangeOut(**change._asdict()) for change in package_sets.changes_since(other, version)
        ],
    )


def release_out(record: ReleaseRecord) -> ReleaseOut:
    """Return a release's API representation."""
    return ReleaseOut(
        generation=record.generation,
        kind=record.kind,
        version=version_number(record.version),
        replaced=version_number(record.replaced),
        promotion=record.promotion_id,
        reason=record.reason,
        by=_user_name(record.by),
        created=record.created,
    )


def _user_name(user: User | None) -> str | None:
    return None if user is None else user.username
