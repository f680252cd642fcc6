"""Jobs that ask for GPUs by model, memory and number run only on workers that have them."""

from typing import Any

from jobs.models import Worker
from jobs.queries.experiments import plan
from tests.experiments.test_plan_gpus import H200, T4
from tests.jobs.runs.test_schedule import gpu_mesh, waits
from tests.jobs.yard import PretendWorker, Yard


def asking(gpu: dict[str, Any], slots: int = 1) -> dict[str, Any]:
    return {"resources": {"slots": slots, "gpu": gpu}}


def worker(name: str, *devices: dict[str, Any], slots: int = 2) -> PretendWorker:
    pretended = PretendWorker(name=name, slots=slots)
    Worker.objects.filter(pk=pretended.row.pk).update(devices=list(devices))
    return pretended


def test_a_job_waits_for_a_worker_with_its_gpu_and_names_those_that_are_there(installation: Yard) -> None:
    wanted, plain = installation.submit(**asking({"name": "H200"})), installation.submit()
    small = worker("small", T4)
    sentence = 'No worker of pool default has a GPU "H200"; its GPUs are 1 × Tesla T4 (16 GB).'
    assert waits(wanted) == sentence
    assert [attempt.job_id for attempt in small.claim_all()] == [plain.pk], "it blocks no other job"
    (warning,) = plan.resource_warnings(wanted)
    assert warning.message.startswith(f"{sentence} The job will wait")
    large = worker("large", H200)
    waits(wanted)
    assert [attempt.job_id for attempt in large.claim_all()] == [wanted.pk]


def test_memory_and_number_decide_too(installation: Yard) -> None:
    of_memory = installation.submit(**asking({"memory_gb": 100}))
    double = installation.submit(**asking({"name": "T4", "count": 2}, slots=2))
    box = worker("box", T4, {**H200, "name": "gpu:2"}, slots=4)
    assert waits(double).startswith('No worker of pool default has 2 GPUs "T4" on one worker; its GPUs are ')
    assert [attempt.job_id for attempt in box.claim_all()] == [of_memory.pk]
    twice = worker("twice", T4, {**T4, "name": "gpu:3"})
    waits(double)
    assert [attempt.job_id for attempt in twice.claim_all()] == [double.pk]


def test_named_devices_of_a_mesh_must_be_those_that_are_asked_for(installation: Yard) -> None:
    mesh = {"devices": ["gpu:0", "gpu:1"], "shape": [2], "axis_names": ["data"]}
    job = installation.submit(mesh=mesh, **asking({"name": "H200"}, slots=2))
    box = worker("box", H200, T4)
    assert waits(job).startswith('No worker of pool default has 2 GPUs "H200" that gpu:0 and gpu:1 are')
    assert box.claim_all() == []


def test_a_mesh_of_gpus_takes_as_many_as_it_has(installation: Yard) -> None:
    body = gpu_mesh(2)
    job = installation.submit(**{**body, "resources": {"slots": 2, "gpu": {"name": "H200"}}})
    mixed = worker("mixed", H200, T4)
    assert waits(job).startswith('No worker of pool default has 2 GPUs "H200" on one worker; ')
    assert mixed.claim_all() == []


def test_a_worker_that_leaves_gpus_out_is_named(installation: Yard) -> None:
    job = installation.submit(**asking({"name": "K80"}))
    box = worker("box", T4)
    reason = "GPU 0 (Tesla K80, compute capability 3.7): JAX's CUDA 12 needs 5.2"
    Worker.objects.filter(pk=box.row.pk).update(info={"unsupported_gpus": [reason]})
    assert waits(job).endswith(f"its GPUs are 1 × Tesla T4 (16 GB); worker box: {reason}.")
