"""Jobs that ask for GPUs by model, memory and number run only on workers that have them."""

from typing import Any

from jobs.actions.runs import attempt_end, schedule, workers
from jobs.models import PoolSettings, Worker
from jobs.queries.experiments import plan
from jobs.states import Desired, Outcome
from tests.experiments.test_plan_gpus import H200, T4
from tests.jobs.runs.test_preemption import desired, running_job
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


def test_a_job_waits_while_other_jobs_use_the_gpus_that_it_asks_for(installation: Yard) -> None:
    first, second = (installation.submit(**asking({"name": "H200"})) for _ in range(2))
    box = worker("box", H200, T4)
    waits(first)
    (attempt,) = box.claim_all()
    workers.heartbeat(box.row.pk, devices=[{**H200, "attempts": [attempt.pk]}, T4], info={})
    assert waits(second) == (
        "It needs 1 of the 2 slots of pool default; 0 free now. Other jobs use the GPUs that it asks for: "
        "gpu:0 of box."
    )
    assert box.claim_all() == []
    attempt_end.finish(attempt.pk, Outcome.COMPLETED)
    workers.heartbeat(box.row.pk, devices=[H200, T4], info={})
    waits(second)
    assert [attempt.job_id for attempt in box.claim_all()] == [second.pk]


def test_two_jobs_of_one_pass_do_not_share_the_only_gpu_of_their_kind(installation: Yard) -> None:
    for _ in range(2):
        installation.submit(**asking({"name": "H200"}))
    box = worker("box", H200, T4)
    schedule.place_jobs()
    assert len(box.claim_all()) == 1


def test_a_job_that_takes_any_gpu_in_the_same_pass_may_get_the_one_that_is_asked_for(
    installation: Yard,
) -> None:
    plain, wanted = installation.submit(), installation.submit(**asking({"name": "H200"}))
    box = worker("box", H200, T4)
    waits(wanted)
    (attempt,) = box.claim_all()
    assert attempt.job_id == plain.pk
    workers.heartbeat(box.row.pk, devices=[H200, {**T4, "attempts": [attempt.pk]}], info={})
    waits(wanted)
    assert [attempt.job_id for attempt in box.claim_all()] == [wanted.pk]


def test_only_a_run_on_the_gpu_that_is_asked_for_is_preempted(installation: Yard) -> None:
    PoolSettings.objects.create(pool="default", preemption=True)
    box = worker("box", H200, T4)
    (on_h200_job, on_h200), (_, on_t4) = (running_job(installation, box) for _ in range(2))
    workers.heartbeat(
        box.row.pk, devices=[{**H200, "attempts": [on_h200.pk]}, {**T4, "attempts": [on_t4.pk]}], info={}
    )
    urgent = installation.submit(resources={"priority": 90, "slots": 1, "gpu": {"name": "H200"}})
    assert waits(urgent).endswith(
        f"Job {on_h200_job.pk} has a lower priority: it writes a checkpoint and makes room."
    )
    assert desired(box, on_h200) is Desired.PAUSED
    assert desired(box, on_t4) is Desired.RUNNING
