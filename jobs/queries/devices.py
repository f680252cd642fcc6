"""Reads the devices that a job needs, and the workers that have them."""

from jobs.contracts.device_checks import describe_missing, lacks
from jobs.contracts.mesh import MeshSpec
from jobs.models import Job, Worker


def mesh_of(job: Job) -> MeshSpec | None:
    """Return the mesh of the job's spec.

    Raises:
        ValueError: the spec no longer parses.
    """
    # Most specs have none, and the scheduler asks for every waiting job, twice a second.
    if job.revision is None or job.revision.spec_json.get("mesh") is None:
        return None
    return job.revision.spec.mesh


def live_workers(job: Job) -> list[Worker]:
    """Return the workers that accept work and have the devices for a job."""
    mesh, live = mesh_of(job), Worker.objects.live(job.pool)
    return [worker for worker in live if not lacks(mesh, job.slots, worker.device_names)]


def why_none_fits(job: Job, live: list[Worker]) -> str:
    """Return why none of the workers of a job's pool can run it, as a sentence."""
    mesh = mesh_of(job)
    if mesh is None or not live:
        return f"No worker runs in pool {job.pool}."
    reason = describe_missing(mesh, job.slots, job.pool, [worker.device_names for worker in live])
    return f"{reason}; the Workers page shows why a worker uses no GPU."
