"""Implements dry builds: a runner builds the model of own code and reports what it declares."""

from typing import Any

from jobs.actions.kind_actions import KindActions, register
from jobs.actions.tasks import dataset_of
from jobs.kinds.dry_build.facts import DRY_BUILD
from jobs.kinds.dry_build.payload import DryBuildPayload, DryBuildResult, DryBuildTask
from jobs.models import Attempt


class DryBuildActions(KindActions[DryBuildPayload, DryBuildResult]):
    """A dry build reads a version of code, and changes no row but its own."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> DryBuildTask:
        """Return the model, and the data if their shape is not known."""
        payload = attempt.job.payload_as(DryBuildPayload)
        return DryBuildTask(
            **common,
            model=payload.model,
            shape=payload.shape,
            data=payload.data,
            texts=payload.texts,
            dataset=None if payload.shape is not None else dataset_of(attempt.job),
        )


register(DRY_BUILD.name, DryBuildActions())
