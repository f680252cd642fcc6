"""Reads the labels and devices that a job needs, and the workers that can run it."""

from collections.abc import Iterable, Mapping

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform

from jobs import program
from jobs.models import Job, Worker
from jobs.queries.code import installation, sandboxes
from jobs.queries.code.sandboxes import Minimum, jobs_with_models, needs_sandbox
from jobs.spec.checks.devices import describe_missing, lacks
from jobs.spec.checks.gpus import describe_missing_gpus, lacks_gpus
from jobs.spec.labels import has_labels, labels_text
from jobs.spec.sections.gpu import GpuWish, gpu_devices
from jobs.spec.sections.mesh import MeshSpec


def jobs_with_needs(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Return the jobs with the spec parts on which the choice of a worker depends. No whole spec is read."""
    resources = KeyTransform("resources", "revision__spec_json")
    annotated = jobs.annotate(
        mesh_json=KeyTransform("mesh", "revision__spec_json"), gpu_json=KeyTransform("gpu", resources)
    )
    return jobs_with_models(annotated)


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


def gpu_of(job: Job) -> GpuWish | None:
    """Return the GPUs that the job's spec asks for.

    Raises:
        ValueError: they no longer parse.
    """
    if "gpu_json" in vars(job):
        stored = vars(job)["gpu_json"]
    else:
        stored = job.revision.spec_json.get("resources", {}).get("gpu") if job.revision is not None else None
    return None if stored is None else GpuWish.model_validate(stored)


def live_workers(job: Job) -> list[Worker]:
    """Return the workers that accept work and can run a job, busy or not."""
    return fitting_workers(job, Worker.objects.live(job.pool))


def fitting_workers(
    job: Job, workers: Iterable[Worker], minimum: Minimum = installation.sandbox_minimum
) -> list[Worker]:
    """Return the workers in a job's pool that can run it, busy or not.

    They have the labels, the slots, the devices and, for user code, the sandbox for it.
    """
    able = [worker for worker in workers_with_labels(job, workers) if not worker.refusal]
    large = [worker for worker in _workers_with_devices(job, able) if worker.slots >= job.slots]
    return list(sandboxes.workers_offering(job, large, minimum))


def workers_with_labels(job: Job, workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers with the labels that a job asks for."""
    return [worker for worker in workers if has_labels(worker.labels, job.labels)]


def why_none_fits(job: Job, live: list[Worker]) -> str:
    """Return a sentence that states why no worker in a job's pool can run it."""
    if not live:
        return describe_missing_workers(job.pool, job.labels)
    labelled = workers_with_labels(job, live)
    if not labelled:
        start = _start_command(job.pool, job.labels)
        asked = labels_text(job.labels)
        return f"No worker of pool {job.pool} has the labels {asked}; start one with: {start}"
    able = [worker for worker in labelled if not worker.refusal]
    if not able:
        return _describe_refusals(job.pool, labelled)
    mesh, equipped = mesh_of(job), _workers_with_devices(job, able)
    if mesh is not None and all(lacks(mesh, job.slots, worker.device_names) for worker in able):
        reason = describe_missing(mesh, job.slots, job.pool, [worker.device_names for worker in able])
        return f"{reason}; {_why_no_gpu([*labelled])}"
    if not equipped:
        return _why_no_wanted_gpu(job, able)
    if (large := [worker for worker in equipped if worker.slots >= job.slots]) and needs_sandbox(job):
        return sandboxes.why_none_offers(large)
    largest = max((worker.slots for worker in equipped), default=0)
    suffix = " with its labels" if job.labels else ""
    pool = f"pool {job.pool}{suffix}{' with its GPUs' if len(equipped) < len(able) else ''}"
    return f"It needs {job.slots} slots on one worker; the largest worker of {pool} has {largest}."


def describe_missing_workers(pool: str, labels: Mapping[str, str] | None = None) -> str:
    """Describe why jobs wait in a pool without workers. The command ends the text, to be copied."""
    return f"No worker runs in pool {pool}; start one with: {_start_command(pool, labels or {})}"


def _start_command(pool: str, labels: Mapping[str, str]) -> str:
    options = "".join(f" --label {key}={value}" for key, value in sorted(labels.items()))
    return program.command_line(f"worker --pool {pool}{options}")


def _describe_refusals(pool: str, workers: list[Worker]) -> str:
    """Describe why the workers take no work: their machines have GPUs that they cannot use."""
    others = f" (and {len(workers) - 1} more)" if len(workers) > 1 else ""
    return f"Worker {workers[0].name} of pool {pool} takes no work{others}: {workers[0].refusal}"


def _why_no_gpu(workers: list[Worker]) -> str:
    reasons = {
        worker.name: worker.refusal or worker.info.get("no_gpu") or _unsupported(worker) for worker in workers
    }
    first = next(((name, reason) for name, reason in reasons.items() if reason), None)
    if first is None:
        return "the Workers page shows why a worker uses no GPU."
    return f"worker {first[0]}: {first[1]}"


def _why_no_wanted_gpu(job: Job, workers: list[Worker]) -> str:
    """Return why no worker has the GPUs that a job asks for."""
    mesh, gpu = mesh_of(job), gpu_of(job) or GpuWish()
    gpus = [gpu_devices(worker.devices) for worker in workers]
    reason = describe_missing_gpus(gpu, mesh, job.slots, job.pool, gpus)
    known = [worker for worker in workers if worker.info.get("no_gpu") or _unsupported(worker)]
    return f"{reason}; {_why_no_gpu(known)}" if known else f"{reason}."


def _unsupported(worker: Worker) -> str:
    """Return why JAX cannot use the GPUs that a worker leaves out; empty if it leaves none out."""
    return "".join(f"{reason}. " for reason in worker.info.get("unsupported_gpus", ())).rstrip()


def _workers_with_devices(job: Job, workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers with the devices for a job. They may have too few slots."""
    mesh, gpu = mesh_of(job), gpu_of(job)
    return [
        worker
        for worker in workers
        if not lacks(mesh, job.slots, worker.device_names)
        and not lacks_gpus(gpu, mesh, job.slots, gpu_devices(worker.devices))
    ]
