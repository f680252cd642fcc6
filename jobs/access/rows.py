"""Returns single objects for a user and an `Action`."""

from jobs.access.rights import Action, can, require
from jobs.access.visible import (
    restorable_deletions,
    visible_artifacts,
    visible_code,
    visible_datasets,
    visible_endpoints,
    visible_experiments,
    visible_jobs,
    visible_models,
    visible_promotions,
    visible_uploads,
)
from jobs.errors import NotFound
from jobs.models import (
    Artifact,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Deletion,
    Endpoint,
    Experiment,
    Job,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    ResumableUpload,
    Trial,
    User,
)


def get_deletion(user: User, kind: Deletion.Kind, target: int | None) -> Deletion:
    """Return a row's deletion by the row's key."""
    rows = restorable_deletions(user).filter(kind=kind, target=target or 0)
    if (deletion := rows.select_related("project", "by").first()) is None:
        raise NotFound("There is no such deletion that you may undo.")
    return deletion


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
    """Return a data set by slug: the project's, or else the bundled one.

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
    """Return a dataset version by number."""
    dataset = get_dataset(user, slug, project, action)
    version = dataset.versions.select_related("dataset", "dataset__project").filter(number=number).first()
    if version is None:
        raise NotFound(f"Data set {slug!r} has no version {number}.")
    return version


def get_code(
    user: User, digest: str, project: Project | None = None, action: Action = Action.VIEW
) -> CodeVersion:
    """Return a code version by digest: in `project`, or else the only visible one.

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
    """Return an endpoint by its model's name."""
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
