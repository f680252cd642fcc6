"""Has a runner build a model without values, and compile its training step for a mesh."""

from typing import Any

from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import base_model_of, dataset_of
from jobs.kinds.mesh_estimate.facts import MESH_ESTIMATE
from jobs.kinds.mesh_estimate.payload import MeshEstimatePayload, MeshEstimateResult, MeshEstimateTask
from jobs.models import Attempt


class MeshEstimateActions(KindActions[MeshEstimatePayload, MeshEstimateResult]):
    """An estimate reads a data set version and a model, and changes no row."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> MeshEstimateTask:
        """Return the model, the mesh and the data."""
        payload = attempt.job.payload_as(MeshEstimatePayload)
        # The job has no revision, from whose spec others have it.
        return MeshEstimateTask(
            **{**common, "base_model": base_model_of(payload.spec)},
            spec=payload.spec,
            output=payload.output,
            compiles=payload.compiles,
            device_bytes=payload.device_bytes,
            dataset=dataset_of(attempt.job),
        )


register_actions(MESH_ESTIMATE.name, MeshEstimateActions())
