"""Validates every new model version by loading it in a clean process."""

from typing import Any

from jobs.actions.code import own_code
from jobs.actions.registry import registration
from jobs.actions.runs import submit
from jobs.actions.runs.kind_actions import JobError, KindActions, register_actions
from jobs.actions.runs.tasks import origin_of
from jobs.kinds.register.facts import REGISTER
from jobs.kinds.register.payload import RegisterPayload, RegisterResult, RegisterTask
from jobs.models import Attempt, Job, ModelVersion
from jobs.queries.code import package_sets
from jobs.queries.registry import versions
from jobs.spec.experiment import ExperimentSpec
from jobs.store import store

WITHOUT_CODE = 1000
"""A step's validation without code has the step's number plus this one."""


class RegisterActions(KindActions[RegisterPayload, RegisterResult]):
    """The validation makes a version a candidate, or invalid."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> RegisterTask:
        """Return the task: the version's file, and the data on which it was trained."""
        rows = ModelVersion.objects.select_related("source_job__revision", "code__project", "packages")
        version = rows.get(pk=_version_of(attempt.job))
        spec, dataset = origin_of(version)
        # Also for a step of a job: the version names the code, whatever the job runs.
        payload = attempt.job.payload_as(RegisterPayload)
        row = None if payload.without_code else version.code
        code = None if row is None else own_code.code_of_row(row, version.packages)
        return RegisterTask(
            **{**common, "code": code},
            model=str(store().path(version.artifact_id)),
            digest=version.artifact_id,
            # If a job ran user code, that code wrote the job's file.
            foreign=versions.is_foreign(version) or version.code is not None,
            dataset=dataset,
            class_labels=_reported_classes(version),
            sample=None if payload.sample is None else str(store().path(payload.sample)),
            mesh=None if spec is None else spec.mesh,
        )

    def on_done(self, job: Job, result: RegisterResult) -> None:
        """Store the signature and the labels in the version.

        A file that needs no code is used without a sandbox afterwards. User code may have run in the process
        that reports this, so only the answer from a process without that code counts.
        """
        version = ModelVersion.objects.select_related("code").filter(pk=_version_of(job)).first()
        is_alone = job.payload_as(RegisterPayload).without_code
        if version is None or version.code is None or result.needs_code or is_alone:
            registration.mark_validated(
                _version_of(job),
                signature=result.signature,
                class_labels=result.class_labels or (),
                needs_code=result.needs_code,
                packages=package_sets.packages_of_job(job),
            )
        elif version.state != ModelVersion.State.CANDIDATE:
            _validate_without_code(job, version)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Mark the version as invalid."""
        registration.mark_invalid(_version_of(job), error)

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Register the root's models as versions, and return the jobs that validate them."""
        if spec.after.register_ is None:
            return []
        validations = list(root.children.filter(kind=REGISTER.name).order_by("ordinal"))
        # Every pass asks for the jobs. Without this check, each would look for the models again.
        if len(validations) >= len(set(spec.after.register_.what)):
            return validations
        return [
            submit.create_step(
                root,
                versions.validation_payload(version),
                ordinal,
                title=f"Register {version.model.name} v{version.number}",
                slots=submit.devices_like(root).get("slots", 1),
            )
            for ordinal, version in enumerate(registration.register_outputs(root), start=1)
        ]


def _validate_without_code(job: Job, version: ModelVersion) -> None:
    """Queue another validation, under the same root if it has one."""
    if job.parent is None:
        registration.queue_validation(version, by=job.created_by, without_code=True)
        return
    submit.create_step(
        job.parent,
        versions.validation_payload(version, without_code=True),
        WITHOUT_CODE + job.ordinal,
        title=f"{job.title} without its code",
    )


def _reported_classes(version: ModelVersion) -> tuple[str, ...] | None:
    """Return the classes with which a job has trained a version; None if they are unknown.

    A report is not used if code of users ran in its job.
    """
    source = version.source_job
    if source is None or version.code is not None or versions.is_foreign(version):
        return None
    labels = source.results.to_json().get("class_labels")
    return tuple(map(str, labels)) if isinstance(labels, list) else None


def _version_of(job: Job) -> int:
    return job.payload_as(RegisterPayload).version


register_actions(REGISTER.name, RegisterActions())
