"""Reads model versions' metrics, files and lineage."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from jobs import access
from jobs.kinds.base import value_of
from jobs.kinds.register.payload import RegisterPayload, RegisterResult
from jobs.kinds.rows import belonging_to
from jobs.models import (
    DatasetVersion,
    Job,
    JobArtifact,
    ModelVersion,
    PromotionRequest,
    RegisteredModel,
    User,
)
from jobs.queries.search import outcomes
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import Task
from jobs.spec.sections.measures import EVALUATED_AS
from jobs.spec.sections.script_model import MODEL_FILE
from jobs.spec.sections.version_model import ALL, NOTHING
from jobs.states import JobState

type ValidationResult = RegisterResult
"""For pages: the result of a version's validation."""

MAX_COLUMNS = 4
"""The most metrics in a table with versions."""


class Link(NamedTuple):
    """One link in the chain from data set to endpoint. `key` identifies its page."""

    kind: str
    title: str
    detail: str
    key: Any = None


def metric_values(version: ModelVersion, part: str = "test") -> dict[str, float | None]:
    """Return a version's metric values on one part of the data."""
    metrics = version.metrics.get(part) or {}
    return {name: value_of(metric) for name, metric in metrics.items()}


def measured_by_code(job: Job | None) -> bool:
    """Return whether a job ran user code in the process that computed its metrics.

    Such code could report any number.
    """
    revision = job.revision if job is not None else None
    return revision is not None and revision.spec.model.code_digest is not None


def validation_metric_values(version: ModelVersion) -> dict[str, float | None]:
    """Return the validation metrics, also under the names that test evaluations use."""
    values = metric_values(version, "validation")
    return {EVALUATED_AS.get(name, name): value for name, value in values.items()} | values


def metric_names(versions: Iterable[ModelVersion]) -> list[str]:
    """Return the test metrics that are columns in a table with these versions, at most `MAX_COLUMNS`."""
    names = dict.fromkeys(name for version in versions for name in metric_values(version))
    return list(names)[:MAX_COLUMNS]


def source_artifacts(version: ModelVersion) -> list[JobArtifact]:
    """Return the artifacts from the job that made the version."""
    if version.source_job_id is None:
        return []
    rows = JobArtifact.objects.filter(job=version.source_job_id).select_related("artifact")
    return list(rows.order_by("role", "name"))


def is_foreign(version: ModelVersion) -> bool:
    """Return whether a version's file is an upload or was written by a script."""
    source = version.source_job
    if source is None:
        return True
    return source.revision is not None and source.revision.spec.model.info.trains_itself


def describe_variant(version: ModelVersion) -> str:
    """Describe a single model among its job's models. Empty for other variants."""
    source = version.source_job
    if version.what != "best" or source is None:
        return ""
    if is_foreign(version):
        return f"the file {MODEL_FILE} that the script wrote"
    if source.parent is None or source.state != JobState.COMPLETED:
        return "the model of its job"
    is_best = outcomes.best_single(source.parent) == source
    # The chosen one may have the same score.
    which = "the best of the models of its job," if is_best else "a model of its job, which chose another one"
    return f"{which} by the objective on validation rows"


def validation_payload(
    version: ModelVersion, *, without_code: bool = False, sample: str | None = None
) -> RegisterPayload:
    """Build the payload for the job that validates a version.

    Args:
        version: the version.
        without_code: whether the code that came with it is left out.
        sample: the digest of the file with the sender's rows; by default that of an earlier validation.
    """
    code = None if without_code or version.code is None else version.code.digest
    return RegisterPayload(
        version=version.pk, code=code, without_code=without_code, sample=sample or _sent_sample(version)
    )


def _sent_sample(version: ModelVersion) -> str | None:
    """Return the digest of the file with rows that came with a version."""
    first = Job.objects.filter(belonging_to("version", [version.pk])).order_by("pk").first()
    return None if first is None else first.payload_as(RegisterPayload).sample


def sample_digest(version: ModelVersion) -> str | None:
    """Return the digest of the rows with which a version was validated; None if they are in its data."""
    rows = JobArtifact.objects.filter(job__in=_validations(version), role="sample").order_by("-pk")
    return rows.values_list("artifact_id", flat=True).first()


def validation_result(version: ModelVersion) -> ValidationResult | None:
    """Return the result from the version's newest completed validation; None without one."""
    job = _validations(version).order_by("-pk").first()
    return RegisterResult.model_validate(job.results_json) if job is not None else None


def _validations(version: ModelVersion) -> QuerySet[Job]:
    return Job.objects.filter(belonging_to("version", [version.pk]), state=JobState.COMPLETED)


def dataset_profile(version: ModelVersion) -> Profile | None:
    """Return the profile of a version's training data. None if it is unknown.

    It is unknown for a script's model, which may read other columns, or no data at all.
    """
    source: Job | None = None if is_foreign(version) else version.source_job
    pk = source.payload.dataset_version if source else None
    data = DatasetVersion.objects.filter(pk=pk).first() if pk is not None else None
    return data.profile if data else None


def task_of_model(model: RegisteredModel) -> Task | None:
    """Return the task of the model's newest version; None if its data are unknown."""
    version = model.versions.select_related("source_job__revision").order_by("-number").first()
    return task_of(version) if version is not None else None


def task_of(version: ModelVersion) -> Task | None:
    """Return a version's task; None if its data are unknown."""
    data = dataset_profile(version)
    if version.source_job is None or data is None:
        return None
    revision = version.source_job.revision
    return (revision.spec.required_data.task if revision is not None else None) or data.task


def target_of(version: ModelVersion) -> str:
    """Name the column that a version predicts; empty if its data are unknown."""
    if version.source_job is None or is_foreign(version):
        return ""
    return target_of_job(version.source_job)


class Answer(NamedTuple):
    """The column that a job's models predict, and the task; empty and None if its data are unknown."""

    target: str
    task: str | None


def target_of_job(job: Job) -> str:
    """Name the column that a job's models predict; empty if its data are unknown."""
    return answers_of_jobs([job])[0].target


def answers_of_jobs(jobs: Sequence[Job]) -> list[Answer]:
    """Return the answers of the models of each job; no profile is loaded as a whole."""
    fields = ("pk", "profile_json__target", "profile_json__task")
    keys = {job.payload.dataset_version or 0 for job in jobs}
    rows = DatasetVersion.objects.filter(pk__in=keys, profile_json__isnull=False).values_list(*fields)
    known = {pk: Answer(target, task) for pk, target, task in rows}
    return [_answer_of(job, known.get(job.payload.dataset_version or 0)) for job in jobs]


def _answer_of(job: Job, data: Answer | None) -> Answer:
    if data is None:
        return Answer("", None)
    if job.revision is None:
        return data
    wanted = job.revision.spec.required_data
    return Answer(wanted.target or data.target, wanted.task or data.task)


def lineage_chain(version: ModelVersion, stages: Sequence[str] = ()) -> list[Link]:
    """Return the chain from data set to endpoint, as far as the lineage is known."""
    lineage = version.lineage
    links = []
    if "fine_tuned_from" in lineage:
        links.append(_base_link(lineage["fine_tuned_from"]))
    if "dataset" in lineage:
        digest = str(lineage.get("dataset_digest", ""))[:12]
        title = f"{lineage['dataset']} v{lineage.get('dataset_version')}"
        links.append(Link("dataset", title, digest, (lineage["dataset"], lineage.get("dataset_version"))))
    if "experiment" in lineage:
        title = str(lineage.get("experiment_name", lineage["experiment"]))
        links.append(Link("experiment", title, f"revision {lineage.get('revision')}", lineage["experiment"]))
    if "job" in lineage:
        trial = f", trial {lineage['trial']}" if "trial" in lineage else ""
        title = f"{lineage.get('kind', 'job')} {lineage['job']}"
        detail = f"attempt {lineage.get('attempt')}{trial}"
        links.append(Link("job", title, detail, lineage["job"]))
    if "code" in lineage:
        links.append(
            Link("code", str(lineage.get("code_name", "code")), str(lineage["code"])[:12], lineage["code"])
        )
    if "uploaded_by" in lineage:
        links.append(Link("upload", "uploaded file", f"by {lineage['uploaded_by']}"))
    links.append(Link("artifact", "model file", version.artifact_id[:12], version.artifact_id))
    links.append(Link("version", f"{version.model.name} v{version.number}", version.what or "version"))
    if stages:
        links.append(Link("endpoint", version.model.name, ", ".join(stages), version.model.name))
    return links


def _base_link(source: dict[str, Any]) -> Link:
    args = source.get("args", {})
    frozen = args.get("freeze_to", NOTHING)
    detail = {NOTHING: "nothing frozen", ALL: "all frozen but the head"}.get(frozen, f"frozen up to {frozen}")
    head = {"new": ", new head", "on_top": ", new head on top"}.get(str(args.get("head")), "")
    key = (source.get("model"), source.get("number"))
    return Link("fine-tuned from", f"{key[0]} v{key[1]}", detail + head, key)


def versions_by_artifact(user: User, digests: Collection[str]) -> dict[str, list[ModelVersion]]:
    """Return these artifacts' visible versions, by digest."""
    versions: dict[str, list[ModelVersion]] = defaultdict(list)
    rows = access.visible_versions(user).filter(artifact__in=digests).select_related("model")
    for version in rows.order_by("model__name", "number"):
        versions[version.artifact_id].append(version)
    return versions


def versions_by_job(user: User, jobs: Collection[int]) -> dict[int, list[ModelVersion]]:
    """Return the visible versions with these jobs' models, by job key.

    A job that made the same file as an earlier one has its versions too.
    """
    versions: dict[int, list[ModelVersion]] = defaultdict(list)
    makers: dict[str, set[int]] = defaultdict(set)
    models = JobArtifact.objects.filter(job__in=jobs, role="model")
    for job, digest in models.values_list("job", "artifact"):
        makers[digest].add(job)
    rows = access.visible_versions(user).filter(Q(source_job__in=jobs) | Q(artifact__in=makers))
    for version in rows.select_related("model").order_by("model__name", "number"):
        source = version.source_job_id
        own = {source} if source is not None and source in jobs else set()
        for job in sorted(makers[version.artifact_id] | own):
            versions[job].append(version)
    return versions


def unrequested_candidates(versions: Collection[ModelVersion]) -> list[ModelVersion]:
    """Return the candidates whose promotion was never requested."""
    candidates = {version.pk for version in versions if version.state == ModelVersion.State.CANDIDATE}
    requested = PromotionRequest.objects.filter(version__in=candidates).values_list("version", flat=True)
    remaining = candidates.difference(requested)
    return [version for version in versions if version.pk in remaining]


def validated_version(user: User, job: Job) -> ModelVersion | None:
    """Return the version that a job validates; None if it validates none that is visible."""
    if not isinstance(job.payload, RegisterPayload):
        return None
    rows = access.visible_versions(user).select_related("model")
    return rows.filter(pk=job.payload.version).first()


def version_number(version: ModelVersion | None) -> int | None:
    """Return a version's number, or None."""
    return None if version is None else version.number
