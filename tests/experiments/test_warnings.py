"""The plan's warnings: each has a setting's consequence and the next step."""

from typing import Any

import pytest

from jobs.spec.checks import data as data_checks
from jobs.spec.checks import settings as spec_checks
from jobs.spec.data.profile import Column, Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.plan import Situation
from jobs.spec.plan.planning import make_plan
from jobs.spec.plan.warnings import size_warnings
from jobs.spec.sections.data import Window
from jobs.spec.sections.gpu import GpuDevice
from jobs.spec.sections.resources import WorkerSize
from jobs.spec.templates import TEMPLATES
from tests.datasets.making import DIGITS
from tests.experiments.data_of_templates import new_experiment
from tests.next_steps import has_next_step
from tests.present import present

PROFILE = Profile.model_validate(DIGITS)
BASE: dict[str, Any] = {"data": {"dataset": "digits"}, "model": {"kind": "template", "template": "mlp"}}
UNITS = {"name": "units", "kind": "choice", "values": [8, 16]}
SEED = {"name": "seed", "kind": "choice", "values": [1, 2]}
EPOCHS = {"name": "epochs", "kind": "choice", "values": [5, 10]}
ROOM = Situation(free_slots=4, workers=(WorkerSize(4),))


CODE = {"model": {"kind": "code", "digest": "a" * 64, "entry": "build_model"}}


def of_gpus(*reasons: str) -> Situation:
    gpus = (GpuDevice("gpu:0"), GpuDevice("gpu:1"))
    return Situation(free_slots=4, workers=(WorkerSize(4, ("gpu:0", "gpu:1"), reasons, gpus),))


def search(*space: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"search": {"executions_per_trial": 2, "space": list(space or (UNITS,)), "max_trials": 2, **more}}


def stopping(**fit: Any) -> dict[str, Any]:
    return {"fit": {"early_stopping": {"monitor": "val_loss", "patience": 5}, **fit}}


WRONG_WAY = {"metric": "val_accuracy", "direction": "min"}
RIGHT_WAY = {"metric": "val_accuracy", "direction": "max"}
WEIGHTED = {"class_weights": "balanced"}
UNMATCHED = "/precision/overrides/0/match"
TWO_GPUS = {"mesh": {"shape": [2], "axis_names": ["x"], "batch_axis": None, "devices": "gpu"}}
MATMUL = "/precision/matmul"
TWO_CPUS = {"shape": [2], "axis_names": ["data"]}
BEST = "/fit/early_stopping/restore_best"
PATIENCE = "/fit/early_stopping/patience"
PATIENT = {"fit": {"early_stopping": {"patience": 7}}}
KEEPS_LAST = {"fit": {"early_stopping": {"restore_best": False}}}
RETRAINED = {"after": {"retrain": {"epochs_factor": 2}}}
CASES: list[tuple[dict[str, Any], Situation, set[str]]] = [
    (CODE, of_gpus("no", "no"), {"/model/entry"}),
    (CODE, of_gpus("", "no"), set()),
    (CODE | TWO_GPUS | {"resources": {"slots": 2}}, of_gpus("", "no"), {"/mesh/devices"}),
    (CODE | {"resources": {"gpu": {}}}, of_gpus("no", "no"), {"/resources/gpu"}),
    ({"data": {"dataset": "digits", "task": "multiclass", "target": "other"}}, ROOM, {"/data"}),
    (search(objective=WRONG_WAY), ROOM, {"/search/objective/direction"}),
    (search(executions_per_trial=1), ROOM, {"/search/executions_per_trial"}),
    (search(EPOCHS), ROOM, {"/search/space"}),
    ({**search(SEED), "after": {"retrain": {"top": 2}, "ensemble": {}}}, ROOM, {"/after/ensemble"}),
    ({"after": {"retrain": {"epochs_factor": 1.1}}}, ROOM, {"/after/retrain/epochs_factor"}),
    ({"precision": {"policy": "mixed_float16"}}, ROOM, {"/precision/policy"}),
    ({"precision": {"policy": "float8"}}, ROOM, {"/precision/policy"}),
    (
        {"precision": {"policy": "float64", "matmul": "high"}},
        ROOM,
        {"/precision/policy", MATMUL},
    ),
    ({"precision": {"matmul": "highest"}, "mesh": TWO_CPUS}, ROOM, {MATMUL}),
    ({"precision": {"policy": "float64"}}, ROOM, {"/precision/policy"}),
    (
        {
            "mesh": {"shape": [2], "axis_names": ["x"], "batch_axis": None, "simulate": 2},
            "resources": {"slots": 3},
        },
        ROOM,
        {"/mesh/shape", "/mesh/simulate", "/resources/slots"},
    ),
    ({"fit": {"epochs": 60}}, ROOM, {"/fit/early_stopping"}),
    ({**search(algorithm="hyperband"), "fit": {"epochs": 2}}, ROOM, {"/fit/epochs"}),
    ({**search(algorithm="hyperband", max_trials=1), "fit": {"epochs": 9}}, ROOM, {"/fit/epochs"}),
    (
        {**search(algorithm="asha", options={"max_epochs": 2}), "fit": {"epochs": 9}},
        ROOM,
        {"/search/options/max_epochs"},
    ),
    ({**search(algorithm="hyperband"), "fit": {"epochs": 3}}, ROOM, set()),
    ({**KEEPS_LAST, **RETRAINED}, ROOM, {BEST}),
    ({**search(), **KEEPS_LAST}, ROOM, {BEST}),
    ({**PATIENT, **RETRAINED}, ROOM, {PATIENCE}),
    ({**search(), "resources": {"max_minutes": 5}, **RETRAINED}, ROOM, {"/resources/max_minutes"}),
    (stopping(epochs=5), ROOM, {PATIENCE}),
    (stopping(schedule={"kind": "reduce_on_plateau", "patience": 5}), ROOM, {"/fit/schedule/patience"}),
    ({**search(EPOCHS), **stopping(schedule={"kind": "cosine"})}, ROOM, {"/fit/schedule"}),
    ({"fit": {"batch_size": 4096}}, ROOM, {"/fit/batch_size"}),
    ({"fit": {"steps_per_execution": 5000}}, ROOM, {"/fit/steps_per_execution"}),
    (
        {
            **search(objective=RIGHT_WAY),
            **stopping(**WEIGHTED),
            "after": {"retrain": {"monitor": "val_loss", "epochs_factor": 2}},
        },
        ROOM,
        {"/fit/early_stopping/monitor", "/after/retrain/monitor"},
    ),
    (search(algorithm="grid", max_trials=1), ROOM, {"/search/max_trials"}),
    (search(max_trials=9), ROOM, {"/search/max_trials"}),
    (search(pruner={"kind": "median", "warmup_epochs": 50}), ROOM, {"/search/pruner/warmup_epochs"}),
    (search(pruner={"kind": "median", "startup_trials": 5}), ROOM, {"/search/pruner/startup_trials"}),
    (search(pruner={"kind": "asha", "min_epochs": 50}), ROOM, {"/search/pruner/min_epochs"}),
    ({}, Situation(0), {"/resources/pool"}),
    ({"resources": {"slots": 9}}, ROOM, {"/resources/slots"}),
]


@pytest.mark.parametrize(("settings", "now", "pointers"), CASES, ids=lambda case: "")
def test_a_warning_has_its_consequence_and_the_next_step(
    settings: dict[str, Any], now: Situation, pointers: set[str]
) -> None:
    spec = ExperimentSpec.model_validate({**BASE, "fit": {"epochs": 50}, **settings})
    messages = {w.pointer: w.message for w in make_plan(spec, PROFILE, now, ["train"]).warnings}
    assert pointers <= messages.keys()
    assert [message for message in messages.values() if not has_next_step(message)] == []


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"precision": {"matmul": "highest"}}, MATMUL),
        (KEEPS_LAST, BEST),
        ({**search(), **KEEPS_LAST, "after": {"register": {"model": "m"}}}, BEST),
        (
            {**search(), "fit": {"early_stopping": {"patience": 7}}, **RETRAINED},
            "/fit/early_stopping/patience",
        ),
    ],
)
def test_a_setting_that_some_training_follows_is_not_warned_of(
    settings: dict[str, Any], pointer: str
) -> None:
    spec = ExperimentSpec.model_validate({**BASE, **settings})
    assert pointer not in {w.pointer for w in make_plan(spec, PROFILE, ROOM, ["train"]).warnings}


@pytest.mark.parametrize(
    "match", ["dense_1", "^drop", "activation_[12]$", "normalize", "batch_norm", "dense_3"]
)
def test_an_override_that_some_trial_of_the_search_needs_is_accepted(match: str) -> None:
    space = (
        UNITS,
        {"name": "layers", "kind": "int", "min": 1, "max": 3},
        {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5},
        {"name": "batch_norm", "kind": "boolean"},
    )
    precision = {"overrides": [{"match": match, "policy": "float32"}]}
    spec = ExperimentSpec.model_validate({**BASE, **search(*space), "precision": precision})
    assert UNMATCHED not in {problem.pointer for problem in data_checks.problems(spec, PROFILE)}


@pytest.mark.parametrize("space", [(), (UNITS,)])
def test_an_override_that_matches_no_layer_of_any_model_is_refused(space: tuple[Any, ...]) -> None:
    precision = {"overrides": [{"match": match, "policy": "float32"} for match in ("dense_", "dens_")]}
    searched = search(*space) if space else {}
    spec = ExperimentSpec.model_validate({**BASE, **searched, "precision": precision})
    (problem,) = data_checks.problems(spec, PROFILE)
    assert problem.pointer == "/precision/overrides/1/match"
    assert "no layer has 'dens_' in its name" in problem.message and "dense_1" in problem.message


HALF = {"match": "dense", "policy": "mixed_float16"}


@pytest.mark.parametrize(
    ("model", "precision", "is_refused"),
    [
        ({}, {"loss_scale": 128}, True),
        ({}, {"loss_scale": "none"}, True),
        ({}, {"loss_scale": 128, "policy": "mixed_bfloat16"}, True),
        ({}, {"loss_scale": "dynamic"}, False),
        ({}, {"loss_scale": 128, "policy": "mixed_float16"}, False),
        ({}, {"loss_scale": "none", "overrides": [HALF]}, False),
        # Its layers may compute in float16 by themselves.
        (CODE, {"loss_scale": 128}, False),
    ],
)
def test_a_loss_scale_without_a_layer_in_float16_is_refused(
    model: dict[str, Any], precision: dict[str, Any], *, is_refused: bool
) -> None:
    spec = ExperimentSpec.model_validate({**BASE, **model, "precision": precision})
    pointers = [problem.pointer for problem in spec_checks.problems(spec)]
    assert pointers == ["/precision/loss_scale"] * is_refused


def test_a_schedule_that_follows_the_metric_needs_no_warning_when_epochs_are_searched() -> None:
    spec = ExperimentSpec.model_validate(
        {**BASE, **search(EPOCHS), "fit": {"schedule": {"kind": "reduce_on_plateau"}}}
    )
    assert "/fit/schedule" not in {w.pointer for w in make_plan(spec, PROFILE, ROOM, ["search"]).warnings}


def test_a_retraining_without_the_validation_rows_has_no_warning_about_its_epochs() -> None:
    after = {"retrain": {"include_validation": False}}
    spec = ExperimentSpec.model_validate({**BASE, "after": after})
    pointers = {w.pointer for w in make_plan(spec, PROFILE, ROOM, ["train"]).warnings}
    assert "/after/retrain/epochs_factor" not in pointers


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_experiment_with_its_defaults_has_no_warning(template: str) -> None:
    body, profile = new_experiment(template)
    spec = ExperimentSpec.model_validate(body)
    found = {w.pointer for w in make_plan(spec, profile, ROOM, ["search"]).warnings}
    # A hypermodel is never chosen by default; the warnings are about the choice itself.
    assert found == ({"/model/name"} if TEMPLATES[template].is_hypermodel else set())


def table_of(rows: int) -> Profile:
    columns = [{"name": f"n{i}", "role": "feature", "type": "number", "dtype": "float64"} for i in range(100)]
    return PROFILE.model_copy(
        update={
            "rows": rows,
            "kind": "vector",
            "features": tuple(column["name"] for column in columns),
            "columns": tuple(Column.model_validate(column) for column in columns),
            "has_pipeline": True,
            "images": None,
            "input_shape": (100,),
        }
    )


@pytest.mark.parametrize(("template", "says"), [("mlp", "reads them from"), ("trees", "which trees cannot")])
def test_the_plan_says_which_runs_read_a_large_table_while_they_train(template: str, says: str) -> None:
    spec = ExperimentSpec.model_validate({**BASE, "model": {"kind": "template", "template": template}})

    def data_warnings(rows: int) -> list[str]:
        return [
            w.message
            for w in make_plan(spec, table_of(rows), ROOM, ["train"]).warnings
            if w.pointer == "/data"
        ]

    assert data_warnings(1_000_000) == []
    (message,) = data_warnings(10_000_000)
    assert says in message
    windows = present(spec.data).model_copy(update={"window": Window(rows=10)})
    windowed = spec.model_copy(update={"data": windows})
    (message_of_windows,) = size_warnings(windowed, table_of(1_000_000))
    assert "which is not possible for windows" in message_of_windows.message
    assert "3.7 GiB with their columns encoded, and a run with less than 14.9 GiB of memory" in message


@pytest.mark.parametrize(
    ("objective", "is_refused"),
    [
        ({"metric": "val_confidence"}, True),
        ({"metric": "val_accuracy"}, True),
        ({"metric": "val_confidence", "direction": "min"}, False),
        ({"metric": "val_loss"}, False),
        ({}, False),
    ],
)
def test_the_direction_of_a_metric_of_own_code_has_no_default(
    objective: dict[str, str], *, is_refused: bool
) -> None:
    model = {"kind": "code", "digest": "a" * 64, "entry": "build_model"}
    spec = ExperimentSpec.model_validate({**BASE, **search(objective=objective), "model": model})
    pointers = [problem.pointer for problem in spec_checks.problems(spec)]
    assert pointers == ["/search/objective/direction"] * is_refused
