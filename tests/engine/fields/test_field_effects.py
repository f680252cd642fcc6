"""Every field of the experiment spec changes something, or accepts only one value."""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import ValidationError

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import problems
from jobs.spec.sections.model import model_json
from jobs.spec.templates import TEMPLATES
from tests.engine.fields import field_effects as probes
from tests.engine.fields import field_effects_in_rows as rows
from tests.engine.fields import field_effects_of_own_models as own
from tests.engine.helpers import csv_file, profiled
from tests.engine.sequences import waves
from tests.engine.texts import reviews
from webapp.forms.experiments.experiment.schema import VARIANTS, spec_leaves

pytestmark = pytest.mark.django_db

BASE = {"data": {"dataset": "flowers"}, "model": {"template": "mlp"}, "fit": {"epochs": 27}}
RATE = {"name": "learning_rate", "kind": "float", "min": 0.001, "max": 0.1}
SEARCH = {"/search": {"max_trials": 40, "space": [RATE]}}
MESH = {"/mesh": {"shape": [2], "axis_names": ["data"]}}
GPUS = {"/mesh": {"devices": "gpu", "shape": [2], "axis_names": ["data"]}}
LAYOUT = {"/mesh": {**MESH["/mesh"], "layout": [{"match": ".*/kernel", "axes": [None, "data"]}]}}
OVERRIDES = {"/precision/overrides": [{"match": "dense", "policy": "mixed_bfloat16"}]}
HALF = {"/precision/policy": "mixed_float16"}
FEW = {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd", "lion"]}
TWO = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss"}]
WINDOWS = {"/data/split/time": "a", "/data/window": {"rows": 2}}
ENSEMBLE = {**SEARCH, "/after": {"retrain": {"top": 2}}}
VERSION = {"/model": {"kind": "version", "model": "first", "number": 1}}
ALIAS = {"/model": {"kind": "version", "model": "first", "alias": "oldest"}}
CODE = {"/model": {"kind": "code", "digest": own.DIGEST, "entry": "build_model"}}
SCRIPT = {"/model": {"kind": "script", "digest": own.DIGEST, "entry": "train.py"}}
REGISTER = {"/after": {"register": {"model": "first"}, "quantize": {}}}

PARENT = {"name": "seed", "kind": "int", "min": 0, "max": 3}
ROWS: dict[str, dict[str, Any]] = {
    "int": {"name": "units", "min": 1, "max": 100},
    "float": {"name": "learning_rate", "min": 0.01, "max": 1.0},
    "boolean": {"name": "shuffle"},
    "choice": {"name": "optimizer", "values": ["adam", "sgd", "lion"]},
    "fixed": {"name": "epochs", "value": 5},
}
SPACE_VALUES: dict[str, Any] = {
    "name": "clipvalue", "when": {"name": "seed", "in": [0]}, "sampling": "log", "min": 0.5, "max": 90,
    "step": 0.3, "default": 0.7, "values": ["adam", "nadam"], "value": 6,
}  # fmt: skip
WHOLE_VALUES: dict[str, Any] = {**SPACE_VALUES, "min": 30, "step": 30, "default": 70}


class Effect(NamedTuple):
    """Another value of a field, and the probe that shows the change.

    Attributes:
        probe: returns something that Trainyard makes from a spec.
        value: differs from the default.
        settings: settings by pointer that both specs have, because the field needs them.
    """

    probe: probes.Probe
    value: Any
    settings: dict[str, Any] = {}


def space_effects() -> dict[str, Effect]:
    """Return the effects that fields have in each hyperparameter kind."""
    effects = {}
    for kind, row in ROWS.items():
        settings = {"/search": {"max_trials": 40, "space": [PARENT, {**row, "kind": kind}]}}
        others: dict[str, dict[str, Any]] = {
            "boolean": {"default": True},
            "choice": {"default": "sgd"},
            "int": WHOLE_VALUES,
        }
        for name, value in (SPACE_VALUES | others.get(kind, {})).items():
            if (pointer := f"/search/space/*:{kind}/{name}") in spec_leaves():
                effects[pointer] = Effect(probes.proposals, value, settings)
    return effects


EFFECTS: dict[str, Effect] = {
    "/data/dataset": Effect(rows.dataset_version, "trees"),
    "/data/dataset_version": Effect(rows.dataset_version, 1),
    "/data/target": Effect(probes.data, "amount"),
    "/data/features": Effect(probes.data, ["a"]),
    "/data/task": Effect(probes.data, "regression", {"/data/target": "count"}),
    "/data/preprocessing": Effect(
        probes.data, {"count": {"encode": "one_hot"}}, {"/data/features": ["a", "count"]}
    ),
    "/data/split/validation": Effect(probes.data, 0.3),
    "/data/split/test": Effect(probes.data, 0.3),
    "/data/split/seed": Effect(probes.data, 1),
    "/data/split/stratify": Effect(probes.data, False),
    "/data/split/group": Effect(probes.data, "group"),
    "/data/split/column": Effect(probes.data, "part"),
    "/data/split/time": Effect(probes.data, "a"),
    "/data/window/rows": Effect(probes.data, 3, WINDOWS),
    "/data/window/horizon": Effect(probes.data, 1, WINDOWS),
    "/data/window/time": Effect(probes.data, "b", WINDOWS),
    "/data/window/group": Effect(probes.data, "group", WINDOWS),
    "/data/split/use_roles": Effect(probes.grouped_data, False),
    "/model/template": Effect(probes.layers, "linear"),
    "/model/model": Effect(own.base_version, "second", VERSION),
    "/model/number": Effect(own.base_version, 2, VERSION),
    "/model/alias": Effect(own.base_version, "newest", ALIAS),
    "/model/args/freeze_to": Effect(own.fine_tuned, "first", VERSION),
    "/model/args/head": Effect(own.fine_tuned, "new", VERSION),
    "/model/args/learning_rate_factor": Effect(own.fine_tuned, 0.5, VERSION),
    "/model/digest": Effect(own.code, "d" * 64, CODE),
    "/model/normalize": Effect(own.layers_around_code, True, CODE),
    "/model/hyperparameters": Effect(own.values, {"layers": 2}, CODE),
    "/model/entry": Effect(own.command, "-m package.train", SCRIPT),
    "/model/env": Effect(own.command, {"LEVEL": "2"}, SCRIPT),
    "/model/args/units": Effect(probes.layers, 8),
    "/model/args/layers": Effect(probes.layers, 3),
    "/model/args/dropout": Effect(probes.layers, 0.5),
    "/model/args/activation": Effect(probes.layers, "tanh"),
    "/model/args/batch_norm": Effect(probes.layers, True),
    "/model/args/filters": Effect(probes.layers, 8),
    "/model/args/kernel": Effect(probes.layers, 5),
    "/model/args/kind": Effect(probes.layers, "gru", {"/model/template": "sequence"}),
    "/model/args/kernel_steps": Effect(
        probes.layers, 5, {"/model/template": "sequence", "/model/args/kind": "conv"}
    ),
    "/model/args/steps": Effect(probes.layers, 2),
    "/model/args/stages": Effect(probes.layers, 2),
    "/model/args/stem": Effect(probes.layers, "large"),
    "/model/args/l2": Effect(probes.layers, 0.1),
    "/model/args/method": Effect(probes.layers, "extra_trees"),
    "/model/args/leaves": Effect(probes.layers, 2),
    "/model/args/depth": Effect(probes.layers, 1),
    "/model/args/min_rows": Effect(probes.layers, 3),
    "/model/args/features": Effect(probes.layers, 0.1),
    "/model/args/shrinkage": Effect(probes.layers, 0.5),
    "/data/texts": Effect(probes.data, "words", {"/model/template": "text_bow"}),
    "/model/args/hidden": Effect(probes.layers, 8),
    "/model/args/dim": Effect(probes.layers, 8),
    "/model/args/blocks": Effect(probes.layers, 3),
    "/model/args/heads": Effect(probes.layers, 4),
    "/model/args/expansion": Effect(probes.layers, 1),
    "/fit/epochs": Effect(probes.epochs, 7),
    "/fit/batch_size": Effect(probes.training, 8),
    "/fit/optimizer": Effect(probes.optimizer, "sgd"),
    "/fit/learning_rate": Effect(probes.optimizer, 0.1),
    "/fit/loss": Effect(probes.training, "mae", {"/data/target": "amount"}),
    "/fit/metrics": Effect(probes.training, ["top_5_accuracy"]),
    "/fit/early_stopping/monitor": Effect(probes.epochs, "val_accuracy"),
    "/fit/early_stopping/patience": Effect(probes.epochs, 2),
    "/fit/early_stopping/min_delta": Effect(probes.epochs, 0.1),
    "/fit/early_stopping/restore_best": Effect(probes.epochs, False),
    "/fit/clipnorm": Effect(probes.optimizer, 1.0),
    "/fit/clipvalue": Effect(probes.optimizer, 1.0),
    "/fit/global_clipnorm": Effect(probes.optimizer, 1.0),
    "/fit/ema/momentum": Effect(probes.optimizer, 0.5),
    "/fit/ema/overwrite_frequency": Effect(probes.optimizer, 5),
    "/fit/class_weights": Effect(probes.training, "balanced"),
    "/fit/augmentation/flip": Effect(probes.layers, "both"),
    **{
        f"/fit/augmentation/{name}": Effect(probes.layers, 0.2)
        for name in ("rotation", "zoom", "translation", "contrast", "brightness")
    },
    "/fit/shuffle": Effect(probes.training, False),
    "/fit/steps_per_execution": Effect(probes.training, 3),
    "/fit/seed": Effect(probes.training, 1),
    "/fit/optimizer_args/weight_decay": Effect(probes.optimizer, 0.1),
    "/fit/optimizer_args/gradient_accumulation_steps": Effect(probes.optimizer, 4),
    "/fit/optimizer_args/beta_1": Effect(probes.optimizer, 0.5),
    "/fit/optimizer_args/beta_2": Effect(probes.optimizer, 0.5),
    "/fit/optimizer_args/epsilon": Effect(probes.optimizer, 0.1),
    "/fit/optimizer_args/amsgrad": Effect(probes.optimizer, True),
    "/fit/optimizer_args/rho": Effect(probes.optimizer, 0.5),
    "/fit/optimizer_args/momentum": Effect(probes.optimizer, 0.5),
    "/fit/optimizer_args/centered": Effect(probes.optimizer, True),
    "/fit/optimizer_args/nesterov": Effect(probes.optimizer, True),
    "/fit/optimizer_args/initial_accumulator_value": Effect(probes.optimizer, 0.5),
    "/fit/schedule/kind": Effect(probes.optimizer, "step", {"/fit/schedule": {"kind": "cosine"}}),
    "/fit/schedule/epochs": Effect(probes.optimizer, 50),
    "/fit/schedule/alpha": Effect(probes.optimizer, 0.5),
    "/fit/schedule/warmup_epochs": Effect(probes.optimizer, 2),
    "/fit/schedule/first_epochs": Effect(probes.optimizer, 5),
    "/fit/schedule/t_mul": Effect(probes.optimizer, 3),
    "/fit/schedule/m_mul": Effect(probes.optimizer, 0.5),
    "/fit/schedule/factor": Effect(probes.optimizer, 0.3),
    "/fit/schedule/every": Effect(probes.optimizer, 3),
    "/fit/schedule/power": Effect(probes.optimizer, 2),
    "/fit/schedule/at": Effect(probes.optimizer, [2]),
    "/fit/schedule/monitor": Effect(probes.optimizer, "val_accuracy"),
    "/fit/schedule/patience": Effect(probes.optimizer, 1),
    "/fit/schedule/min_delta": Effect(probes.optimizer, 0.5),
    "/fit/schedule/cooldown": Effect(probes.optimizer, 3),
    "/fit/schedule/min_learning_rate": Effect(probes.optimizer, 0.0009),
    "/search/algorithm": Effect(probes.proposals, "grid", SEARCH),
    "/search/options/factor": Effect(probes.proposals, 2, SEARCH),
    "/search/options/min_epochs": Effect(probes.proposals, 5, SEARCH),
    "/search/options/max_epochs": Effect(
        probes.proposals, 12, {**SEARCH, "/search/options": {"min_epochs": 2}}
    ),
    "/search/options/iterations": Effect(probes.proposals, 2, {**SEARCH, "/search/max_trials": 200}),
    "/search/objective/metric": Effect(probes.trial, "val_accuracy", SEARCH),
    "/search/objective/direction": Effect(rows.ranking, "max", SEARCH),
    "/search/objectives/*/metric": Effect(rows.ranking, "val_mae", {**SEARCH, "/search/objectives": TWO}),
    "/search/objectives/*/direction": Effect(rows.ranking, "max", {**SEARCH, "/search/objectives": TWO}),
    "/search/max_trials": Effect(probes.proposals, 3, SEARCH),
    "/search/max_minutes": Effect(rows.ended_after_five_minutes, 4, SEARCH),
    "/search/start_with": Effect(rows.first_trials, [{"learning_rate": 0.05}], SEARCH),
    "/search/executions_per_trial": Effect(rows.executions, 3, SEARCH),
    "/search/parallel_trials": Effect(rows.request, 1, SEARCH),
    "/search/evaluation/kind": Effect(
        rows.executions, "k_fold", {**SEARCH, "/search/evaluation": {"kind": "holdout"}}
    ),
    "/search/evaluation/folds": Effect(rows.executions, 3, SEARCH),
    "/search/max_consecutive_failures": Effect(rows.patience_with_failures, 1, SEARCH),
    "/search/duplicates": Effect(probes.proposals, "train", {"/search": {"max_trials": 9, "space": [FEW]}}),
    "/search/warm_start": Effect(rows.request, 1, {**SEARCH, "/search/algorithm": "tpe"}),
    "/search/seed": Effect(probes.proposals, 1, SEARCH),
    "/search/pruner/kind": Effect(probes.verdicts, "asha", {**SEARCH, "/search/pruner": {"kind": "median"}}),
    "/search/pruner/startup_trials": Effect(probes.verdicts, 9, SEARCH),
    "/search/pruner/warmup_epochs": Effect(probes.verdicts, 4, SEARCH),
    "/search/pruner/interval": Effect(probes.verdicts, 2, SEARCH),
    "/search/pruner/factor": Effect(probes.verdicts, 2, SEARCH),
    "/search/pruner/min_epochs": Effect(probes.verdicts, 5, SEARCH),
    "/search/pruner/max_epochs": Effect(probes.verdicts, 12, SEARCH),
    **space_effects(),
    "/mesh/devices": Effect(probes.runner, "gpu", MESH),
    "/mesh/shape": Effect(probes.runner, [4], MESH),
    "/mesh/axis_names": Effect(probes.distribution, ["rows"], {**MESH, "/mesh/batch_axis": None}),
    "/mesh/batch_axis": Effect(probes.distribution, None, MESH),
    "/mesh/simulate": Effect(probes.hours, 2, MESH),
    "/mesh/layout/*/match": Effect(probes.distribution, "output/kernel", LAYOUT),
    "/mesh/layout/*/axes": Effect(probes.distribution, ["data", None], LAYOUT),
    "/mesh/preallocate": Effect(probes.runner, True, GPUS),
    "/mesh/memory_fraction": Effect(probes.runner, 0.4, GPUS),
    "/precision/policy": Effect(probes.layers, "mixed_bfloat16"),
    "/precision/loss_scale": Effect(probes.optimizer, 128.0, HALF),
    "/precision/overrides/*/match": Effect(probes.layers, "output", OVERRIDES),
    "/precision/overrides/*/policy": Effect(probes.layers, "mixed_float16", OVERRIDES),
    "/precision/matmul": Effect(probes.runner, "highest"),
    "/after/retrain/top": Effect(rows.retrained, 2, SEARCH),
    "/after/retrain/epochs_factor": Effect(probes.epochs, 2.0),
    "/after/retrain/include_validation": Effect(probes.epochs, False),
    "/after/retrain/patience": Effect(probes.epochs, 3),
    "/after/retrain/epochs_cap": Effect(probes.epochs, 50),
    "/after/retrain/monitor": Effect(probes.epochs, "val_accuracy"),
    "/after/ensemble/method": Effect(probes.ensemble_weights, "mean", ENSEMBLE),
    "/after/quantize/mode": Effect(own.smaller_model, "bfloat16", {"/after": {"quantize": {}}}),
    "/after/register/model": Effect(rows.versions, "second", REGISTER),
    "/after/register/what": Effect(rows.versions, ["best", "quantized"], REGISTER),
    "/resources/pool": Effect(rows.placement, "large"),
    "/resources/slots": Effect(rows.placement, 2),
    "/resources/labels": Effect(rows.placement, {"gpu": "h200"}),
    "/resources/gpu/name": Effect(probes.given_gpus, "H200"),
    "/resources/gpu/memory_gb": Effect(probes.given_gpus, 100.0),
    "/resources/gpu/count": Effect(probes.given_gpus, 2, {"/resources/slots": 2, "/resources/gpu": {}}),
    "/resources/priority": Effect(rows.placement, 90),
    "/resources/max_restarts": Effect(rows.restarts, 0),
    "/resources/max_minutes": Effect(rows.ended_after_half_an_hour, 20),
    "/resources/memory_gib": Effect(probes.cap, 3.0),
}

XCEPTION_VALUES = {
    "activation": "selu", "conv2d_num_filters": 8, "kernel_size": 5, "initial_strides": 4,
    "sep_num_filters": 8, "num_residual_blocks": 2, "pooling": "max", "num_dense_layers": 2,
    "dropout_rate": 0.2, "dense_use_bn": False,
}  # fmt: skip
XCEPTION = {"conv2d_num_filters": 4, "sep_num_filters": 4, "num_residual_blocks": 1}
RESNET_VALUES = {"version": "v1", "conv3_depth": 3, "conv4_depth": 3, "pooling": "max"}
RESNET = {"conv3_depth": 2, "conv4_depth": 2}
HYPERMODEL_EFFECTS: dict[tuple[str, str], Effect] = {
    (f"/model/args/{name}", kind): Effect(probes.hypermodel_layers, value, {"/model/args": small})
    for kind, small, values in (
        ("HyperXception", XCEPTION, XCEPTION_VALUES),
        ("HyperResNet", RESNET, RESNET_VALUES),
    )
    for name, value in values.items()
}
HYPERMODEL_EFFECTS["/model/name", ""] = Effect(
    probes.hypermodel_layers, "HyperResNet", {"/model": model_json("HyperXception")}
)
"""By pointer and name of the hypermodel, since templates have arguments of the same names."""

ONE_VALUE: dict[tuple[str, str], Any] = {
    ("/version", ""): 2,
    ("/model/kind", ""): "unknown",
    ("/resources/hosts", ""): 2,
    ("/after/ensemble/weights", ""): "equal",
    ("/search/options/iterations", "asha"): 2,
    **{(f"/search/space/*:{kind}/kind", ""): "normal" for kind in ROWS},
}
"""Fields with a single value, by pointer and kind of the object, with a value that is refused."""


def fields() -> Iterator[tuple[str, str]]:
    """Yield every field's pointer, and the kind of its object, if that has kinds."""
    arguments = set()
    for variant in VARIANTS.values():
        for kind, model in variant.kinds.items():
            for name in [name for name in model.model_fields if name != "kind"]:
                arguments.add(f"{variant.arguments}/{name}")
                yield f"{variant.arguments}/{name}", kind
    yield from ((pointer, "") for pointer in spec_leaves() if pointer not in arguments)


WALKED = [field for field in fields() if field not in ONE_VALUE]
_found: dict[tuple[probes.Probe, str], Any] = {}


def place(pointer: str) -> list[str | int]:
    """Return the keys that lead to a field, with the last item in each list that has several."""
    index = 1 if "/space/" in pointer or "/objectives/" in pointer else 0
    return [index if part.startswith("*") else part for part in pointer.split("/")[1:]]


def put(body: dict[str, Any], pointer: str, value: Any) -> None:
    """Set a field, and create the objects around it."""
    *above, last = place(pointer)
    here: Any = body
    for key in above:
        here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]
    if value is not ...:
        here[last] = value


def body_with(pointer: str, kind: str, settings: dict[str, Any], value: Any = ...) -> dict[str, Any]:
    """Return a spec with `settings`, an object of this kind, and the value."""
    body: dict[str, Any] = deepcopy(BASE)
    for where, setting in settings.items():
        put(body, where, deepcopy(setting))
    selector = next((name for name, v in VARIANTS.items() if pointer.startswith(v.arguments + "/")), "")
    if kind in TEMPLATES and TEMPLATES[kind].is_hypermodel:
        body["model"] = model_json(kind, body["model"].get("args", {}))
    elif kind and body["model"].get("kind") != kind:
        put(body, selector, kind)
    if kind == "piecewise":
        put(body, "/fit/schedule/at", [3])
    put(body, pointer, value)
    return body


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> probes.Files:
    folder = tmp_path_factory.mktemp("fields")
    rng = np.random.default_rng(0)
    lines = ["a,b,c,label,count,amount,group,part"]
    for i in range(60):
        part = ("train", "train", "validation", "test")[i % 4]
        numbers = ",".join(f"{number:.4f}" for number in rng.normal(size=3))
        lines.append(f"{numbers},{'xyyzzz'[i % 6]},{i % 3},{rng.normal():.4f},g{i % 10},{part}")
    path = csv_file(folder, "\n".join(lines) + "\n")
    vectors = profiled(folder / "v", source="csv", path=path, target="label", features=("a", "b", "c"))
    np.savez(folder / "images.npz", x=rng.integers(0, 255, (30, 8, 8, 1), np.uint8), y=np.arange(30) % 3)
    roles = [ColumnRequest(name="group", role="group")]
    grouped = profiled(folder / "g", source="csv", path=path, target="label", columns=roles)
    images = profiled(folder / "i", source="npz", path=str(folder / "images.npz"))
    return probes.Files(vectors, images, grouped, reviews(folder / "t", rows=60), waves(folder))


def effect_of(pointer: str, kind: str) -> Effect | None:
    """Return a field's effect; None if there is no probe for it."""
    if kind in TEMPLATES and TEMPLATES[kind].is_hypermodel:
        return HYPERMODEL_EFFECTS.get((pointer, kind))
    return EFFECTS.get(pointer) or HYPERMODEL_EFFECTS.get((pointer, kind))


def spec_with(pointer: str, kind: str, effect: Effect, value: Any = ...) -> ExperimentSpec:
    return ExperimentSpec.model_validate(body_with(pointer, kind, effect.settings, value))


def found_by(probe: probes.Probe, spec: ExperimentSpec, files: probes.Files) -> Any:
    """Return a probe's result for a spec. Many fields have the same one, without their own value."""
    # Other modules have probes that read rows of the test's database.
    if probe.__module__ != probes.__name__:
        return probe(spec, files)
    key = probe, str(spec.to_json())
    if key not in _found:
        _found[key] = probe(spec, files)
    return _found[key]


@pytest.mark.parametrize(("pointer", "kind"), WALKED)
def test_every_field_changes_something(pointer: str, kind: str, files: probes.Files) -> None:
    effect = effect_of(pointer, kind)
    assert effect, "a new field needs a probe that shows the change"
    probe, value, _ = effect
    before = found_by(probe, spec_with(pointer, kind, effect), files)
    after = probe(spec_with(pointer, kind, effect, value), files)
    changed = before != after
    assert changed, f"{pointer} has no effect: {probe.__name__} returns the same for {value!r} as without it"


@pytest.mark.parametrize(
    ("pointer", "kind"),
    {effect.probe: field for field in reversed(WALKED) if (effect := effect_of(*field))}.values(),
)
def test_a_probe_returns_the_same_for_equal_specs(
    pointer: str, kind: str, files: probes.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = effect_of(pointer, kind)
    assert effect
    probe, value, _ = effect
    first = probe(spec_with(pointer, kind, effect, value), files)
    # Its result for the default may be of an earlier test, during which the process was in another state.
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another one")
    assert probe(spec_with(pointer, kind, effect, value), files) == first


@pytest.mark.parametrize(("pointer", "kind"), ONE_VALUE)
def test_a_field_with_one_value_refuses_others_by_its_name(pointer: str, kind: str) -> None:
    settings = {**SEARCH} if pointer.startswith("/search") else {}
    if pointer.startswith("/search/space"):
        settings = {"/search": {"space": [PARENT, {**RATE, "kind": re.findall(r":(\w+)", pointer)[0]}]}}
    body = body_with(pointer, kind, settings, ONE_VALUE[pointer, kind])
    with pytest.raises(ValidationError) as refused:
        ExperimentSpec.model_validate(body)
    (problem, *_) = problems(refused.value, body)
    assert "/".join(["", *map(str, place(pointer))]).startswith(problem.pointer) and problem.pointer


def test_no_effect_is_listed_for_a_field_that_does_not_exist() -> None:
    existing = set(fields())
    assert EFFECTS.keys() <= {pointer for pointer, _ in existing}
    assert HYPERMODEL_EFFECTS.keys() <= existing
