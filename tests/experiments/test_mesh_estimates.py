"""Estimates for meshes over REST and on pages: requested once, seen by members, used by plans."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.actions.runs import attempt_end, schedule
from jobs.actions.runs.tasks import task_for
from jobs.kinds.mesh_estimate.payload import MeshEstimatePayload, MeshEstimateResult, MeshEstimateTask
from jobs.messages.task import DatasetFile
from jobs.models import Attempt, Job, Project
from jobs.queries.experiments import mesh_estimates, plan
from jobs.spec.plan.compiled_step import Collective, CompiledStep, LargestBatch
from jobs.spec.plan.model_state import BuiltVariable, ModelState
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker
from tests.present import present
from tests.world import World
from workers.runner.environment import Environment

PLACE = "/api/v1/experiments/mesh-estimates"
PART = "/p/yard/mesh-estimate"
MESH = {"shape": [2, 2], "axis_names": ["data", "model"], "devices": "gpu"}
GIB = 1 << 30
STATE = ModelState(
    variables=(
        BuiltVariable(path="net/dense/kernel", shape=(64, 32), slots=2),
        BuiltVariable(path="net/dense/bias", shape=(32,), dtype="bfloat16", slots=1),
        BuiltVariable(path="net/norm/mean", shape=(64,), trainable=False, slots=0),
    ),
    optimizer_bytes=12,
    row_bytes=100,
)
STEP = CompiledStep(
    devices=4, batch_size=128, weights=10_000, gradients=9000, optimizer=20_000, batch=500,
    temporaries=40_000, flops=3.5e6, collectives=(Collective(kind="all-reduce", count=2, bytes=9008),),
    seconds=4.2,
)  # fmt: skip
LARGEST = LargestBatch(rows=4096, device_bytes=GIB, limited_by="memory", confirmed=True)
RESULT = MeshEstimateResult(
    state=STATE,
    step=STEP,
    largest=LARGEST,
    notes=("the model was built with values",),
    versions={"jax": "0.12"},
)
HYPERMODEL = {"kind": "hypermodel", "name": "HyperXception", "args": {}}


@pytest.fixture
def meshed(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "mesh": MESH}


def ask(client: Client, spec: Any, **more: Any) -> Any:
    body = {"project": "yard", "spec": spec, **more}
    return client.post(PLACE, body, content_type="application/json")


def claimed() -> tuple[PretendWorker, Attempt]:
    """Let a worker claim the estimate, beside the jobs that read the bundled data."""
    worker = PretendWorker(slots=20)
    schedule.place_jobs()
    (attempt,) = (attempt for attempt in worker.claim_all() if attempt.job.kind == "mesh_estimate")
    return worker, attempt


def finish(result: MeshEstimateResult = RESULT) -> None:
    _, attempt = claimed()
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result=result.model_dump(mode="json"))


def jobs() -> list[Job]:
    return list(Job.objects.filter(kind="mesh_estimate").order_by("pk"))


def pointers(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.content
    return [error["pointer"] for error in answer.json()["errors"]]


def test_an_estimate_is_made_once_and_then_read(world: World, meshed: dict[str, Any]) -> None:
    client = world.client(world.owner)
    first = ask(client, meshed, device_gib=1)
    assert first.status_code == 202 and first.json()["state"] == "queued"
    assert (first.json()["step"], first.json()["variables"], first.json()["compiles"]) == (None, None, True)
    job = first.json()["job"]
    assert ask(client, meshed, device_gib=1).json()["job"] == job and len(jobs()) == 1
    finish()
    answer = ask(client, meshed, device_gib=1).json()
    assert answer == client.get(f"{PLACE}/{job}").json()
    assert (answer["state"], answer["progress"]) == ("completed", None)
    assert answer["step"]["compiled_for"] == "cpu" and answer["step"]["temporaries_factor"] == 1.25
    assert answer["step"]["collectives"] == [{"kind": "all-reduce", "count": 2, "bytes": 9008}]
    assert answer["largest"]["rows"] == 4096
    assert answer["variables"]["variables"][1] == {
        "path": "net/dense/bias", "shape": [32], "dtype": "bfloat16", "trainable": True, "slots": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"fit": {"batch_size": 64}},
        {"fit": {"optimizer": "sgd"}},
        {"model": {"kind": "template", "template": "mlp", "args": {"units": 16}}},
        {"precision": {"policy": "mixed_bfloat16"}},
        {"mesh": {**MESH, "shape": [4, 1]}},
        {"mesh": {**MESH, "layout": [{"match": "dense_1/kernel", "axes": [None, "model"]}]}},
    ],
)
def test_what_changes_the_step_is_estimated_again(
    world: World, meshed: dict[str, Any], change: dict[str, Any]
) -> None:
    client = world.client(world.owner)
    first = ask(client, meshed).json()["job"]
    assert ask(client, {**meshed, **change}).json()["job"] != first


def test_what_does_not_change_the_step_is_not_estimated_again(world: World, meshed: dict[str, Any]) -> None:
    client = world.client(world.owner)
    first = ask(client, meshed).json()["job"]
    same = {
        **meshed,
        "mesh": {**MESH, "devices": "cpu", "simulate": 4},
        "fit": {"epochs": 7, "seed": 3},
        "resources": {"slots": 1},
        "data": {"dataset": "digits", "split": {"seed": 5}},
    }
    assert ask(client, same).json()["job"] == first
    # Only the variables, or another memory, are other questions.
    others = [ask(client, meshed, **more).json()["job"] for more in ({"compile": False}, {"device_gib": 2})]
    assert len({first, *others}) == 3


def test_the_runner_gets_simulated_devices_whatever_the_mesh_asks_for(
    world: World, meshed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, row, profile = parts_of(world)
    file = DatasetFile(path="table", digest=row.digest, profile=profile.model_dump(mode="json"))
    monkeypatch.setattr("jobs.kinds.mesh_estimate.actions.dataset_of", lambda job: file)
    ask(world.client(world.owner), meshed, device_gib=1)
    _, attempt = claimed()
    task = task_for(attempt.pk, folder=Path("none"), threads=1)
    assert isinstance(task, MeshEstimateTask) and task.device_bytes == GIB
    environment = Environment.for_task(MeshEstimateTask.model_validate_json(task.model_dump_json()))
    assert (environment.platform, environment.simulated_devices) == ("cpu", 4)


def test_the_memory_of_the_smallest_device_that_workers_report_is_taken(
    world: World, meshed: dict[str, Any]
) -> None:
    row = PretendWorker().row
    sizes = {"gpu:0": 24 * GIB, "gpu:1": 8 * GIB}
    row.devices = [{"name": name, "kind": "L4", "memory_bytes": size} for name, size in sizes.items()]
    row.save(update_fields=["devices"])
    client = world.client(world.owner)
    named = {**meshed, "mesh": {**MESH, "shape": [1, 1], "devices": ["gpu:0"]}}
    on_cpu = {**meshed, "mesh": {**MESH, "devices": "cpu"}}
    for body in (meshed, named, on_cpu):
        assert ask(client, body).status_code == 202
    assert [mesh_estimates.device_bytes_of(job) for job in jobs()] == [8 * GIB, 24 * GIB, None]
    assert ask(client, meshed, device_gib=8).json()["job"] == jobs()[0].pk


def test_the_largest_model_of_a_search_is_estimated(world: World, searching: dict[str, Any]) -> None:
    ask(world.client(world.owner), {**searching, "mesh": MESH})
    (job,) = jobs()
    spec = job.payload_as(MeshEstimatePayload).spec
    assert spec.search is None and spec.to_json()["model"]["args"]["units"] == 64


def test_a_failed_estimate_is_repeated_on_request_only(world: World, meshed: dict[str, Any]) -> None:
    client = world.client(world.owner)
    job = ask(client, meshed).json()["job"]
    _, attempt = claimed()
    attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "bad_layout", "message": "it does not fit"})
    failed = ask(client, meshed).json()
    assert (failed["state"], failed["job"]) == ("failed", job)
    assert failed["error"] == {"code": "bad_layout", "message": "it does not fit"}
    assert ask(client, meshed, again=True).json()["job"] != job


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"spec": {"model": 7}}, "/spec/model"),
    ({"spec": 7}, "/spec"),
    ({"data": {"dataset": "none"}}, "/spec/data/dataset"),
    ({"model": {"kind": "template", "template": "trees"}}, "/spec/model"),
    ({"mesh": {**MESH, "shape": [8, 16]}}, "/spec/mesh/shape"),
    ({"mesh": {**MESH, "layout": [{"match": "nothing", "axes": ["model"]}]}}, "/spec/mesh/layout/0/match"),
    ({"device_gib": -1}, "/device_gib"),
    ({"device_gib": "much"}, "/device_gib"),
    ({"device_gib": 16, "compile": False}, "/device_gib"),
]


@pytest.mark.parametrize(("change", "pointer"), WRONG)
def test_a_wrong_request_names_its_field_and_makes_no_job(
    world: World, meshed: dict[str, Any], change: dict[str, Any], pointer: str
) -> None:
    more = {name: change[name] for name in ("device_gib", "compile") if name in change}
    spec = change.get("spec", {**meshed, **{k: v for k, v in change.items() if k not in more}})
    assert any(name.startswith(pointer) for name in pointers(ask(world.client(world.owner), spec, **more)))
    assert jobs() == []


def test_problems_that_do_not_concern_the_step_do_not_prevent_an_estimate(
    world: World, meshed: dict[str, Any]
) -> None:
    # Without four slots no worker takes the job, but its devices are simulated.
    assert "/spec/resources/slots" in {p.pointer for p in plan.validate_spec(world.project, meshed).problems}
    assert ask(world.client(world.owner), meshed).status_code == 202


def test_only_members_request_and_only_those_who_see_the_project_read(
    world: World, meshed: dict[str, Any]
) -> None:
    assert ask(world.client(world.viewer), meshed).status_code == 403
    assert ask(world.client(world.stranger), meshed).status_code == 404
    job = ask(world.client(world.owner), meshed).json()["job"]
    assert world.client(world.viewer).get(f"{PLACE}/{job}").status_code == 200
    assert world.client(world.stranger).get(f"{PLACE}/{job}").status_code == 404
    assert world.client(world.stranger).get(PART, {"job": job}).status_code == 404
    assert world.client(world.viewer).post(PART, {"spec": json.dumps(meshed)}).status_code == 403
    Project.objects.create(slug="other", name="Other", created_by=world.owner)
    assert world.client(world.owner).get("/p/other/mesh-estimate", {"job": job}).status_code == 404


def test_a_job_of_another_kind_is_no_estimate(world: World, spec: dict[str, Any]) -> None:
    from tests.factories import make_job

    job = make_job(by=world.owner, project=world.project)
    assert world.client(world.owner).get(f"{PLACE}/{job.pk}").status_code == 404


def parts_of(world: World) -> Any:
    from jobs.queries.data import datasets

    row = present(datasets.find_version(world.project, "digits"))
    return world.project, row, present(row.profile)


def read(body: dict[str, Any]) -> Any:
    from jobs.spec.experiment import ExperimentSpec

    return ExperimentSpec.model_validate(body)


def make_completed(world: World, request: mesh_estimates.EstimateRequest, result: MeshEstimateResult) -> None:
    """Store an estimate as if a worker had made it."""
    Job.objects.create(
        kind="mesh_estimate",
        project=world.project,
        payload_json=request.payload.to_json(),
        results_json=result.to_json(),
        state="completed",
        created_by=world.owner,
    )
