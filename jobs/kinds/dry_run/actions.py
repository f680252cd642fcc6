"""Has a runner train some steps with two precisions."""

from typing import Any

from jobs.actions.code import own_code
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import base_model_of, dataset_of
from jobs.errors import Conflict
from jobs.kinds.dry_run.facts import DRY_RUN
from jobs.kinds.dry_run.payload import DryRunPayload, DryRunResult, DryRunTask
from jobs.models import Attempt


class DryRunActions(KindActions[DryRunPayload, DryRunResult]):
    """A dry run reads a dataset version, and changes no row."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> DryRunTask:
        """Return the experiment and its data, with its code or the version that it starts from."""
        job, payload = attempt.job, attempt.job.payload_as(DryRunPayload)
        if job.project is None:
            raise Conflict(f"job {job.pk} has no project whose data it could read")
        # The job has no revision that would name them.
        spec, digest = payload.spec, payload.code_digest()
        code = None if digest is None else own_code.code_of_version(job.project, digest)
        return DryRunTask(
            **{**common, "code": code, "base_model": base_model_of(spec)},
            spec=spec,
            steps=payload.steps,
            dataset=dataset_of(job),
        )


register_actions(DRY_RUN.name, DryRunActions())
