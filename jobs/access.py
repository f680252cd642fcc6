"""Checks permissions and returns the objects that a user may access. All access goes through here.

If a user may not see an object, `NotFound` is raised, which does not reveal whether it exists. If the role
does not allow the action, `Forbidden` is raised. `visible_…` return querysets; `get_…` return one object for
an `Action`, by default `VIEW`.

Deleted rows do not exist for anyone: the manager `objects` of their models leaves them out, and the filters
here leave out what belongs to them. Only the functions about deletions find them.
"""

from collections.abc import Sequence
from enum import StrEnum

from django.conf import settings
from django.db.models import BigIntegerField, Q, QuerySet

from jobs import clock
from jobs.errors import Forbidden, NotFound
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
    Membership,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    ResumableUpload,
    Role,
    Trial,
    User,
)
from jobs.models.job import JobQuerySet
from jobs.prepared import Parameter, PreparedQuery


class Action(StrEnum):
    """The actions in a project that need a permission."""

    VIEW = "view"
    WRITE = "write"  # experiments, jobs, datasets, models, promotion requests
    RUN_CODE = "run_code"  # run jobs with code of users
    APPROVE = "approve"  # decide promotion requests
    SERVE = "serve"  # roll back and change the versions of an endpoint
    MANAGE = "manage"  # the project itself and its members


A = Action
# Forms list the roles in this order. An approver cannot write, so that the same person does not both
# create and approve a model.
ALLOWED: dict[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset({A.VIEW}),
    Role.MEMBER: frozenset({A.VIEW, A.WRITE}),
    Role.TRAINER: frozenset({A.VIEW, A.WRITE, A.RUN_CODE}),
    Role.APPROVER: frozenset({A.VIEW, A.APPROVE, A.SERVE}),
    Role.ADMIN: frozenset(Action),
}

SECOND_FACTOR = "second_factor_required"
"""The code of the error for who lacks one."""
NEEDS_SECOND_FACTOR = frozenset({A.APPROVE, A.SERVE, A.MANAGE})
"""Actions that take a second factor where the installation requires one."""

_ROLES = PreparedQuery(
    lambda: Membership.objects.filter(user=Parameter("user", BigIntegerField())).values_list(
        "project", "role"
    )
)


def roles_allowing(action: Action) -> list[Role]:
    """List the roles whose permissions include an action."""
    return [role for role in Role if action in ALLOWED[role]]


def requires_second_factor(user: User) -> bool:
    """Return whether `user` must have a second factor: administrators and approvers must."""
    if not settings.TRAINYARD_REQUIRE_SECOND_FACTOR or user.is_service:
        return False
    approving = Membership.objects.filter(user=user, role__in=roles_allowing(Action.APPROVE))
    return user.is_superuser or approving.exists()


def lacks_second_factor(user: User) -> bool:
    """Return whether `user` must have a second factor and has none."""
    if not settings.TRAINYARD_REQUIRE_SECOND_FACTOR or user.is_service:
        return False
    has_one = User.objects.filter(pk=user.pk, authenticator__type="totp").exists()
    return not has_one and requires_second_factor(user)


def second_factor_required() -> Forbidden:
    """Return the error for an action that takes a second factor."""
    return Forbidden(
        "Set up a second factor on the page Account first: approvers and administrators need one.",
        code=SECOND_FACTOR,
    )


def projects_of(user: User, action: Action = Action.VIEW) -> QuerySet[Project]:
    """Return the projects in which `user` may do an action. Installation admins get all."""
    if not user.is_active or (action in NEEDS_SECOND_FACTOR and lacks_second_factor(user)):
        return Project.objects.none()
    if user.is_superuser:
        return Project.objects.all()
    return _projects_with_member(user, action)


def _projects_with_member(user: User | int, action: Action) -> QuerySet[Project]:
    return Project.objects.filter(memberships__user=user, memberships__role__in=roles_allowing(action))


def role_in(user: User, project: Project) -> Role | None:
    """Return the role of `user` in `project`; None without membership. Installation admins are admins."""
    return roles_in(user, [project]).get(project.pk)


def roles_in(user: User, projects: Sequence[Project]) -> dict[int, Role]:
    """Return the role of `user` in each project, by project key, with one query. See `role_in`."""
    if not user.is_active:
        return {}
    if user.is_superuser:
        return {project.pk: Role.ADMIN for project in projects}
    # All roles of the user, since a compiled statement cannot have a list of projects of any length.
    keys = {project.pk for project in projects}
    return {key: Role(role) for key, role in _ROLES.rows(user=user.pk) if key in keys}


def can(user: User, project: Project | None, action: Action) -> bool:
    """Return whether `user` may do `action` in `project`."""
    return action in _allowed_actions(user, project)


def _allowed_actions(user: User, project: Project | None) -> frozenset[Action]:
    """Return the actions that `user` may do in `project`.

    Objects without a project (bundled data sets and their profiles) are visible to everyone and read-only.
    """
    if project is None:
        return frozenset({Action.VIEW}) if user.is_active else frozenset()
    role = role_in(user, project)
    allowed = frozenset() if role is None else ALLOWED[role]
    return allowed - NEEDS_SECOND_FACTOR if lacks_second_factor(user) else allowed


def require(user: User, project: Project | None, action: Action) -> None:
    """Check that `user` may do `action` in `project`.

    Raises:
        NotFound: `user` may not see the project.
        Forbidden: the role of `user` does not allow the action, or a second factor is missing.
    """
    allowed = _allowed_actions(user, project)
    if Action.VIEW not in allowed:
        raise NotFound("There is no such project, or you are not a member of it.")
    if action not in allowed:
        if action in NEEDS_SECOND_FACTOR and lacks_second_factor(user):
            raise second_factor_required()
        # Without a project no role helps: bundled data are read-only for everyone.
        needed = ", ".join(role.label for role in Role if project and action in ALLOWED[role])
        where = f"in {project.slug}" if project else "with bundled data sets"
        hint = f" It takes one of these roles: {needed}." if needed else ""
        raise Forbidden(f"You may not do this {where}.{hint}")


def require_admin(user: User) -> None:
    """Raise `Forbidden` unless `user` is an administrator of the installation."""
    if not (user.is_active and user.is_superuser):
        raise Forbidden("Only an administrator of the installation may do this.")
    if lacks_second_factor(user):
        raise second_factor_required()


def may_delete(user: User, project: Project | None, *, owner: User | None = None) -> bool:
    """Return whether `require_deletion` would allow it."""
    allowed = _allowed_actions(user, project)
    is_owner = owner is not None and owner.pk == user.pk
    return project is not None and (Action.MANAGE in allowed or (is_owner and Action.WRITE in allowed))


def require_deletion(user: User, project: Project | None, *, owner: User | None = None) -> None:
    """Check that `user` may delete an object of `project`: its admins and a writing `owner` may.

    Raises:
        NotFound: `user` may not see the project.
        Forbidden: `user` is neither.
    """
    if not may_delete(user, project, owner=owner):
        require(user, project, Action.MANAGE)


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


def get_deletion(user: User, kind: Deletion.Kind, target: int | None) -> Deletion:
    """Return the deletion of a row by the row's key."""
    rows = restorable_deletions(user).filter(kind=kind, target=target or 0)
    if (deletion := rows.select_related("project", "by").first()) is None:
        raise NotFound("There is no such deletion that you may undo.")
    return deletion


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
    """Return the versions of the data sets that `user` may see."""
    rows = DatasetVersion.objects.filter(dataset__deletion=None)
    return rows.filter(_visible_or_shared(user, "dataset__project"))


def visible_code(user: User) -> QuerySet[CodeVersion]:
    """Return the versions of code that `user` may see."""
    return CodeVersion.objects.filter(_visible_in_project(user))


def visible_models(user: User) -> QuerySet[RegisteredModel]:
    """Return the registered models that `user` may see."""
    return RegisteredModel.objects.filter(_visible_in_project(user))


def visible_versions(user: User) -> QuerySet[ModelVersion]:
    """Return the versions of the registered models that `user` may see."""
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
    return _promotions_with_related().filter(model__project__in=_projects_with_member(person, Action.APPROVE))


def _promotions_with_related() -> QuerySet[PromotionRequest]:
    return PromotionRequest.objects.filter(version__deletion=None)


def visible_endpoints(user: User) -> QuerySet[Endpoint]:
    """Return the endpoints that `user` may see."""
    return Endpoint.objects.filter(_visible_in_project(user, "model__project"), model__deletion=None)


def served_endpoints(user: User) -> QuerySet[Endpoint]:
    """Return the endpoints that prediction servers and clients with a token of `user` reach.

    The service account of the installation is a member of no project, and reaches all.
    """
    if user.is_service and user.is_active:
        return Endpoint.objects.filter(model__deletion=None)
    return visible_endpoints(user)


def visible_artifacts(user: User) -> QuerySet[Artifact]:
    """Return the artifacts that are referenced by an object that `user` may see.

    An artifact has no project, because equal files of several projects are stored once.
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


def get_project(user: User, slug: str, action: Action = Action.VIEW) -> Project:
    """Return a project by slug."""
    project = Project.objects.filter(slug=slug).first()
    # One message for both cases, so that a stranger cannot find out which projects exist.
    if project is None or not can(user, project, Action.VIEW):
        raise NotFound(f"There is no project {slug!r}, or you are not a member of it.")
    require(user, project, action)
    return project


def get_job(user: User, job_id: int, action: Action = Action.VIEW) -> Job:
    """Return a job by id, with its project."""
    related = ("project", "experiment", "revision", "created_by")
    # An invisible job is never loaded, so the answer is the same as for a missing one.
    job = visible_jobs(user).select_related(*related).filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    require(user, job.project, action)
    return job


def get_trial(user: User, job_id: int, number: int, action: Action = Action.VIEW) -> Trial:
    """Return a trial by its job and number."""
    job = get_job(user, job_id, action)
    trial = job.trials.filter(number=number).first()
    if trial is None:
        raise NotFound(f"Job {job_id} has no trial {number}.")
    return trial


def get_experiment(user: User, experiment_id: int, action: Action = Action.VIEW) -> Experiment:
    """Return an experiment by id, with its project."""
    experiment = visible_experiments(user).select_related("project").filter(pk=experiment_id).first()
    if experiment is None:
        raise NotFound(f"There is no experiment {experiment_id}.")
    require(user, experiment.project, action)
    return experiment


def get_dataset(
    user: User, slug: str, project: Project | None = None, action: Action = Action.VIEW
) -> Dataset:
    """Return a data set by slug: that of the project, or else the bundled one.

    Without a project, return the bundled data set, or else the only visible one with this slug.

    Raises:
        NotFound: there is no such data set, or several projects have one.
    """
    datasets = list(visible_datasets(user).select_related("project").filter(slug=slug))
    shared = [dataset for dataset in datasets if dataset.project_id is None]
    owned = [dataset for dataset in datasets if dataset.project_id is not None]
    if project is not None:
        candidates = [dataset for dataset in owned if dataset.project_id == project.pk] or shared
    else:
        candidates = shared or owned
    if not candidates:
        raise NotFound(f"There is no data set {slug!r}.")
    if len(candidates) > 1:
        raise NotFound(f"Several projects have a data set {slug!r}: give the project.", code="ambiguous")
    require(user, candidates[0].project, action)
    return candidates[0]


def get_dataset_version(
    user: User, slug: str, number: int, project: Project | None = None, action: Action = Action.VIEW
) -> DatasetVersion:
    """Return a version of a data set by number."""
    dataset = get_dataset(user, slug, project, action)
    version = dataset.versions.select_related("dataset", "dataset__project").filter(number=number).first()
    if version is None:
        raise NotFound(f"Data set {slug!r} has no version {number}.")
    return version


def get_code(
    user: User, digest: str, project: Project | None = None, action: Action = Action.VIEW
) -> CodeVersion:
    """Return a version of code by digest: that of `project`, or else the only visible one.

    Raises:
        NotFound: there is no such version, or several projects have it.
    """
    rows = visible_code(user).select_related("project", "created_by").filter(digest=digest)
    if project is not None:
        rows = rows.filter(project=project)
    versions = list(rows[:2])
    if not versions:
        raise NotFound(f"There is no code with the digest {digest[:64]!r}.")
    if len(versions) > 1:
        raise NotFound(f"Several projects have the code {digest[:8]}: give the project.", code="ambiguous")
    require(user, versions[0].project, action)
    return versions[0]


def visible_uploads(user: User) -> QuerySet[ResumableUpload]:
    """Return the resumable uploads that `user` may continue or end: their own, and managed ones."""
    own_uploads = Q(created_by=user, project__in=projects_of(user, Action.WRITE))
    managed = Q(project__in=projects_of(user, Action.MANAGE))
    return ResumableUpload.objects.filter(own_uploads | managed, until__gt=clock.estimate())


def get_upload(user: User, key: str) -> ResumableUpload:
    """Return an upload in parts by its id, with its project."""
    upload = visible_uploads(user).select_related("project", "artifact").filter(pk=key).first()
    if upload is None:
        raise NotFound(f"There is no upload {key[:32]!r}, or it has expired.")
    return upload


def get_model(user: User, name: str, action: Action = Action.VIEW) -> RegisteredModel:
    """Return a registered model by name, with its project."""
    model = visible_models(user).select_related("project").filter(name=name).first()
    if model is None:
        raise NotFound(f"There is no model {name!r}.")
    require(user, model.project, action)
    return model


def get_version(user: User, name: str, number: int, action: Action = Action.VIEW) -> ModelVersion:
    """Return a model version by the model's name and its number."""
    model = get_model(user, name, action)
    rows = model.versions.select_related("model__project", "artifact", "code").filter(number=number)
    if (version := rows.first()) is None:
        raise NotFound(f"Model {name!r} has no version {number}.")
    return version


def get_promotion(user: User, promotion_id: int, action: Action = Action.VIEW) -> PromotionRequest:
    """Return a promotion request by id, with its model, version and requester."""
    related = (
        "model__project",
        "version__model",
        "version__source_job__revision",
        "requested_by",
        "baseline_version",
        "gate_job",
        "gate_revision__created_by",
    )
    promotion = visible_promotions(user).select_related(*related).filter(pk=promotion_id).first()
    if promotion is None:
        raise NotFound(f"There is no promotion request {promotion_id}.")
    require(user, promotion.model.project, action)
    return promotion


def get_endpoint(user: User, name: str, action: Action = Action.VIEW) -> Endpoint:
    """Return an endpoint by the name of its model."""
    related = ("model__project", "production", "previous", "staging")
    endpoint = visible_endpoints(user).select_related(*related).filter(model__name=name).first()
    if endpoint is None:
        raise NotFound(f"There is no endpoint {name!r}.")
    require(user, endpoint.model.project, action)
    return endpoint


def get_artifact(user: User, digest: str) -> Artifact:
    """Return an artifact by its digest."""
    artifact = visible_artifacts(user).filter(pk=digest).first()
    if artifact is None:
        raise NotFound(f"There is no artifact {digest[:12]!r}.")
    return artifact
