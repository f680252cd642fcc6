"""Implements validations: loads every new version of a model in a clean process."""

from typing import Any

from jobs.actions import own_code, registration, submit
from jobs.actions.kind_actions import JobError, KindActions, register
from jobs.actions.tasks import origin_of
from jobs.contracts.experiment import ExperimentSpec
from jobs.kinds.register.facts import REGISTER
from jobs.kinds.register.payload import RegisterPayload, RegisterResult, RegisterTask
from jobs.models import Attempt, Job, ModelVersion
from jobs.queries.versions import is_foreign
from jobs.store import store


class RegisterActions(KindActions[RegisterPayload, RegisterResult]):
    """The validation makes a version a candidate, or invalid."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> RegisterTask:
        """Return the task: the version's file, and the data on which it was trained."""
        versions = ModelVersion.objects.select_related("source_job__revision", "code__project")
        version = versions.get(pk=_version_of(attempt.job))
        _, dataset = origin_of(version)
        # Also for a step of a job: the version names the code, whatever the job runs.
        code = own_code.of_row(version.code) if version.code is not None else None
        return RegisterTask(
            **{**common, "code": code},
            model=str(store().path(version.artifact_id)),
            digest=version.artifact_id,
            # Code of users wrote the file of a job that ran it.
            foreign=is_foreign(version) or code is not None,
            dataset=dataset,
        )

    def on_done(self, job: Job, result: RegisterResult) -> None:
        """Store the signature and the labels in the version."""
        registration.mark_validated(_version_of(job), result)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Mark the version as invalid."""
        registration.mark_invalid(_version_of(job), error)

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Register the models of the root as versions, and return the jobs that validate them."""
        if spec.after.register_ is None:
            return []
        made = list(root.children.filter(kind=REGISTER.name).order_by("ordinal"))
        # Every pass asks for the jobs. Without this check, each would look for the models again.
        if len(made) >= len(set(spec.after.register_.what)):
            return made
        return [
            submit.child(
                root,
                REGISTER,
                ordinal,
                title=f"Register {version.model.name} v{version.number}",
                payload=RegisterPayload(version=version.pk),
            )
            for ordinal, version in enumerate(registration.register_outputs(root), start=1)
        ]


def _version_of(job: Job) -> int:
    return job.payload_as(RegisterPayload).version


register(REGISTER.name, RegisterActions())
