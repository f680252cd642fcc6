"""Creates versions from jobs' models, uploaded files and pipelines, and records their validation."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Max, Q

from jobs import access, upload_formats
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.registry.registry import create_model, model_for
from jobs.actions.runs import events, job_warnings, submit
from jobs.actions.runs.tasks import data_of
from jobs.actions.storage import artifacts, deletions
from jobs.errors import BadInput, BadSpec, Conflict, NotFound
from jobs.kinds import kinds_that
from jobs.kinds.rows import belonging_to
from jobs.messages.warning_codes import SAME_VERSION
from jobs.models import (
    Artifact,
    CodeVersion,
    Job,
    JobArtifact,
    ModelVersion,
    PackageSet,
    Project,
    RegisteredModel,
    User,
)
from jobs.queries.code import package_sets
from jobs.queries.registry import versions
from jobs.queries.registry.lineage import lineage_of
from jobs.queries.search import outcomes
from jobs.spec.problems import Problem
from jobs.spec.sections.after import Registered
from jobs.spec.sections.script_model import MODEL_FILE
from jobs.spec.signature import Signature
from jobs.store import StoredFile, store

NUMBER_TRIES = 20


class Registration(NamedTuple):
    """The version for a model's file, and whether it was created for it: an equal one is not added again."""

    version: ModelVersion
    is_new: bool


def add_version(model: RegisteredModel, digest: str, *, by: User) -> Registration:
    """Create a version from a model that a job produced, and queue its validation.

    If the model has a version with the same file, code and data already, that is the version.

    Raises:
        NotFound: no job that `by` can read produced such an artifact.
        BadInput: the artifact is not a model.
        QuotaReached: the project has too many unfinished jobs.
    """
    access.require(by, model.project, Action.WRITE)
    access.get_artifact(by, digest)
    source = _model_artifact(by, digest)
    code = _code_of(model.project, source.job)
    _require_code(code, by)
    with transaction.atomic():
        # Locked here for the job below, since the version writes to the audit log, which is locked last.
        deletions.require_present(model.project)
        # Validation is a job with a high priority: many would delay other projects' jobs.
        quotas.require_room_for_job(model.project)
        registration = _create_or_find(
            model,
            artifact=source.artifact,
            what=source.job.facts.registered_as or "best",
            metrics=source.job.results.metrics,
            lineage=lineage_of(source),
            source_job=source.job,
            code=code,
            created_by=by,
        )
        if registration.is_new:
            queue_validation(registration.version, by=by)
    return registration


def _code_of(project: Project, source: Job) -> CodeVersion | None:
    """Return the code for the model that a job made, or None if it was built without user code.

    Raises:
        Conflict: the version's project does not have it.
    """
    model = source.revision.spec.model if source.revision is not None else None
    # Loading the file of a script would import the script, which trains when it is imported.
    digest = None if model is None or model.info.trains_itself else model.code_digest
    if digest is None:
        return None
    # A version may be added to a model in another project than its job's.
    code = CodeVersion.objects.filter(project=project, digest=digest).first()
    if code is None:
        raise Conflict(
            f"The model was made by code {digest[:8]}, which {project.slug} does not have: upload it there."
        )
    return code


def _require_code(code: CodeVersion | None, by: User) -> None:
    """Check that `by` may have code executed, if there is any: validating its version does that."""
    if code is not None:
        access.require(by, code.project, Action.RUN_CODE)


def add_to_new_model(project: Project, name: str, digest: str, *, by: User) -> Registration:
    """Create a registered model with its first version from a job's model, in one transaction.

    Raises:
        BadInput: the name is not valid in a URL, or the artifact is not a model.
        Conflict: another model in the installation has the name.
        NotFound: no job that `by` can read produced such an artifact.
    """
    with transaction.atomic():
        return add_version(create_model(project, name, by=by), digest, by=by)


def _model_artifact(by: User, digest: str) -> JobArtifact:
    """Return the newest job output with this digest that is a model and that `by` may see."""
    uses = JobArtifact.objects.filter(artifact_id=digest, job__in=access.visible_jobs(by))
    models = uses.filter(role="model").select_related("artifact", "job__revision__experiment").order_by("-pk")
    if (source := models.first()) is None:
        other = uses.first()
        fault = (
            f"is the {other.role} of a job, not a model" if other else "does not come from a job you can see"
        )
        raise BadInput(f"Artifact {digest[:12]} {fault}.", [Problem("/artifact", fault)])
    return source


def store_upload(path: Path, project: Project) -> StoredFile:
    """Copy an uploaded `.keras` file to the store. Slow: it must not run in a transaction.

    Only its first bytes are read here. Everything else is checked by a runner, whose memory is limited.

    Raises:
        BadInput: the file is not a zip archive.
        QuotaReached: the file does not fit into the project's disk quota.
    """
    quotas.require_room_on_disk(project, path.stat().st_size)
    upload_formats.check_keras(path)
    return store().put(path)


def store_sample(path: Path, project: Project) -> StoredFile:
    """Copy the rows with which an uploaded model is tried to the store. Slow, as `store_upload`.

    Raises:
        BadInput: it is empty, too large, or neither NPZ nor JSON by its first bytes.
        QuotaReached: the file does not fit into the project's disk quota.
    """
    upload_formats.check_sample(path)
    quotas.require_room_on_disk(project, path.stat().st_size)
    return store().put(path)


def code_for_upload(model: RegisteredModel, digest: str, *, by: User) -> CodeVersion | None:
    """Return the code that an uploaded file needs, by its digest, or None for an empty one.

    Raises:
        BadInput: the model's project has no such code.
        Forbidden: `by` may not have code executed.
    """
    if not digest:
        return None
    code = CodeVersion.objects.select_related("project").filter(project=model.project, digest=digest).first()
    if code is None:
        message = f"{model.project.slug} has no code with the digest {digest[:64]!r}"
        raise BadInput(f"The version cannot be created: {message}.", [Problem("/code", message)])
    _require_code(code, by)
    return code


def add_uploaded(
    model: RegisteredModel,
    stored: StoredFile,
    *,
    code: CodeVersion | None = None,
    sample: StoredFile | None = None,
    by: User,
) -> Registration:
    """Create a version from an uploaded `.keras` file in the store, and queue its validation.

    If the model has a version with the same file and code already, that is the version.

    Args:
        model: the model.
        stored: the file.
        code: the project's code for a file with custom objects; see `code_for_upload`.
        sample: rows with which the model is tried; see `store_sample`.
        by: the acting user.

    Raises:
        Forbidden: there is code, and `by` may not have it executed.
        QuotaReached: the file does not fit into the project's disk quota.
    """
    access.require(by, model.project, Action.WRITE)
    _require_code(code, by)
    with transaction.atomic():
        artifact = artifacts.adopt(stored)
        quotas.require_room_for_artifact(model.project, artifact)
        lineage = {"uploaded_by": by.username, "artifact": stored.digest}
        registration = _create_or_find(
            model, artifact=artifact, what="uploaded", lineage=lineage, code=code, created_by=by
        )
        if not registration.is_new:
            return registration
        version = registration.version
        job = queue_validation(version, sample=None if sample is None else sample.digest, by=by)
        if sample is not None:
            rows = artifacts.adopt(sample)
            quotas.require_room_for_artifact(model.project, rows)
            # So it counts as disk use of the project, is shown on the job's page, and is deleted with it.
            JobArtifact.objects.create(job=job, attempt=0, artifact=rows, role="sample", name="sent_sample")
    return registration


def queue_description(version: ModelVersion, *, by: User) -> Job:
    """Validate a candidate again, to read its layers for the pages.

    Raises:
        Conflict: the version is not a candidate, or is being validated.
        QuotaReached: the project has too many unfinished jobs.
    """
    project = version.model.project
    access.require(by, project, Action.WRITE)
    _require_code(version.code, by)
    with transaction.atomic():
        deletions.require_present(project, version)
        if version.state != ModelVersion.State.CANDIDATE:
            raise Conflict(f"{version} is {version.state}: only the layers of candidates can be read.")
        if Job.objects.filter(belonging_to("version", [version.pk])).unfinished().exists():
            raise Conflict(f"A job is reading {version} already.")
        quotas.require_room_for_job(project)
        job = queue_validation(version, by=by)
        name = f"version:{version.model.name}/{version.number}"
        audit.record("version.describe", name, by=by, project=project, job=job.pk)
        return job


def _create_or_find(model: RegisteredModel, *, holds_job: bool = False, **fields: Any) -> Registration:
    """Create a version, or return the one that the model has for the same file, code and data already.

    Args:
        model: the model.
        holds_job: whether the caller has locked the job that made the file. If not, its job is locked after
            the commit, since one that registers has locked its job before the model.
        fields: the columns of the version.
    """
    # Locked, so that the second of two simultaneous registrations finds the version of the first.
    deletions.require_present(model)
    version = _equal_version(model, **fields)
    if version is None:
        return Registration(_create_numbered(model, **fields), is_new=True)
    name = f"version:{model.name}/{version.number}"
    job: Job | None = fields.get("source_job")
    if job is not None and job.pk != version.source_job_id:
        if holds_job:
            _note_repetition(job, version)
        else:
            transaction.on_commit(partial(_note_repetition, job, version))
    audit.record(
        "version.repeat",
        name,
        by=fields["created_by"],
        project=model.project,
        digest=version.artifact_id,
        job=job.pk if job is not None else None,
    )
    return Registration(version, is_new=False)


def _equal_version(
    model: RegisteredModel,
    *,
    artifact: Artifact,
    lineage: dict[str, Any],
    code: CodeVersion | None = None,
    packages: PackageSet | None = None,
    **_others: Any,
) -> ModelVersion | None:
    """Return the model's oldest version that would answer as a new one with these fields would.

    The file has the weights, the architecture and the preprocessing. Code, packages and the version of the
    data, from which come class labels and the rows of gates, are beside it. A version that its validation
    refused does not count, so that its file can be tried again.
    """
    rows = model.versions.filter(artifact=artifact, code=code).exclude(state=ModelVersion.State.INVALID)
    if packages is not None:
        rows = rows.filter(Q(packages=None) | Q(packages=packages))
    # The data of an upload are unknown.
    if (data := lineage.get("dataset_digest")) is not None:
        rows = rows.filter(lineage__dataset_digest=data)
    return rows.order_by("number").first()


def _note_repetition(job: Job, version: ModelVersion) -> None:
    """Report on a job's page and in its events that its model is an earlier version."""
    message = f"Its model is {version}, bit by bit: no further version was added."
    body = events.event("warning", job, code=SAME_VERSION, message=message)
    with transaction.atomic():
        job_warnings.add_warning(job.pk, code=SAME_VERSION, message=message)
        events.append(job.root_id_or_self, [body])


def _create_numbered(model: RegisteredModel, **fields: Any) -> ModelVersion:
    """Create a version under the next free number."""
    by = fields["created_by"]
    code: CodeVersion | None = fields.get("code")
    if code is not None:
        packages = code.findings.packages
        fields["requirements_digest"] = packages.digest if packages is not None else ""
        fields["lineage"] = {**fields["lineage"], "code": code.digest, "code_name": code.name}
    for _ in range(NUMBER_TRIES):
        numbers = ModelVersion.everything.filter(model=model).aggregate(newest=Max("number"))
        last_number = RegisteredModel.everything.values_list("last_number", flat=True).get(pk=model.pk)
        # A number is never used again, also after a deletion.
        newest = max(numbers["newest"] or 0, last_number)
        try:
            with transaction.atomic():
                version = ModelVersion.objects.create(model=model, number=newest + 1, **fields)
        # Another process has created a version with this number in the meantime.
        except IntegrityError:
            continue
        deletions.require_present(model, version.source_job, code)
        name = f"version:{model.name}/{version.number}"
        detail = {} if code is None else {"code": code.digest}
        audit.record(
            "version.create", name, by=by, project=model.project, digest=version.artifact_id, **detail
        )
        return version
    raise Conflict(f"Too many versions of {model.name} are being created at once; try again.")


def register_outputs(root: Job) -> list[ModelVersion]:
    """Create the versions that a root job's spec registers, once each, in the spec's order.

    Raises:
        Conflict: the model's name belongs to another project.
        NotFound: a step produced no model.
    """
    if (
        root.revision is None
        or root.project is None
        or (registration := root.revision.spec.after.register_) is None
    ):
        return []
    with transaction.atomic():
        model = model_for(root.project, registration.model, by=root.created_by)
        # A spec may name an output many thousand times.
        return [_registered_output(model, root, what) for what in dict.fromkeys(registration.what)]


def _registered_output(model: RegisteredModel, root: Job, what: Registered) -> ModelVersion:
    """Return the version for a root's output, which the first call creates."""
    job = _source_job(root, what)
    version = model.versions.filter(source_job=job, what=what).order_by("-number").first()
    if version is not None:
        return version
    source = job.artifacts.filter(role="model").select_related("artifact", "job__revision__experiment")
    if (artifact := source.order_by("-pk").first()) is None:
        raise NotFound(_no_model(job), code="no_model")
    return _create_or_find(
        model,
        holds_job=True,
        artifact=artifact.artifact,
        what=what,
        metrics=job.results.metrics,
        lineage=lineage_of(artifact),
        source_job=job,
        code=_code_of(model.project, root),
        packages=package_sets.packages_of_training(job),
        created_by=root.created_by,
    ).version


def _no_model(job: Job) -> str:
    if job.revision is not None and job.revision.spec.model.info.trains_itself:
        return f"the script of job {job.pk} left no file {MODEL_FILE}"
    return f"job {job.pk} ({job.facts.noun}) produced no model"


def _source_job(root: Job, what: Registered) -> Job:
    """Return the job under a root that produced this output."""
    if what == "best":
        return outcomes.best_single(root)
    kinds = kinds_that(lambda facts: facts.registered_as == what)
    job = root.children.filter(kind__in=kinds).order_by("-ordinal").first()
    if job is None:
        raise NotFound(f"job {root.pk} has no {kinds[0]} step", code="no_model")
    return job


def queue_validation(
    version: ModelVersion, *, by: User | None, without_code: bool = False, sample: str | None = None
) -> Job:
    """Queue the job that loads a version in a clean process and reads its signature.

    Args:
        version: the version.
        by: the acting user.
        without_code: whether the code that came with it is left out.
        sample: the digest of the file with the sender's rows; by default that of an earlier validation.
    """
    return submit.queue(
        versions.validation_payload(version, without_code=without_code, sample=sample),
        project=version.model.project,
        title=f"Validate {version}",
        priority=80,
        created_by=by,
        **submit.placement_like(version.source_job) | submit.devices_like(version.source_job),
    )


def mark_validated(
    version_id: int,
    *,
    signature: dict[str, Any] | None,
    class_labels: Sequence[str] = (),
    needs_code: bool = False,
    packages: PackageSet | None = None,
) -> None:
    """Mark a version as a candidate, with the signature and labels that its validation read.

    An invalid version becomes a candidate if its validation is retried, after a stop or a lost worker.

    Args:
        version_id: the version.
        signature: its model's signature.
        class_labels: its model's class labels.
        needs_code: whether it cannot be loaded without its code.
        packages: with which it was validated, if no training has had any before.
    """
    undecided = (ModelVersion.State.VALIDATING, ModelVersion.State.INVALID)
    labels = list(class_labels)
    if needs_code:
        # The release contains them, and user code ran in the process that reported them.
        version = ModelVersion.objects.filter(pk=version_id).first()
        labels = [] if version is None else labels_for(version, signature)
    with transaction.atomic():
        row = ModelVersion.objects.filter(pk=version_id, state__in=undecided)
        if packages is not None:
            row.filter(packages=None).update(packages=packages)
        changed = row.update(
            state=ModelVersion.State.CANDIDATE,
            error=None,
            signature=signature or {},
            class_labels=labels,
            needs_code=needs_code,
        )
        if changed:
            _record_outcome(version_id, "version.validate")


def labels_for(version: ModelVersion, signature: dict[str, Any] | None) -> list[str]:
    """Return the class labels in a version's data, if its only output has one value for each."""
    try:
        data = data_of(version)
    # They may have been deleted meanwhile.
    except BadSpec:
        return []
    profile = data.profile_json if data is not None else None
    labels = [str(label) for label in (profile or {}).get("class_labels", ())]
    outputs = Signature.model_validate(signature).outputs if signature else ()
    width = outputs[0].shape[0] if len(outputs) == 1 and len(outputs[0].shape) == 1 else 0
    # A binary model may return only the probability of its second class.
    return labels if width == len(labels) or (width == 1 and len(labels) == 2) else []


def mark_invalid(version_id: int, error: dict[str, Any]) -> None:
    """Mark a version as invalid, with its validation's error."""
    # The runner knows the upload only as a file in the store, which is named by its digest.
    digest = ModelVersion.objects.values_list("artifact_id", flat=True).get(pk=version_id)
    error = {**error, "message": str(error.get("message", "")).replace(digest, "the upload")}
    with transaction.atomic():
        changed = ModelVersion.objects.filter(pk=version_id, state=ModelVersion.State.VALIDATING).update(
            state=ModelVersion.State.INVALID, error=error
        )
        if changed:
            _record_outcome(version_id, "version.invalid", reason=str(error.get("message", ""))[:500])


def _record_outcome(version_id: int, action: str, **detail: str) -> None:
    version = ModelVersion.objects.select_related("model__project").get(pk=version_id)
    name = f"version:{version.model.name}/{version.number}"
    audit.record(action, name, by=None, project=version.model.project, **detail)
