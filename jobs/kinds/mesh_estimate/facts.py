from jobs.kinds.base import Facts
from jobs.kinds.mesh_estimate.payload import MeshEstimatePayload, MeshEstimateResult, MeshEstimateTask

MESH_ESTIMATE = Facts(
    name="mesh_estimate",
    title="Estimate for a mesh",
    payload=MeshEstimatePayload,
    result=MeshEstimateResult,
    task=MeshEstimateTask,
    engine="workers.engine.tasks.mesh_estimate.run",
    listed=False,
    details="jobs.queries.experiments.mesh_estimates.estimate_of_job",
    details_template="runs/details/mesh_estimate.html",
)
