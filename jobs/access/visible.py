"""Returns the querysets of the objects that a user may see."""

from django.db.models import Q, QuerySet

from jobs import clock
from jobs.access.rights import Action, lacks_second_factor, projects_of, projects_with_member, roles_allowing
from jobs.models import (
    Artifact,
    CodeFile,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Deletion,
    Endpoint,
    Experiment,
    FurtherFile,
    Job,
    JobArtifact,
    ModelVersion,
    PromotionRequest,
    RegisteredModel,
    ResumableUpload,
    User,
)
from jobs.models.job import JobQuerySet


def restorable_deletions(user: User) -> QuerySet[Deletion]:
    """Return the deletions that `user` may undo: their own, and all in managed projects.

    Who lacks a required second factor manages none.
    """
    if not user.is_active:
        return Deletion.objects.none()
    own_deletions = Q(project__memberships__user=user, by=user)
    if lacks_second_factor(user):
        return Deletion.objects.filter(own_deletions)
    if user.is_superuser:
        return Deletion.objects.all()
    managed = Q(project__memberships__user=user, project__memberships__role__in=roles_allowing(Action.MANAGE))
    return Deletion.objects.filter(managed | own_deletions).distinct()


def _visible_in_project(user: User, path: str = "project") -> Q:
    """Return a filter for objects whose project, at `path`, is visible. Installation admins see all."""
    if user.is_superuser and user.is_active:
        return Q()
    return Q(**{f"{path}__in": projects_of(user)})


def _visible_or_shared(user: User, path: str = "project") -> Q:
    """Return a filter like `_visible_in_project` that includes objects without a project."""
    if not user.is_active:
        return Q(pk__in=[])
    if user.is_superuser:
        # Django drops an empty Q from an "or", so only shared objects would remain below.
        return Q()
    return _visible_in_project(user, path) | Q(**{f"{path}__isnull": True})


def visible_jobs(user: User) -> JobQuerySet:
    """Return the jobs that `user` may see."""
    return Job.objects.filter(_visible_or_shared(user))


def visible_experiments(user: User) -> QuerySet[Experiment]:
    """Return the experiments that `user` may see, archived ones included."""
    return Experiment.objects.filter(_visible_in_project(user))


def visible_datasets(user: User) -> QuerySet[Dataset]:
    """Return the data sets that `user` may see, bundled ones included."""
    return Dataset.objects.filter(_visible_or_shared(user))


def visible_dataset_versions(user: User) -> QuerySet[DatasetVersion]:
    """Return the dataset versions that `user` may see."""
    rows = DatasetVersion.objects.filter(dataset__deletion=None)
    return rows.filter(_visible_or_shared(user, "dataset__project"))


def visible_code(user: User) -> QuerySet[CodeVersion]:
    """Return the code versions that `user` may see."""
    return CodeVersion.objects.filter(_visible_in_project(user))


def visible_models(user: User) -> QuerySet[RegisteredModel]:
    """Return the registered models that `user` may see."""
    return RegisteredModel.objects.filter(_visible_in_project(user))


def visible_versions(user: User) -> QuerySet[ModelVersion]:
    """Return the model versions that `user` may see."""
    return ModelVersion.objects.filter(_visible_in_project(user, "model__project"))


def visible_promotions(user: User) -> QuerySet[PromotionRequest]:
    """Return the promotion requests that `user` may see."""
    return _promotions_with_related().filter(_visible_in_project(user, "model__project"))


def promotions_for_approvers(person: int, *, is_admin: bool) -> QuerySet[PromotionRequest]:
    """Return the promotion requests in projects where an active person approves.

    An installation admin approves in all. The rules about own requests are those of `queries.deciders`.
    """
    if is_admin:
        return _promotions_with_related()
    return _promotions_with_related().filter(model__project__in=projects_with_member(person, Action.APPROVE))


def _promotions_with_related() -> QuerySet[PromotionRequest]:
    return PromotionRequest.objects.filter(version__deletion=None)


def visible_endpoints(user: User) -> QuerySet[Endpoint]:
    """Return the endpoints that `user` may see."""
    return Endpoint.objects.filter(_visible_in_project(user, "model__project"), model__deletion=None)


def served_endpoints(user: User) -> QuerySet[Endpoint]:
    """Return the endpoints that prediction servers and clients reach with a token of `user`.

    The installation's service account is no project's member, and reaches all.
    """
    if user.is_service and user.is_active:
        return Endpoint.objects.filter(model__deletion=None)
    return visible_endpoints(user)


def visible_artifacts(user: User) -> QuerySet[Artifact]:
    """Return the artifacts to which an object that `user` may see refers.

    An artifact has no project, because several projects' equal files are stored once.
    """
    data = visible_dataset_versions(user)
    job_outputs = JobArtifact.objects.filter(_visible_or_shared(user, "job__project"), job__deletion=None)
    return Artifact.objects.filter(
        Q(pk__in=job_outputs.values("artifact"))
        | Q(pk__in=visible_versions(user).values("artifact"))
        | Q(pk__in=data.filter(upload__isnull=False).values("upload"))
        | Q(pk__in=data.filter(table__isnull=False).values("table"))
        | Q(pk__in=FurtherFile.objects.filter(version__in=data).values("artifact"))
        | Q(pk__in=CodeFile.objects.filter(version__in=visible_code(user)).values("artifact"))
    )


def visible_uploads(user: User) -> QuerySet[ResumableUpload]:
    """Return the resumable uploads that `user` may continue or end: their own, and managed ones."""
    own_uploads = Q(created_by=user, project__in=projects_of(user, Action.WRITE))
    managed = Q(project__in=projects_of(user, Action.MANAGE))
    return ResumableUpload.objects.filter(own_uploads | managed, until__gt=clock.estimate())
