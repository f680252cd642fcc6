"""Reads the devices that a job needs, and the workers that can run it."""

from collections.abc import Iterable

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform

from jobs import program
from jobs.models import Job, Worker
from jobs.queries.code import installation, sandboxes
from jobs.queries.code.sandboxes import Minimum, jobs_with_models, needs_sandbox
from jobs.spec.checks.devices import describe_missing, lacks
from jobs.spec.sections.mesh import MeshSpec


def jobs_with_needs(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Return the jobs with the spec parts on which the choice of a worker depends. No whole spec is read."""
    return jobs_with_models(jobs.annotate(mesh_json=KeyTransform("mesh", "revision__spec_json")))


def mesh_of(job: Job) -> MeshSpec | None:
    """Return the mesh in the job's spec.

    Raises:
        ValueError: it no longer parses.
    """
    if "mesh_json" in vars(job):
        stored = vars(job)["mesh_json"]
    else:
        stored = job.revision.spec_json.get("mesh") if job.revision is not None else None
    # Only the mesh is parsed, since the scheduler asks for every waiting job, twice a second.
    return None if stored is None else MeshSpec.model_validate(stored)


def live_workers(job: Job) -> list[Worker]:
    """Return the workers that accept work and can run a job, busy or not."""
    return fitting_workers(job, Worker.objects.live(job.pool))


def fitting_workers(
    job: Job, workers: Iterable[Worker], minimum: Minimum = installation.sandbox_minimum
) -> list[Worker]:
    """Return the workers in a job's pool that can run it, busy or not.

    They have the slots, the devices and, for user code, the sandbox for it.
    """
    large = [worker for worker in _workers_with_devices(job, workers) if worker.slots >= job.slots]
    return list(sandboxes.workers_offering(job, large, minimum))


def why_none_fits(job: Job, live: list[Worker]) -> str:
    """Return a sentence that states why no worker in a job's pool can run it."""
    if not live:
        return describe_missing_workers(job.pool)
    mesh, equipped = mesh_of(job), _workers_with_devices(job, live)
    if mesh is not None and not equipped:
        reason = describe_missing(mesh, job.slots, job.pool, [worker.device_names for worker in live])
        return f"{reason}; the Workers page shows why a worker uses no GPU."
    if (large := [worker for worker in equipped if worker.slots >= job.slots]) and needs_sandbox(job):
        return sandboxes.why_none_offers(large)
    largest = max((worker.slots for worker in equipped), default=0)
    pool = f"pool {job.pool}{' with its GPUs' if len(equipped) < len(live) else ''}"
    return f"It needs {job.slots} slots on one worker; the largest worker of {pool} has {largest}."


def describe_missing_workers(pool: str) -> str:
    """Describe why jobs wait in a pool without workers. The command ends the text, to be copied."""
    return f"No worker runs in pool {pool}; start one with: {program.command_line(f'worker --pool {pool}')}"


def _workers_with_devices(job: Job, workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers with the devices for a job. They may have too few slots."""
    mesh = mesh_of(job)
    return [worker for worker in workers if not lacks(mesh, job.slots, worker.device_names)]
