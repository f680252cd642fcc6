"""The plan and the judge that serve the form, the API and submit."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.models import CodeVersion
from jobs.queries.experiments import duration_history, plan
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections import measures
from jobs.spec.space import size as space_size
from jobs.spec.space.search_space import FloatParameter
from jobs.spec.space.values import apply_values
from tests.factories import make_code, make_dataset, make_experiment, make_job, make_trials, make_worker
from tests.world import World

DOCUMENT = Path(__file__).parents[2] / "docs" / "experiment-spec.md"


SHUFFLE = {"name": "shuffle", "kind": "boolean"}


def documented() -> dict[str, Any]:
    """Return the example of the documentation."""
    found = re.search(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    body: dict[str, Any] = json.loads(found.group(1))
    return body


def wrong(world: World, body: dict[str, Any]) -> dict[str, str]:
    """Return the problems of a spec by pointer."""
    return {problem.pointer: problem.message for problem in plan.validate_spec(world.project, body).problems}


def test_the_documented_example_is_valid_and_planned(world: World) -> None:
    verdict = plan.validate_spec(world.project, documented())
    assert verdict.problems == []
    found = verdict.plan
    assert found is not None
    assert (found.trials, found.executions, found.devices, found.batch_shards) == (20, 40, 8, 4)
    assert found.epochs == 40 * 100 + 4 * (200 + 240)
    assert found.distinct is None, "learning_rate is continuous"
    assert found.grid_size == (4 * 10) + (4 * 6 * 10)
    assert found.steps == ("search", "train", "ensemble", "quantize", "register")
    assert (found.epoch_chosen_by, found.stopped_by) == ("val_accuracy", "val_loss")


LAYERS = {"name": "layers", "kind": "int", "min": 1, "max": 3}
STEPPED = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1}
FREE = {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}
SPREAD = {"name": "units", "kind": "int", "min": 1, "max": 2000, "sampling": "log"}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ([LAYERS, STEPPED], "18 grid points"),
        ([{"name": "layers", "kind": "fixed", "value": 1}], "1 grid point"),
        ([LAYERS, FREE], "continuous in learning_rate; a grid over it would use 30 points"),
        ([{**FREE, "max": 1e-4}, LAYERS], "3 grid points"),
        ([SPREAD], "2\u202f000 configurations; a grid over them would use 10"),
        (
            [{**SPREAD, "max": 10**9}],
            "1\u202f000\u202f000\u202f000 configurations; a grid over them would use 10",
        ),
        ([LAYERS, {**STEPPED, "when": {"name": "layers", "in": [2, 3]}}], "13 grid points"),
    ],
)
def test_the_size_of_a_space_is_described(
    world: World, searching: dict[str, Any], space: list[Any], message: str
) -> None:
    searching["search"] = {**searching["search"], "space": space}
    found = plan.validate_spec(world.project, searching).plan
    assert found is not None
    assert found.space == message


def test_many_continuous_hyperparameters_are_counted() -> None:
    space = tuple(FloatParameter(**{**FREE, "name": name}) for name in "abcd")
    message = "continuous in 4 hyperparameters; a grid over it would use 10\u202f000 points"
    assert str(space_size.size_of_space(space)) == message


def test_a_training_has_no_space(world: World, spec: dict[str, Any]) -> None:
    found = plan.validate_spec(world.project, spec).plan
    assert found is not None
    assert (found.space, found.distinct, found.grid_size) == ("", None, 1)


def test_all_integers_of_a_logarithmic_range_are_distinct_values(
    world: World, searching: dict[str, Any]
) -> None:
    searching["search"] = {**searching["search"], "max_trials": 100, "space": [{**SPREAD, "max": 60}]}
    found = plan.validate_spec(world.project, searching).plan
    assert found is not None
    assert (found.grid_size, found.distinct) == (9, 60)
    at = {warning.pointer: warning.message for warning in found.warnings}
    assert at["/search/max_trials"].startswith("the space has only 60 distinct configurations")


def test_memory_is_that_of_the_largest_configuration(world: World, searching: dict[str, Any]) -> None:
    found = plan.validate_spec(world.project, searching).plan
    assert found is not None
    assert found.largest == {"units": 64}
    weights = (64 * 64 + 64 + 64 * 10 + 10) * 4
    assert found.memory is not None
    assert (found.memory.weights, found.memory.optimizer) == (weights, 2 * weights)


def test_conditional_hyperparameters_count_for_the_largest_configuration(
    world: World, spec: dict[str, Any]
) -> None:
    space = [
        {"name": "batch_norm", "kind": "boolean"},
        {
            "name": "units",
            "kind": "int",
            "min": 16,
            "max": 512,
            "when": {"name": "batch_norm", "in": [False]},
        },
    ]
    body = {**spec, "search": {"objective": {"metric": "val_loss"}, "space": space}}
    found = plan.validate_spec(world.project, body).plan
    assert found is not None
    assert found.largest == {"batch_norm": False, "units": 512}


def test_pointers_refer_to_the_body(world: World, searching: dict[str, Any]) -> None:
    searching["search"] = {
        **searching["search"],
        "space": [{"name": "units", "kind": "int", "min": 64, "max": 16}],
    }
    assert wrong(world, searching) == {"/spec/search/space/0/min": "min 64 is above max 16"}


ONE_DEVICE = {"shape": [1], "axis_names": ["data"]}
OVERRIDE = "/spec/precision/overrides/0"


@pytest.mark.parametrize(
    ("section", "value", "pointer"),
    [
        ("precision", {"policy": "float16"}, "/spec/precision/policy"),
        ("fit", {"batch_size": 0}, "/spec/fit/batch_size"),
        ("fit", {"epoch": 3}, "/spec/fit/epoch"),
        ("model", {"template": "mlp", "args": {"units": 0}}, "/spec/model/args/units"),
        ("model", {"args": {}}, "/spec/model/template"),
        ("mesh", {"shape": [3], "axis_names": ["data"]}, "/spec/fit/batch_size"),
        ("after", {"register": {"model": "m", "what": ["ensemble"]}}, "/spec/after/register"),
        ("after", {"ensemble": {}}, "/spec/after/ensemble"),
        ("resources", {"priority": "high"}, "/spec/resources/priority"),
        ("resources", {"hosts": 2}, "/spec/resources/hosts"),
        ("model", {"kind": "code", "digest": "a", "entry": "build"}, "/spec/model/digest"),
        ("mesh", {**ONE_DEVICE, "memory_fraction": 0.5}, "/spec/mesh/memory_fraction"),
        ("mesh", {**ONE_DEVICE, "devices": ["tpu:0"], "preallocate": True}, "/spec/mesh/preallocate"),
        ("precision", {"overrides": [{"match": "a", "policy": "float64"}]}, f"{OVERRIDE}/policy"),
        ("precision", {"overrides": [{"match": "(", "policy": "float32"}]}, f"{OVERRIDE}/match"),
        ("search", {"space": [{"name": "width", "kind": "boolean"}]}, "/spec/search/space/0/name"),
        ("search", {"space": [SHUFFLE, SHUFFLE]}, "/spec/search/space/1/name"),
        ("search", {"space": [{**SHUFFLE, "when": {"name": "a", "in": [1]}}]}, "/spec/search/space/0/when"),
    ],
)
def test_each_error_is_reported_at_its_field(
    world: World, spec: dict[str, Any], section: str, value: dict[str, Any], pointer: str
) -> None:
    spec["fit"] = {"batch_size": 100}
    assert list(wrong(world, {**spec, section: value})) == [pointer]


TWO = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss"}]


@pytest.mark.parametrize(
    ("search", "pointer"),
    [
        ({"options": {"factor": 3}}, "options"),
        ({"algorithm": "asha", "options": {"iterations": 2}}, "options/iterations"),
        ({"algorithm": "hyperband", "options": {"factor": 1}}, "options/factor"),
        ({"algorithm": "asha", "pruner": {"kind": "median"}}, "pruner"),
        ({"pruner": {"kind": "hyperband", "min_epochs": 5, "max_epochs": 3}}, "pruner/min_epochs"),
        ({"algorithm": "hyperband", "options": {"min_epochs": 5, "max_epochs": 3}}, "options/min_epochs"),
        ({"algorithm": "hyperband", "options": {"max_epochs": 101}}, "options/max_epochs"),
        (
            {"algorithm": "asha", "space": [{"name": "epochs", "kind": "choice", "values": [1]}]},
            "space/0/name",
        ),
        ({"algorithm": "bayesian", "objectives": TWO}, "objectives"),
        ({"objectives": TWO, "objective": TWO[1]}, "objective"),
        ({"objectives": TWO[:1]}, "objectives"),
        ({"objectives": [TWO[0], TWO[0]]}, "objectives"),
        ({"objective": {"metric": "accuracy"}}, "objective/metric"),
        ({"objectives": [TWO[0], {"metric": "val_mae"}]}, "objectives/1/metric"),
        ({"duplicates": "forget"}, "duplicates"),
        ({"algorithm": "tpe", "warm_start": 12345}, "warm_start"),
    ],
)
def test_each_error_of_a_search_is_reported_at_its_field(
    world: World, spec: dict[str, Any], search: dict[str, Any], pointer: str
) -> None:
    spec["fit"] = {"epochs": 100}
    body = {**spec, "search": {"space": [SHUFFLE], **search}}
    assert list(wrong(world, body)) == [f"/spec/search/{pointer}"]


@pytest.mark.parametrize(
    ("section", "value"),
    [("resources", {"hosts": 2})],
)
def test_a_value_that_a_later_release_will_have_is_not_available_yet(
    world: World, spec: dict[str, Any], section: str, value: dict[str, Any]
) -> None:
    assert "not available yet" in " ".join(wrong(world, {**spec, section: value}).values())


def test_brackets_are_planned_with_their_epochs(world: World, spec: dict[str, Any]) -> None:
    search = {"algorithm": "hyperband", "executions_per_trial": 2, "max_trials": 1000, "space": [FREE]}
    found = plan.validate_spec(world.project, {**spec, "fit": {"epochs": 9}, "search": search}).plan
    assert found is not None
    assert (found.trials, found.executions) == (9 + 5 + 3, 34)
    assert found.epochs == 2 * ((9 + 3 * 2 + 6) + (5 * 3 + 6) + 3 * 9)


@pytest.mark.parametrize("algorithm", ["random", "grid", "hyperband"])
def test_algorithms_without_warm_start_reject_it(world: World, spec: dict[str, Any], algorithm: str) -> None:
    earlier = make_job(project=world.project, by=world.owner, state="completed")
    search = {"space": [SHUFFLE], "algorithm": algorithm, "warm_start": earlier.pk}
    (problem,) = plan.validate_spec(world.project, {**spec, "search": search}).problems
    assert problem.pointer == "/spec/search/warm_start"
    assert "use bayesian or tpe" in problem.message


def test_the_first_of_several_objectives_is_the_main_one(world: World, spec: dict[str, Any]) -> None:
    verdict = plan.validate_spec(world.project, {**spec, "search": {"space": [SHUFFLE], "objectives": TWO}})
    assert verdict.spec is not None and verdict.spec.search is not None
    assert verdict.spec.search.objective.metric == "val_accuracy"
    assert plan.validate_spec(world.project, verdict.spec.to_json()).spec == verdict.spec


def test_cnn_requires_images(world: World, spec: dict[str, Any]) -> None:
    body = {**spec, "data": {"dataset": "diabetes"}, "model": {"template": "cnn"}}
    assert "/spec/model/template" in wrong(world, body)


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        ("digits", "HyperResNet", "needs images of at least 32 × 32 pixels, but these have 8 × 8"),
        ("diabetes", "HyperXception", "needs images, but the data are vectors"),
    ],
)
def test_a_hypermodel_is_refused_for_data_that_do_not_suit_it(
    world: World, spec: dict[str, Any], data: str, name: str, reason: str
) -> None:
    body = {**spec, "data": {"dataset": data}, "model": {"kind": "hypermodel", "name": name}}
    assert reason in wrong(world, body)["/spec/model/name"]


def test_a_hypermodel_is_not_trained_for_numbers(world: World, spec: dict[str, Any]) -> None:
    body = {
        **spec,
        "data": {"dataset": "digits", "task": "regression"},
        "model": {"kind": "hypermodel", "name": "HyperXception"},
    }
    assert "cannot be trained for regression" in wrong(world, body)["/spec/model/name"]


def test_a_hypermodel_is_planned_with_a_warning_about_its_time(world: World, spec: dict[str, Any]) -> None:
    body = {**spec, "model": {"kind": "hypermodel", "name": "HyperXception", "args": {"pooling": "max"}}}
    verdict = plan.validate_spec(world.project, body)
    assert verdict.problems == [] and verdict.spec is not None and verdict.plan is not None
    assert verdict.spec.to_json()["model"] == body["model"]
    assert "made for GPUs" in " ".join(each.message for each in verdict.plan.warnings)


@pytest.mark.parametrize(
    ("model", "pointer"),
    [
        ({"kind": "hypermodel", "name": "HyperNet"}, "/spec/model/name"),
        ({"kind": "template", "template": "HyperResNet"}, "/spec/model/template"),
        (
            {"kind": "hypermodel", "name": "HyperResNet", "args": {"conv3_depth": 1}},
            "/spec/model/args/conv3_depth",
        ),
        (
            {"kind": "hypermodel", "name": "HyperResNet", "args": {"pooling": "flatten"}},
            "/spec/model/args/pooling",
        ),
    ],
)
def test_each_error_of_a_hypermodel_is_reported_at_its_field(
    world: World, spec: dict[str, Any], model: dict[str, Any], pointer: str
) -> None:
    assert list(wrong(world, {**spec, "model": model})) == [pointer]


def test_a_search_over_templates_may_try_a_hypermodel(world: World, spec: dict[str, Any]) -> None:
    space = [
        {"name": "template", "kind": "choice", "values": ["cnn", "HyperXception"]},
        {"name": "HyperXception/pooling", "kind": "choice", "values": ["avg", "max"],
         "when": {"name": "template", "in": ["HyperXception"]}},
    ]  # fmt: skip
    verdict = plan.validate_spec(world.project, {**spec, "search": {"space": space}})
    assert verdict.problems == [] and verdict.spec is not None
    tried = apply_values(verdict.spec, {"template": "HyperXception", "HyperXception/pooling": "max"})
    assert tried.to_json()["model"] == {
        "kind": "hypermodel",
        "name": "HyperXception",
        "args": {"pooling": "max"},
    }


def test_an_objective_must_be_measured_for_this_task(world: World, searching: dict[str, Any]) -> None:
    searching["data"] = {"dataset": "diabetes"}
    assert "val_mae" in wrong(world, searching)["/spec/search/objective/metric"]


def test_an_unknown_data_set_is_named(world: World, spec: dict[str, Any]) -> None:
    found = wrong(world, {**spec, "data": {"dataset": "nowhere"}})
    assert found == {"/spec/data/dataset": "there is no data set 'nowhere' in yard"}


def test_a_data_set_without_a_version_that_could_be_read_is_a_problem(
    world: World, spec: dict[str, Any]
) -> None:
    versions = make_dataset("torn", project=world.project).versions
    body = {**spec, "data": {"dataset": "torn"}}
    versions.update(state="failed")
    message = "torn has no version that could be read; see its page"
    assert wrong(world, body) == {"/spec/data/dataset": message}
    versions.update(state="preparing")
    assert wrong(world, body) == {}, "it may still become ready"


def test_a_layout_rule_that_matches_nothing_is_reported(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2}
    mesh["layout"] = [{"match": "dense", "axes": ["model"]}]
    assert "matches no variable" in wrong(world, {**spec, "mesh": mesh})["/spec/mesh/layout/0/match"]


def test_a_pattern_without_a_linear_equivalent_is_refused_once(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2}
    mesh["layout"] = [{"match": "(?=dense).*/kernel", "axes": ["model"]}]
    overrides = [{"match": "dense(?!_2)", "policy": "float32"}]
    verdict = plan.validate_spec(world.project, {**spec, "mesh": mesh, "precision": {"overrides": overrides}})
    found = [problem.pointer for problem in verdict.problems]
    assert sorted(found) == ["/spec/mesh/layout/0/match", "/spec/precision/overrides/0/match"]
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
    found = wrong(world, searching)
    assert found["/spec/mesh/layout/0/axes"].startswith("with units = 17: ")


def test_a_searched_batch_that_does_not_divide_is_named(world: World, searching: dict[str, Any]) -> None:
    searching["search"] = {
        **searching["search"],
        "space": [{"name": "batch_size", "kind": "choice", "values": [64, 100]}],
    }
    searching["mesh"] = {"shape": [8], "axis_names": ["data"], "simulate": 8}
    assert "batch_size = 100" in wrong(world, searching)["/spec/search/space/0"]


def test_a_layout_is_suggested(world: World, spec: dict[str, Any]) -> None:
    mesh = {"shape": [4, 2], "axis_names": ["data", "model"], "simulate": 8}
    found = plan.validate_spec(world.project, {**spec, "mesh": mesh}).plan
    assert found is not None
    assert {"match": r"dense_1/kernel", "axes": [None, "model"]} in [
        {"match": rule.match.replace("\\", ""), "axes": list(rule.axes)} for rule in found.suggested_layout
    ]
    assert found.variables[0].path == "dense_1/kernel"
    assert found.variables[0].bytes == 64 * 32 * 4


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
    shown = next((each.message for each in verdict.plan.warnings if each.pointer == "/mesh/devices"), None)
    assert (shown is None) == (warning is None)
    assert warning is None or warning in (shown or "")


def test_workers_with_gpus_that_have_too_few_slots_give_a_warning(world: World, spec: dict[str, Any]) -> None:
    make_worker(slots=8)
    make_worker(slots=1, devices=[{"name": f"gpu:{n}", "kind": "NVIDIA H200"} for n in range(2)])
    body = {**spec, "mesh": GPUS, "resources": {"slots": 2}}
    found = plan.validate_spec(world.project, body).plan
    assert found is not None
    (shown,) = [each for each in found.warnings if each.pointer == "/resources/slots"]
    assert shown.message.startswith(
        "the largest worker of pool default with the GPUs of the mesh has 1 of the 2 slots, so the job will"
    )


def test_unusual_settings_give_warnings(world: World, spec: dict[str, Any]) -> None:
    body = {
        **spec,
        "fit": {"epochs": 100},
        "precision": {"policy": "mixed_float16"},
        "after": {"retrain": {"top": 1}},
    }
    found = plan.validate_spec(world.project, body).plan
    assert found is not None
    at = {warning.pointer: warning.message for warning in found.warnings}
    assert "adds no epoch if the best epoch is below 5" in at["/after/retrain/epochs_factor"]
    assert {"/fit/early_stopping", "/precision/policy", "/resources/pool"} <= at.keys()


def test_names_agree_with_the_engine() -> None:
    losses = pytest.importorskip("workers.engine.models.losses")
    assert losses.LOSSES.keys() == measures.LOSSES.keys()
    assert losses.METRICS.keys() == measures.METRICS.keys()


@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"version": 2}, {"data": {}, "model": {}}])
def test_nonsense_is_rejected(world: World, body: Any) -> None:
    verdict = plan.validate_spec(world.project, body)
    assert not verdict.valid
    assert verdict.plan is None


def test_the_plan_contains_an_estimate_from_earlier_trainings(
    world: World, searching: dict[str, Any]
) -> None:
    body = {**searching, "fit": {"epochs": 100, "early_stopping": {"patience": 2}}}
    experiment = make_experiment(project=world.project, by=world.owner, spec=body)
    make_trials(make_job(by=world.owner, experiment=experiment, state="completed"))
    found = plan.validate_spec(world.project, body, experiment=experiment).plan
    assert found is not None
    assert (found.epochs, found.epochs_likely) == (800, 40), "8 trainings to their best epoch, 3, and 2 more"
    assert found.device_hours == pytest.approx(800 * 36 / 3600)
    assert found.device_hours_likely == pytest.approx(40 * 36 / 3600)
    assert found.estimate.startswith("Based on 8 earlier trainings in this experiment: 5 epochs each at 36 s")


def test_an_estimate_for_code_is_from_trainings_of_the_same_code(
    world: World, searching: dict[str, Any]
) -> None:
    first, next_one, other = (
        make_code(name, project=world.project, by=world.owner) for name in ("net", "net", "other")
    )

    def spec(code: CodeVersion) -> dict[str, Any]:
        model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
        return {**searching, "model": model, "search": {**searching["search"], "space": []}}

    experiment = make_experiment(project=world.project, by=world.owner, spec=spec(first))
    make_trials(make_job(by=world.owner, experiment=experiment, state="completed"))
    is_known = [
        duration_history.past_durations(world.project, ExperimentSpec.model_validate(spec(code)), None)
        is not None
        for code in (first, next_one, other)
    ]
    assert is_known == [True, True, False]


def test_a_space_is_described_in_words(world: World, searching: dict[str, Any]) -> None:
    rows = [LAYERS, {**STEPPED, "default": 0.2, "when": {"name": "layers", "in": [2, 3]}}, FREE]
    found = plan.validate_spec(
        world.project, {**searching, "search": {**searching["search"], "space": rows}}
    ).plan
    assert found is not None
    assert [(line.name, line.takes, line.when) for line in found.summary] == [
        ("layers", "integers from 1 to 3", ""),
        ("dropout", "numbers from 0.0 to 0.5 in steps of 0.1; default 0.2", "layers is 2 or 3"),
        ("learning_rate", "numbers from 0.0001 to 0.1, log scale", ""),
    ]
