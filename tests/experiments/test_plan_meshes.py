"""Layouts, widths and meshes in the plan: what no worker could run."""

from typing import Any

import pytest

from jobs.queries.experiments import plan
from jobs.spec.checks import settings
from jobs.spec.experiment import ExperimentSpec
from tests.experiments.test_plan import wrong
from tests.factories import make_worker
from tests.world import World


def test_a_layout_rule_that_matches_nothing_is_reported(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2}
    mesh["layout"] = [{"match": "dense", "axes": ["model"]}]
    assert "matches no variable" in wrong(world, {**spec, "mesh": mesh})["/spec/mesh/layout/0/match"]


def test_a_pattern_without_a_linear_equivalent_is_refused_once(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2}
    mesh["layout"] = [{"match": "(?=dense).*/kernel", "axes": ["model"]}]
    overrides = [{"match": "dense(?!_2)", "policy": "float32"}]
    verdict = plan.validate_spec(world.project, {**spec, "mesh": mesh, "precision": {"overrides": overrides}})
    pointers = [problem.pointer for problem in verdict.problems]
    assert sorted(pointers) == ["/spec/mesh/layout/0/match", "/spec/precision/overrides/0/match"]
    assert all("no lookahead" in problem.message for problem in verdict.problems)


def test_a_layout_rule_that_would_backtrack_without_end_is_judged(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2}
    mesh["layout"] = [{"match": "((((((.+)+)+)+)+)+)+!", "axes": ["model"]}]
    assert "matches no variable" in wrong(world, {**spec, "mesh": mesh})["/spec/mesh/layout/0/match"]


def test_a_searched_width_that_does_not_divide_is_named(world: World, searching: dict[str, Any]) -> None:
    searching["search"] = {
        **searching["search"],
        "space": [{"name": "units", "kind": "choice", "values": [16, 17]}],
    }
    searching["mesh"] = {
        "shape": [2],
        "axis_names": ["model"],
        "batch_axis": None,
        "simulate": 2,
        "layout": [{"match": "dense_1/kernel", "axes": [None, "model"]}],
    }
    messages = wrong(world, searching)
    assert messages["/spec/mesh/layout/0/axes"].startswith("with units = 17: ")


def test_a_searched_batch_that_does_not_divide_is_named(world: World, searching: dict[str, Any]) -> None:
    searching["search"] = {
        **searching["search"],
        "space": [{"name": "batch_size", "kind": "choice", "values": [64, 100]}],
    }
    searching["mesh"] = {"shape": [8], "axis_names": ["data"], "simulate": 8}
    assert "batch_size = 100" in wrong(world, searching)["/spec/search/space/0"]


ACROSS = {"shape": [2, 4], "axis_names": ["data", "model"], "simulate": 8}
TEMPLATES = {"name": "template", "kind": "choice", "values": ["mlp", "linear"]}


def test_a_search_over_templates_takes_a_mesh_whose_rules_fit_one_of_them(
    world: World, searching: dict[str, Any]
) -> None:
    searching["search"] = {**searching["search"], "space": [TEMPLATES]}
    rules = [{"match": "dense_1/kernel", "axes": [None, "model"]}]
    verdict = plan.validate_spec(world.project, {**searching, "mesh": {**ACROSS, "layout": rules}})
    assert verdict.problems == []


@pytest.mark.parametrize(
    ("rule", "place", "message"),
    [
        ({"match": "dense_9/kernel", "axes": [None, "model"]}, "match", "matches no variable"),
        ({"match": "output/kernel", "axes": [None, "model"]}, "axes", "'output/kernel': dimension 1"),
    ],
)
def test_a_rule_that_fits_no_template_or_does_not_divide_one_is_reported(
    world: World, searching: dict[str, Any], rule: dict[str, Any], place: str, message: str
) -> None:
    searching["search"] = {**searching["search"], "space": [TEMPLATES]}
    messages = wrong(world, {**searching, "mesh": {**ACROSS, "layout": [rule]}})
    assert message in messages[f"/spec/mesh/layout/0/{place}"]


def test_a_width_of_one_template_that_does_not_divide_is_named_with_it(
    world: World, searching: dict[str, Any]
) -> None:
    when = {"name": "template", "in": ["mlp"]}
    units = {"name": "mlp/units", "kind": "choice", "values": [16, 18], "when": when}
    searching["search"] = {**searching["search"], "space": [TEMPLATES, units]}
    rules = [{"match": "dense_1/kernel", "axes": [None, "model"]}]
    messages = wrong(world, {**searching, "mesh": {**ACROSS, "layout": rules}})
    assert messages["/spec/mesh/layout/0/axes"].startswith("with template = 'mlp' and mlp/units = 18: ")


def test_a_rule_that_never_applies_has_a_warning(world: World, spec: dict[str, Any]) -> None:
    rules = [{"match": match, "axes": [None, "model"]} for match in ("dense_[0-9]+/kernel", "dense_1/kernel")]
    mesh = {**ACROSS, "layout": rules}
    verdict = plan.validate_spec(world.project, {**spec, "mesh": mesh})
    assert verdict.problems == [] and verdict.plan is not None
    messages = {warning.pointer: warning.message for warning in verdict.plan.warnings}
    assert "the first one applies, so rule 2 (dense_1/kernel)" in messages["/mesh/layout/1/match"]
    assert verdict.plan.variables[0].rule == 0


@pytest.mark.parametrize(
    ("model", "pointers"),
    [
        ({"kind": "code", "digest": "a" * 64, "entry": "build_model"}, []),
        ({"kind": "version", "model": "m", "number": 1}, []),
        ({"kind": "script", "digest": "a" * 64, "entry": "train.py"}, ["/mesh/layout"]),
        ({"kind": "template", "template": "trees"}, ["/mesh"]),
    ],
)
def test_every_kind_of_model_takes_a_mesh_or_names_the_part_that_it_cannot_use(
    model: dict[str, Any], pointers: list[str]
) -> None:
    # A script has no batches whose size would have to divide.
    mesh = {**ACROSS, "shape": [3, 2], "simulate": 6} if model["kind"] == "script" else ACROSS
    layout = [{"match": ".*/kernel", "axes": [None, "model"]}]
    body = {"data": {"dataset": "d"}, "model": model, "mesh": {**mesh, "layout": layout}}
    found = list(settings.problems(ExperimentSpec.model_validate(body)))
    assert [problem.pointer for problem in found] == pointers
    assert all("has no effect on" in problem.message for problem in found)


@pytest.mark.parametrize(
    ("mesh", "pointer", "message"),
    [
        ({}, "/mesh/shape/1", "no layout rule has the axis 'model', so 6 of the 8 devices repeat the work"),
        ({"batch_axis": None}, "/mesh/shape", "no batch axis and no layout rule, so all 8 devices"),
        ({"shape": [8, 1]}, None, ""),
        ({"layout": [{"match": "dense_1/kernel", "axes": [None, "model"]}]}, None, ""),
    ],
)
def test_an_axis_that_divides_nothing_has_a_warning(
    world: World, spec: dict[str, Any], mesh: dict[str, Any], pointer: str | None, message: str
) -> None:
    verdict = plan.validate_spec(world.project, {**spec, "mesh": {**ACROSS, **mesh}})
    assert verdict.problems == [] and verdict.plan is not None
    found = [w for w in verdict.plan.warnings if w.pointer.startswith("/mesh/shape")]
    assert [w.pointer for w in found] == ([] if pointer is None else [pointer])
    assert all(message in w.message for w in found)


def test_a_layout_is_suggested(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [4, 2], "axis_names": ["data", "model"], "simulate": 8}
    spec_plan = plan.validate_spec(world.project, {**spec, "mesh": mesh}).plan
    assert spec_plan is not None
    rules = [(rule.match, rule.axes) for rule in spec_plan.suggested_layout]
    assert (r"(dense_\d+|output)/kernel", (None, "model")) in rules
    assert spec_plan.variables[0].path == "dense_1/kernel"
    assert spec_plan.variables[0].bytes == 64 * 32 * 4


GPUS = {"devices": "gpu", "shape": [2], "axis_names": ["data"]}


@pytest.mark.parametrize(
    ("mesh", "slots", "pointer", "message"),
    [
        ({}, 1, "/resources/slots", "a mesh of 2 GPUs needs 2 slots, one for each GPU; it has 1"),
        ({"devices": ["gpu:0", "gpu:1"]}, 1, "/resources/slots", "needs 2 slots"),
        ({"simulate": 2}, 2, "/mesh/simulate", "only CPU devices can be simulated"),
        ({"devices": ["cuda:0", "gpu:1"]}, 2, "/mesh/devices/0", "'cuda:0' is not the name of a device"),
        ({"devices": ["gpu:1", "gpu:1"]}, 2, "/mesh/devices", "names a device twice"),
        ({"devices": ["gpu:0", "cpu:1"]}, 2, "/mesh/devices", "devices of several kinds"),
        ({"devices": ["gpu:0"]}, 2, "/mesh/devices", "needs 2 devices, but 1 are named"),
        ({"devices": []}, 2, "/mesh/devices", "needs 2 devices, but 0 are named"),
    ],
)
def test_a_mesh_that_no_worker_could_run_is_refused(
    world: World, spec: dict[str, Any], mesh: dict[str, Any], slots: int, pointer: str, message: str
) -> None:
    body = {**spec, "mesh": {**GPUS, **mesh}, "resources": {"slots": slots}}
    assert message in wrong(world, body)[f"/spec{pointer}"]


@pytest.mark.parametrize(
    ("devices", "mesh", "warning"),
    [
        ([], {}, "no worker of pool default has a GPU, so the job will wait"),
        (["gpu:0"], {}, "the job needs 2 GPUs on one worker, and the largest of pool default has 1"),
        (["gpu:0", "gpu:1"], {}, None),
        (
            ["gpu:0", "gpu:1"],
            {"devices": ["gpu:0", "gpu:2"]},
            "no worker of pool default has gpu:0 and gpu:2",
        ),
        (["gpu:0", "gpu:1", "gpu:2"], {"devices": ["gpu:0", "gpu:2"]}, None),
    ],
)
def test_gpus_that_no_worker_has_give_a_warning(
    world: World, spec: dict[str, Any], devices: list[str], mesh: dict[str, Any], warning: str | None
) -> None:
    make_worker(slots=4, devices=[{"name": name, "kind": "NVIDIA H200"} for name in devices])
    verdict = plan.validate_spec(world.project, {**spec, "mesh": {**GPUS, **mesh}, "resources": {"slots": 2}})
    assert verdict.problems == []
    assert verdict.plan is not None
    message = next(
        (
            plan_warning.message
            for plan_warning in verdict.plan.warnings
            if plan_warning.pointer == "/mesh/devices"
        ),
        None,
    )
    assert (message is None) == (warning is None)
    assert warning is None or warning in (message or "")


def test_workers_with_gpus_that_have_too_few_slots_give_a_warning(world: World, spec: dict[str, Any]) -> None:
    make_worker(slots=8)
    make_worker(slots=1, devices=[{"name": f"gpu:{n}", "kind": "NVIDIA H200"} for n in range(2)])
    body = {**spec, "mesh": GPUS, "resources": {"slots": 2}}
    spec_plan = plan.validate_spec(world.project, body).plan
    assert spec_plan is not None
    (slots_warning,) = [
        plan_warning for plan_warning in spec_plan.warnings if plan_warning.pointer == "/resources/slots"
    ]
    assert slots_warning.message.startswith(
        "the largest worker of pool default with the GPUs of the mesh has 1 of the 2 slots, so the job will"
    )
