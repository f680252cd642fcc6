"""The GPUs and TPUs that a spec asks for, in the plan: refused, or warned where no worker has them."""

from typing import Any

import pytest
from django.test import Client

from jobs.queries.experiments import plan
from jobs.spec.experiment import ExperimentSpec
from tests.experiments.test_plan import wrong
from tests.experiments.test_plan_meshes import GPUS
from tests.factories import make_worker
from tests.people import browser_of
from tests.world import World

H200 = {"name": "gpu:0", "kind": "NVIDIA H200", "memory_bytes": 150_754_820_096}
T4 = {"name": "gpu:1", "kind": "Tesla T4", "memory_bytes": 15_843_721_216}
SCRIPTED = {"kind": "script", "digest": "a" * 64, "entry": "train.py"}
TPUS = {"devices": "tpu", "shape": [2], "axis_names": ["data"]}


def asking(spec: dict[str, Any], gpu: dict[str, Any], slots: int = 1, **mesh: Any) -> dict[str, Any]:
    sections = {"mesh": {**GPUS, **mesh}} if mesh else {}
    return {**spec, **sections, "resources": {"slots": slots, "gpu": gpu}}


@pytest.mark.parametrize(
    ("gpu", "slots", "mesh", "pointer", "message"),
    [
        ({"count": 2}, 1, {}, "count", "2 GPUs need 2 slots, one for each GPU; it has 1"),
        ({"count": 3}, 3, {"devices": "gpu"}, "count", "the mesh has 2 GPUs, but the count is 3"),
        ({"count": 1}, 2, {"devices": "gpu"}, "count", "the mesh has 2 GPUs, but the count is 1"),
        ({}, 2, {"devices": "cpu"}, "", "the mesh has CPU devices; leave it out, or use GPUs in the mesh"),
        ({"name": "cpu:0"}, 1, {}, "name", "'cpu:0' is not a GPU; use a model, such as H200"),
        ({"name": "gpu:0"}, 2, {"devices": "gpu"}, "name", "gpu:0 is one device, but 2 GPUs are asked for"),
        ({"name": "gpu:0"}, 2, {"devices": ["gpu:0", "gpu:1"]}, "name", "the mesh names gpu:0 and gpu:1"),
        ({"name": "!"}, 1, {}, "name", "!"),
        ({"memory_gb": 0}, 1, {}, "memory_gb", "0"),
        ({"count": 0}, 1, {}, "count", "0"),
        ({"model": "H200"}, 1, {}, "model", "'model' is not a field of resources.gpu"),
    ],
)
def test_gpus_that_contradict_slots_or_mesh_are_refused_at_their_field(
    world: World, spec: dict[str, Any], gpu: dict[str, Any], slots: int, mesh: dict[str, Any],
    pointer: str, message: str,
) -> None:  # fmt: skip
    body = asking(spec, gpu, slots, **mesh)
    place = "/spec/resources/gpu" + (f"/{pointer}" if pointer else "")
    assert message in wrong(world, body)[place]


@pytest.mark.parametrize(
    ("gpu", "slots", "mesh"),
    [
        ({}, 1, {}),
        ({"count": 2}, 2, {"devices": "gpu"}),
        ({}, 2, {"devices": "gpu"}),
        ({"count": 1}, 4, {}),
        ({"name": "gpu:1", "memory_gb": 0.5}, 1, {}),
    ],
)
def test_gpus_that_agree_with_slots_and_mesh_are_accepted(
    world: World, spec: dict[str, Any], gpu: dict[str, Any], slots: int, mesh: dict[str, Any]
) -> None:
    assert wrong(world, asking(spec, gpu, slots, **mesh)) == {}


def test_gpus_have_no_effect_on_trees(world: World, spec: dict[str, Any]) -> None:
    body = {**spec, "model": {"template": "trees"}, "fit": {}, "resources": {"gpu": {"name": "H200"}}}
    assert "grown on the CPU" in wrong(world, body)["/spec/resources/gpu"]


@pytest.mark.parametrize(
    ("gpu", "slots", "pointer", "words"),
    [
        ({"name": "H200"}, 1, None, ""),
        ({"name": "h200", "memory_gb": 140}, 1, None, ""),
        ({"name": "T4", "memory_gb": 16}, 1, None, ""),
        ({"name": "gpu:1"}, 1, None, ""),
        ({"name": "H100"}, 1, "/name", 'no worker of pool default has a GPU "H100"; its GPUs are'),
        ({"name": "H20"}, 1, "/name", '"H20"'),
        (
            {"memory_gb": 200},
            1,
            "/memory_gb",
            "a GPU with 200 GB; its GPUs are 1 × NVIDIA H200 (151 GB), 1 ×",
        ),
        ({"name": "T4", "memory_gb": 24}, 1, "/memory_gb", '"T4" with 24 GB'),
        ({"name": "H200", "count": 2}, 2, "/count", 'has 2 GPUs "H200" on one worker'),
    ],
)
def test_gpus_that_no_worker_has_give_a_warning_with_what_there_is(
    world: World, spec: dict[str, Any], gpu: dict[str, Any], slots: int, pointer: str | None, words: str
) -> None:
    make_worker(slots=4, devices=[H200, T4])
    verdict = plan.validate_spec(world.project, asking(spec, gpu, slots))
    assert verdict.problems == [] and verdict.plan is not None
    warnings = {
        warning.pointer.removeprefix("/resources/gpu"): warning.message
        for warning in verdict.plan.warnings
        if warning.pointer.startswith("/resources/gpu") and "idle" not in warning.message
    }
    assert list(warnings) == ([] if pointer is None else [pointer])
    assert words in "".join(warnings.values())


def test_a_pool_without_gpus_gives_one_warning(world: World, spec: dict[str, Any]) -> None:
    make_worker(slots=1)
    spec_plan = plan.validate_spec(world.project, asking(spec, {"name": "H200"})).plan
    assert spec_plan is not None
    (message,) = [w.message for w in spec_plan.warnings if w.pointer.startswith("/resources")]
    assert message.startswith(
        'no worker of pool default has a GPU "H200"; none has a GPU, so the job will wait'
    )


def test_two_gpus_without_a_mesh_give_a_warning_that_one_is_idle(world: World, spec: dict[str, Any]) -> None:
    make_worker(slots=2, devices=[H200, {**H200, "name": "gpu:1"}])
    spec_plan = plan.validate_spec(world.project, asking(spec, {"count": 2}, 2)).plan
    assert spec_plan is not None
    (message,) = [w.message for w in spec_plan.warnings if w.pointer == "/resources/gpu/count"]
    assert message == (
        "a training without a mesh computes on one GPU, so 1 would be idle. Add a mesh of GPUs, or ask for "
        "one GPU."
    )


def test_a_worker_with_the_gpus_and_too_few_slots_gives_a_warning(world: World, spec: dict[str, Any]) -> None:
    make_worker(slots=8)
    make_worker(slots=1, devices=[H200, T4])
    spec_plan = plan.validate_spec(world.project, asking(spec, {"name": "H200"}, 2)).plan
    assert spec_plan is not None
    (message,) = [w.message for w in spec_plan.warnings if w.pointer == "/resources/slots"]
    assert "with these GPUs and 2 slots" in message


def test_a_mesh_of_tpus_is_refused_unless_a_worker_of_the_pool_reports_one(
    world: World, spec: dict[str, Any]
) -> None:
    make_worker(slots=2, devices=[H200])
    make_worker(slots=2, pool="other", devices=[{"name": "tpu:0", "kind": "TPU v5"}])
    body = {**spec, "mesh": TPUS}
    refusal = wrong(world, body)["/spec/mesh/devices"]
    assert refusal.startswith("no worker of pool 'default' reports a TPU; start one on a machine with TPUs")
    assert (
        wrong(world, {**body, "mesh": {**TPUS, "devices": ["tpu:0", "tpu:1"]}})["/spec/mesh/devices"]
        == refusal
    )
    make_worker(slots=2, devices=[{"name": "tpu:0", "kind": "TPU v5"}])
    verdict = plan.validate_spec(world.project, body)
    assert verdict.problems == [] and verdict.plan is not None
    assert [w.message.split(",")[0] for w in verdict.plan.warnings if w.pointer == "/mesh/devices"] == [
        "the job needs 2 TPUs on one worker"
    ]


def test_memory_of_gpus_is_refused_in_a_mesh_of_tpus(world: World, spec: dict[str, Any]) -> None:
    make_worker(slots=1, devices=[{"name": "tpu:0", "kind": "TPU v5"}])
    mesh = {"shape": [1], "axis_names": ["data"], "devices": ["tpu:0"], "preallocate": True}
    assert list(wrong(world, {**spec, "mesh": mesh})) == ["/spec/mesh/preallocate"]


def test_a_spec_for_tpus_that_exists_stays_readable_without_a_worker_that_has_one(
    world: World, spec: dict[str, Any]
) -> None:
    assert ExperimentSpec.model_validate({**spec, "mesh": TPUS}).to_json()["mesh"]["devices"] == "tpu"


def test_rest_refuses_a_mesh_of_tpus_at_its_field(world: World, spec: dict[str, Any]) -> None:
    browser = browser_of(world.owner)
    body = {"project": world.project.slug, "name": "t", "spec": {**spec, "mesh": TPUS}}
    answer = browser.post("/api/v1/experiments", body, content_type="application/json")
    assert answer.status_code == 422, answer.content
    assert "reports a TPU" in answer.content.decode() and "/spec/mesh/devices" in answer.content.decode()


def test_the_form_offers_tpus_only_where_a_worker_reports_one_and_lists_the_gpus(
    world: World, db: None
) -> None:
    browser: Client = browser_of(world.owner)
    address = f"/p/{world.project.slug}/experiments/new"
    make_worker(name="box", slots=2, devices=[H200, T4])
    page = browser.get(address).content.decode()
    assert "&quot;gpu&quot;" in page and "&quot;tpu&quot;" not in page
    assert "box: gpu:0 NVIDIA H200 (151 GB), gpu:1 Tesla T4 (16 GB)." in page
    assert "Running workers have 1 × NVIDIA H200 (151 GB), 1 × Tesla T4 (16 GB)." in page
    make_worker(devices=[{"name": "tpu:0", "kind": "TPU v5"}])
    assert "&quot;tpu&quot;" in browser.get(address).content.decode()
