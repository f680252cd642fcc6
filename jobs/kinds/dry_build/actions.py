"""Has a runner build the model in own code and report the declared hyperparameters."""

from typing import Any

from jobs.actions.code import dry_builds, own_code
from jobs.actions.runs.kind_actions import JobError, KindActions, register_actions
from jobs.actions.runs.tasks import dataset_of
from jobs.errors import Conflict
from jobs.kinds.dry_build.facts import DRY_BUILD
from jobs.kinds.dry_build.payload import DryBuildPayload, DryBuildResult, DryBuildTask
from jobs.models import Attempt, Job


class DryBuildActions(KindActions[DryBuildPayload, DryBuildResult]):
    """A dry build reads a code version; the searches that wait for it continue with its result."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> DryBuildTask:
        """Return the model, and the data if their shape is not known."""
        job, payload = attempt.job, attempt.job.payload_as(DryBuildPayload)
        if job.project is None:
            raise Conflict(f"job {job.pk} has no project whose code it could run")
        # A job that a form has requested has no revision with the model.
        code = own_code.code_of_version(job.project, payload.model.digest)
        return DryBuildTask(
            **{**common, "code": code},
            model=payload.model,
            shape=payload.shape,
            data=payload.data,
            texts=payload.texts,
            dataset=None if payload.shape is not None else dataset_of(job),
        )

    def on_done(self, job: Job, result: DryBuildResult) -> None:
        """Wake the searches that wait for the space."""
        del result
        dry_builds.wake_searches(job)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Wake the searches that wait for the space: they fail."""
        del error
        dry_builds.wake_searches(job)


register_actions(DRY_BUILD.name, DryBuildActions())
