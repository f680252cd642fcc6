"""Jobs on a machine whose GPUs others use too: the GPU that each gets, and for whom it waits."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.actions.runs import pipeline, schedule, workers
from jobs.actions.runs.submit import create_step
from jobs.kinds.train.payload import TrainPayload
from jobs.models import Attempt, Job
from jobs.queries.runs import pool_queues
from jobs.queries.search import waiting
from jobs.spec.checks.gpu_memory import MemoryNeed, describe_held, lacks_memory
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid

GB = 10**9
GIB = 2**30
TWO = dt.datetime(2026, 3, 1, 14, 2, tzinfo=dt.UTC)
LARGE = {"template": "mlp", "kind": "template", "args": {"units": 4096, "layers": 20}}


def gpu(number: int, held: int = 0, total: int = 24, **more: Any) -> dict[str, Any]:
    """Return a GPU on which a stranger holds some GB."""
    process = {"pid": 4711, "user": "eve", "program": "python", "same_user": False, "since": TWO.timestamp()}
    of_others = {"others": [{**process, "memory_bytes": held * GB}], "others_bytes": held * GB}
    return {
        "name": f"gpu:{number}",
        "kind": "NVIDIA RTX 4090",
        "memory_bytes": total * GB,
        **(of_others if held else {"others": []}),
        **more,
    }


class Box(PretendWorker):
    """A worker with GPUs that others use too."""

    def __init__(self, *devices: dict[str, Any], slots: int | None = None, **fields: Any) -> None:
        super().__init__(slots=slots or len(devices), gpus=len(devices), **fields)
        self.beat(*devices)

    def beat(self, *devices: dict[str, Any]) -> None:
        """Send a heartbeat."""
        assert workers.heartbeat(self.row.pk, devices=[*devices], info={})


def waits(job: Job) -> str:
    schedule.place_jobs()
    job.refresh_from_db()
    return job.why_waiting


def mesh(size: int, **fields: Any) -> dict[str, Any]:
    return {
        "mesh": {"devices": "gpu", "shape": [size], "axis_names": ["data"], **fields},
        "resources": {"slots": size},
    }


def attempts(job: Job) -> int:
    return Attempt.objects.filter(job=job).count()


def test_a_job_waits_for_a_stranger_and_says_for_whom(installation: Yard) -> None:
    box = Box(gpu(1, held=21))
    job = installation.submit(model=LARGE)
    sentence = waits(job)
    assert "GPU 1: 21 of 24 GB held by another user's python since 2026-03-01 14:02 UTC" in sentence
    assert "(user eve, process 4711)" in sentence
    assert attempts(job) == 0
    box.beat(gpu(1))
    assert waits(job) == ""
    assert attempts(job) == 1


def test_another_free_gpu_of_the_box_is_used_instead_and_no_more_than_there_are(installation: Yard) -> None:
    box = Box(gpu(0, held=21), gpu(1), gpu(2))
    first, second, third = (installation.submit(model=LARGE) for _ in range(3))
    sentence = waits(third)
    assert [attempts(job) for job in (first, second, third)] == [1, 1, 0]
    assert sentence.startswith(
        "It needs 1 of the 3 slots of pool default; 0 free now. GPU 0: 21 of 24 GB held"
    )
    # The report has the attempts now, and does not count them twice.
    held = list(Attempt.objects.order_by("pk").values_list("pk", flat=True))
    box.claim_all()
    box.beat(gpu(0, held=21), gpu(1, attempts=held[:1]), gpu(2, attempts=held[1:]))
    assert "0 free now" in waits(third)
    box.beat(gpu(0), gpu(1, attempts=held[:1]), gpu(2, attempts=held[1:]))
    assert waits(third) == ""


def test_an_attempt_that_has_ended_holds_no_gpu_although_the_last_report_has_it(installation: Yard) -> None:
    Box(gpu(0, held=21), gpu(1, attempts=[12345], runs_bytes=20 * GB))
    assert waits(installation.submit(model=LARGE)) == ""


def test_a_small_model_fits_beside_a_stranger_and_one_of_unknown_size_does_not(installation: Yard) -> None:
    Box(gpu(0, held=15))
    small, unknown = installation.submit(), installation.submit()
    assert small.payload.device_bytes is not None
    unknown.payload_json.pop("device_bytes")
    unknown.save(update_fields=["payload_json"])
    Job.objects.filter(pk=small.pk).update(priority=10)
    assert "GPU 0: 15 of 24 GB" in waits(unknown)
    small.refresh_from_db()
    assert attempts(small) == 1, "the other one waits for the stranger and blocks no one"


def test_a_job_for_more_gpus_than_are_open_does_not_keep_smaller_ones_away(installation: Yard) -> None:
    Box(gpu(0, held=21), gpu(1))
    large, small = installation.submit(**mesh(2, preallocate=True)), installation.submit(model=LARGE)
    assert waits(large).startswith("It waits for 2 GPUs with enough free memory. GPU 0: 21 of 24 GB held")
    assert attempts(small) == 1


def test_a_job_that_would_fit_without_the_stranger_is_not_starved_by_smaller_ones(installation: Yard) -> None:
    box = Box(gpu(0, held=21), gpu(1), gpu(2))
    running = installation.submit(model=LARGE)
    schedule.place_jobs()
    (attempt,) = box.claim_all()
    box.beat(gpu(0, held=21), gpu(1, attempts=[attempt.pk]), gpu(2))
    pair, single = installation.submit(**mesh(2, preallocate=True)), installation.submit(model=LARGE)
    assert "1 free now" in waits(pair)
    assert waits(single) == f"Job {pair.pk} is ahead of it and waits for 2 slots."
    box.run(attempt)
    assert waits(pair) == ""
    assert attempts(running) == attempts(pair) == 1


def test_a_job_that_uses_no_gpu_runs_beside_any_stranger(installation: Yard) -> None:
    Box(gpu(0, held=24))
    cpu = {"devices": "cpu", "shape": [2], "axis_names": ["data"], "simulate": 2}
    assert waits(installation.submit(mesh=cpu)) == ""


def test_a_gpu_that_is_asked_for_by_name_is_waited_for(installation: Yard) -> None:
    box = Box(gpu(0), gpu(1, held=21))
    named = installation.submit(
        mesh={
            "devices": ["gpu:1"],
            "shape": [1],
            "axis_names": ["data"],
            "memory_fraction": 0.5,
            "preallocate": True,
        }
    )
    assert "GPU 1: 21 of 24 GB" in waits(named)
    box.beat(gpu(0), gpu(1, held=11))
    assert waits(named) == ""


def test_where_several_runs_share_a_gpu_one_waits_for_the_memory_of_another(installation: Yard) -> None:
    box = Box(gpu(0), slots=2)
    schedule_first = installation.submit(model=LARGE)
    assert waits(schedule_first) == ""
    (attempt,) = box.claim_all()
    box.beat(gpu(0, attempts=[attempt.pk], runs_bytes=20 * GB))
    second = installation.submit(model=LARGE)
    assert waits(second).endswith("0 free now. GPU 0: 20 GB held by runs of this worker.")
    box.beat(gpu(0, attempts=[attempt.pk], runs_bytes=2 * GB))
    assert waits(second) == ""


def test_the_trials_of_a_search_that_runs_wait_for_the_stranger_too(installation: Yard) -> None:
    search = installation.submit(search=SEARCH, model={**LARGE, "args": {"layers": 20}})
    Box(gpu(0, held=23))
    pipeline.advance_all()
    suggest_from_grid(search)
    assert "GPU 0: 23 of 24 GB" in waits(search)
    Job.objects.filter(pk=search.pk).update(state="running")
    reasons = set(waiting.waiting_reasons(Job.objects.get(pk=search.pk)).values())
    assert len(reasons) == 1
    assert "GPU 0: 23 of 24 GB" in reasons.pop()


def test_the_steps_of_an_experiment_need_as_much_as_its_largest_model(installation: Yard) -> None:
    root = installation.submit(search=SEARCH)
    assert root.payload.device_bytes
    step = create_step(root, TrainPayload(trial=1), 1, title="retrain")
    assert step.payload.device_bytes == root.payload.device_bytes


def test_a_worker_whose_operator_lets_runs_allocate_all_gives_only_free_gpus(installation: Yard) -> None:
    box = Box(gpu(0, held=8))
    assert workers.heartbeat(box.row.pk, devices=[gpu(0, held=8)], info={"gpu_share": 0.75})
    assert "GPU 0: 8 of 24 GB" in waits(installation.submit())
    assert workers.heartbeat(box.row.pk, devices=[gpu(0, held=5)], info={"gpu_share": 0.75})
    assert waits(Job.objects.get()) == ""


def test_a_slot_whose_gpu_others_hold_is_not_free_for_those_who_start_workers(installation: Yard) -> None:
    Box(gpu(0, held=21), gpu(1), gpu(2, held=21, attempts=[7]), gpu(3, held=2))
    (pool,) = pool_queues.pool_queues("default")
    assert (pool.slots, pool.free) == (4, 3)


@pytest.mark.parametrize(
    ("need", "total", "bytes_"),
    [
        (MemoryNeed(), 24 * GB, 12 * GB),
        (MemoryNeed(estimate=2 * GB), 24 * GB, 3 * GB + GIB),
        (MemoryNeed(fraction=0.25), 24 * GB, 6 * GB),
        (MemoryNeed(estimate=8 * GB, fraction=0.25), 24 * GB, 6 * GB),
        (MemoryNeed(estimate=2 * GB, preallocates=True), 24 * GB, 18 * GB),
        (MemoryNeed(fraction=0.5, preallocates=True), 24 * GB, 12 * GB),
        (MemoryNeed(estimate=100 * GB), 24 * GB, int(0.9 * 24 * GB)),
    ],
)
def test_the_memory_that_must_be_free_is_known_or_follows_a_rule(
    need: MemoryNeed, total: int, bytes_: int
) -> None:
    assert need.bytes_of(total) == bytes_


def test_a_gpu_that_nobody_else_uses_is_given_to_any_job() -> None:
    """A model that is too large fails with `out_of_memory`, and does not wait for ever."""
    assert not lacks_memory(gpu(0), MemoryNeed(estimate=10**15))
    assert not lacks_memory({"name": "gpu:0", "memory_used": 20 * GB, "memory_bytes": 24 * GB}, MemoryNeed())


@given(held=st.integers(0, 30 * GB), total=st.integers(1, 200 * GB), estimate=st.integers(0, 10**12))
def test_more_memory_of_others_never_makes_room(held: int, total: int, estimate: int) -> None:
    need = MemoryNeed(estimate)
    device = {"name": "gpu:0", "memory_bytes": total}
    if lacks_memory({**device, "others_bytes": held}, need):
        assert lacks_memory({**device, "others_bytes": held + GB}, need)


def test_the_sentence_names_the_largest_process_and_counts_the_others() -> None:
    device = gpu(3, held=9)
    device["others"] += [{**device["others"][0], "pid": 5, "memory_bytes": 1}]
    today = describe_held([device], TWO + dt.timedelta(hours=1))
    assert today == (
        "GPU 3: 9 of 24 GB held by another user's python since 14:02 UTC (user eve, process 4711) and 1 more "
        "process"
    )
    hidden = {**gpu(0, held=9), "others": []}
    assert describe_held([hidden], TWO) == "GPU 0: 9 of 24 GB held by processes that this worker cannot see"
    mine = {**device["others"][0], "same_user": True}
    assert "another python of this worker's user since" in describe_held([{**device, "others": [mine]}], TWO)
