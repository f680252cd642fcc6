"""What is done for validations: every new version of a model is loaded in a clean process."""

from typing import Any

from jobs.actions import registration, submit
from jobs.actions.kind_actions import JobError, KindActions, register
from jobs.actions.tasks import origin_of
from jobs.contracts.experiment import ExperimentSpec
from jobs.kinds.register.facts import REGISTER
from jobs.kinds.register.payload import RegisterPayload, RegisterResult, RegisterTask
from jobs.models import Attempt, Job, ModelVersion
from jobs.store import store


class RegisterActions(KindActions[RegisterPayload, RegisterResult]):
    """A version becomes a candidate, or invalid, by its validation."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> RegisterTask:
        """Return the version's file, and the data it was made with."""
        versions = ModelVersion.objects.select_related("source_job__revision")
        version = versions.get(pk=_version_of(attempt.job))
        _, dataset = origin_of(version)
        return RegisterTask(
            **common,
            model=str(store().path(version.artifact_id)),
            digest=version.artifact_id,
            foreign=version.source_job_id is None,
            dataset=dataset,
        )

    def on_done(self, job: Job, result: RegisterResult) -> None:
        """Give the version its signature and labels."""
        registration.validated(_version_of(job), result)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Mark the version as invalid."""
        registration.invalid(_version_of(job), error)

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Make versions of what came out, and the jobs that validate them."""
        if spec.after.register_ is None:
            return []
        made = list(root.children.filter(kind=REGISTER.name).order_by("ordinal"))
        if len(made) == len(spec.after.register_.what):
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
