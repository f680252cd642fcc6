"""A model that is built without values has the variables of the real one, and no bytes."""

from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
import pytest

from jobs.spec.checks.dry_build import BuiltModel, DataShape
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.model_state import ModelState
from jobs.spec.policies import needs_double
from jobs.spec.sections.precision import Policy
from tests import own_code, own_models
from tests.engine.helpers import spec_of
from tests.engine.models import test_fine_tuning as tuning
from tests.engine.models.test_hypermodels import IMAGES
from tests.engine.models.test_own_code import IRIS, dry_built
from tests.engine.models.test_variables import MODELS, built, image_profile
from workers.engine.models import keras_private
from workers.engine.models.abstract import abstract_models
from workers.engine.models.abstract.abstract_build import AbstractBuild, StepModel, build_abstract, state_of
from workers.engine.models.code_models.code_build import build_code
from workers.engine.models.own_code.entries import entry_of
from workers.engine.models.own_code.in_use import using_code
from workers.engine.models.precision import compute_in_double, policy_of_code

VECTOR = {
    "rows": 90, "task": "multiclass", "target": "y", "features": ("a", "b", "c", "d"), "outputs": 3,
    "columns": (), "preview": (), "kind": "vector", "input_shape": (4,),
}  # fmt: skip
FUNCTIONAL = (
    own_code.IMPORTS
    + """
def build_model(hp):
    inputs = keras.Input((4,))
    x = layers.Dense(hp.Int("units", 8, 16), activation="relu", dtype="bfloat16")(inputs)
    x = layers.BatchNormalization()(layers.Dropout(0.1)(x))
    model = keras.Model(inputs, layers.Dense(3, activation="softmax", dtype="float32")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""
)
READS_VALUES = (
    own_code.IMPORTS
    + """
def build_model(hp):
    hp.Int("units", 4, 8)
    first = layers.Dense(4)
    first.build((None, 4))
    scale = float(np.abs(first.kernel.numpy()).max())
    model = keras.Sequential([keras.Input((4,)), first, layers.Rescaling(scale), layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""
)
UNSEEDED = (
    own_code.IMPORTS
    + """
def build_model(hp):
    hp.Int("units", 4, 8)
    noise = keras.random.normal((4,))
    inputs = keras.Input((4,))
    model = keras.Model(inputs, layers.Dense(3, "softmax")(inputs + noise))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""
)


def forms(variables: list[Any]) -> set[tuple[str, tuple[int, ...], str]]:
    return {(v.path, tuple(v.shape), str(v.dtype)) for v in variables}


def policies(model: Any) -> list[str]:
    layers = keras_private.layers_inside(model, include_self=False)
    leaves = [layer for layer in layers if layer.weights and not keras_private.has_layers(layer)]
    return sorted(layer.dtype_policy.name for layer in leaves)


def listed(state: ModelState) -> set[tuple[str, tuple[int, ...], str]]:
    return {(v.path, v.shape, v.dtype) for v in state.variables}


def of_code(folder: Path, text: str, entry: str = "build_model") -> tuple[AbstractBuild, set[Any]]:
    """Build code without values and with them; return the first, and the live variables of the second."""
    code = own_code.code_in(folder / "code", text)
    model = {"kind": "code", "digest": code.digest, "entry": entry}
    spec = ExperimentSpec.model_validate({"data": {"dataset": "d"}, "model": model})
    with using_code(code, folder):
        abstract = abstract_models.build_for_spec(spec, Profile.model_validate(VECTOR))
        live = forms(real_model(spec, IRIS).weights)
    return abstract, live


def real_model(spec: ExperimentSpec, shape: DataShape) -> Any:
    import keras_tuner

    keras.backend.clear_session(free_memory=False)
    hypermodel = entry_of(spec.model)  # type: ignore[arg-type]
    return build_code(hypermodel, keras_tuner.HyperParameters(), shape, policy_of_code(spec.precision)).model


@pytest.mark.parametrize(("template", "args"), MODELS)
def test_a_template_has_the_variables_of_its_formulas(template: str, args: dict[str, Any]) -> None:
    profile = image_profile()
    spec, model = built(template, args, profile)
    state = state_of(abstract_models.build_for_spec(spec, profile))
    assert listed(state) == forms(model.weights)
    assert {v.path for v in state.variables if v.trainable} == {v.path for v in model.trainable_variables}


def test_a_hypermodel_has_the_variables_of_the_real_one() -> None:
    profile = Profile.model_validate(IMAGES)
    spec, model = built("HyperXception", {}, profile)
    abstract = abstract_models.build_for_spec(spec, profile)
    assert not abstract.note and listed(state_of(abstract)) == forms(model.weights)


def test_a_version_that_is_trained_further_has_the_variables_of_the_real_model(tmp_path: Path) -> None:
    from workers.engine.models.build import build
    from workers.engine.models.scaling import Scaling

    spec = tuning.spec(tuning.stored(tuning.layered(), tmp_path), freeze_to="first", head="new")
    profile = Profile.model_validate(VECTOR)
    real = build(spec, profile, Scaling(np.zeros(4), np.ones(4)), name="x", seed=0)
    state = state_of(abstract_models.build_for_spec(spec, profile))
    assert listed(state) == forms(real.weights)
    frozen = {v.path for v in state.variables if not v.trainable}
    assert frozen == {v.path for v in real.non_trainable_variables if "seed" not in v.path}


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (FUNCTIONAL, "build_model"),
        (own_code.SEARCH_OF_LAYERS, "build_model"),
        (own_code.TUNED_FIT, "TunedFit"),
        (own_code.OWN_OBJECTS, "build_model"),
        (own_code.NOT_COMPILED, "build_model"),
        *((model.text, "build_model") for model in (own_models.PLAIN | own_models.ONE_CALL).values()),
    ],
)
def test_own_code_has_the_variables_of_the_real_model(tmp_path: Path, text: str, entry: str) -> None:
    abstract, live = of_code(tmp_path, text, entry)
    assert (abstract.note, listed(state_of(abstract))) == ("", live)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "float8", "float64"])
@pytest.mark.parametrize("text", [own_code.NOT_COMPILED, own_code.SEARCH_OF_LAYERS])
def test_own_code_has_the_precision_with_which_it_is_trained(
    tmp_path: Path, text: str, policy: Policy
) -> None:
    code = own_code.code_in(tmp_path / "code", text)
    body = {
        "data": {"dataset": "d"},
        "model": {"kind": "code", "digest": code.digest, "entry": "build_model"},
        "precision": {"policy": policy},
    }
    spec = ExperimentSpec.model_validate(body)
    compute_in_double(needs_double(spec.precision))
    try:
        with using_code(code, tmp_path):
            abstract = abstract_models.build_for_spec(spec, Profile.model_validate(VECTOR))
            real = real_model(spec, IRIS)
        state = state_of(abstract)
        assert (abstract.note, listed(state)) == ("", forms(real.weights))
        types = {v.dtype for v in state.variables}
        assert "float64" in types if policy == "float64" else "float64" not in types
        assert any("scale" in v.path for v in state.variables) == (policy == "float8")
        assert policies(abstract.made.model) == policies(real)
    finally:
        compute_in_double(False)


def test_a_build_without_values_has_no_bytes() -> None:
    profile = Profile.model_validate({**VECTOR, "input_shape": (4000,), "features": ("x",)})
    spec = spec_of("d", args={"units": 4000})
    before = sum(array.nbytes for array in jax.live_arrays())
    abstract = abstract_models.build_for_spec(spec, profile)
    after = sum(array.nbytes for array in jax.live_arrays())
    weights = sum(v.as_variable().bytes for v in state_of(abstract).variables)
    assert weights > 60_000_000 and after - before < 1_000_000


@pytest.mark.parametrize(
    ("optimizer", "slots"), [("sgd", 0), ("rmsprop", 1), ("adam", 2), ("nadam", 2), ("adagrad", 1)]
)
def test_slots_are_counted_for_each_variable(optimizer: str, slots: int) -> None:
    profile = image_profile()
    spec = spec_of("d", args={"units": 4, "batch_norm": True}, fit={"optimizer": optimizer})
    state = state_of(abstract_models.build_for_spec(spec, profile))
    assert {v.slots for v in state.variables if v.trainable} == {slots}
    assert {v.slots for v in state.variables if not v.trainable} == {0}
    # The number of steps and the learning rate, and the momentum schedule of Nadam.
    assert 0 < state.optimizer_bytes < 40


def test_optimizer_variables_of_another_form_are_counted_beside_the_slots() -> None:
    def build() -> StepModel:
        model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(256)])
        model.compile(keras.optimizers.Adafactor(), "mse")
        model.optimizer.build(model.trainable_variables)
        row = jax.ShapeDtypeStruct((1, 256), np.dtype("float32"))
        return StepModel(model, lambda rows: (jax.ShapeDtypeStruct((rows, 256), row.dtype),))

    state = state_of(build_abstract(build))
    real = build().model.optimizer
    slots = sum(v.as_variable().bytes * (v.slots or 0) for v in state.variables)
    assert slots + state.optimizer_bytes == sum(v.value.nbytes for v in real.variables)


@pytest.mark.parametrize(
    ("text", "reason"), [(READS_VALUES, "reads values"), (UNSEEDED, "without a seed")], ids=["reads", "draws"]
)
def test_code_that_needs_values_is_built_with_them_and_says_so(
    tmp_path: Path, text: str, reason: str
) -> None:
    abstract, live = of_code(tmp_path, text)
    assert reason in abstract.note and listed(state_of(abstract)) == live
    # The process can train afterwards.
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.zeros((8, 4)), np.zeros((8, 1)), verbose=0)


def test_a_model_that_has_to_be_built_with_values_is_refused_if_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.errors import CodeBuildFailure
    from workers.engine.models import build_memory

    monkeypatch.setattr(build_memory, "process_memory", lambda: 200)
    with pytest.raises(CodeBuildFailure, match="needs at least"):
        of_code(tmp_path, READS_VALUES)


ATTENTION = (
    own_code.IMPORTS
    + """
def build_model(hp):
    inputs = keras.Input((4,))
    x = layers.Reshape((4, 1))(inputs)
    x = layers.MultiHeadAttention(1, 2, name="in_one")(x, x)
    x, _ = layers.MultiHeadAttention(1, 2, name="in_steps")(x, x, return_attention_scores=True)
    x = layers.MultiHeadAttention(1, 2, name="in_float32", dtype="float32")(x, x)
    model = keras.Model(inputs, layers.Dense(3, activation="softmax")(layers.Flatten()(x)))
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
"""
)


def test_a_dry_build_lists_the_variables_and_what_a_training_needs(tmp_path: Path) -> None:
    result = dry_built(tmp_path, FUNCTIONAL)
    assert [(v.path, v.shape, v.trainable, v.slots) for v in result.variables] == [
        ("dense/kernel", (4, 8), True, 2),
        ("dense/bias", (8,), True, 2),
        ("batch_normalization/gamma", (8,), True, 2),
        ("batch_normalization/beta", (8,), True, 2),
        ("batch_normalization/moving_mean", (8,), False, 0),
        ("batch_normalization/moving_variance", (8,), False, 0),
        ("dense_1/kernel", (8, 3), True, 2),
        ("dense_1/bias", (3,), True, 2),
    ]
    assert {v.dtype for v in result.variables[:2]} == {"bfloat16"}
    assert result.row_bytes is not None and 4 * 4 <= result.row_bytes < 2000
    # A training's memory is that of these variables.
    assert result.state is not None
    assert result.state.parameters == result.parameters - 16


def test_a_dry_build_lists_the_attention_that_cpus_cannot_compute_in_float16(tmp_path: Path) -> None:
    result = dry_built(tmp_path, ATTENTION)
    assert result.attention == ("in_one",)
    assert dry_built(tmp_path / "other", FUNCTIONAL).attention == ()


def test_a_dry_build_of_code_that_reads_values_says_so(tmp_path: Path) -> None:
    result = dry_built(tmp_path, READS_VALUES)
    assert [v.path for v in result.variables][:2] == ["dense/kernel", "dense/bias"]
    assert any("reads values of variables" in note for note in result.notes)


def test_code_that_keeps_a_layer_is_imported_again_by_the_next_task(tmp_path: Path) -> None:
    text = (
        own_code.IMPORTS
        + """
_KEPT = []

def build_model(hp):
    units = hp.Int("units", 4, 8)
    if not _KEPT:
        _KEPT.append(layers.Dense(3, "softmax"))
    model = keras.Sequential([keras.Input((4,)), layers.Dense(units), _KEPT[0]])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""
    )
    code = own_code.code_in(tmp_path / "code", text)
    model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
    spec = ExperimentSpec.model_validate({"data": {"dataset": "d"}, "model": model})
    from workers.engine.models.own_code.in_use import forget_after_use

    with using_code(code, tmp_path):
        forget_after_use()
        abstract_models.build_for_spec(spec, Profile.model_validate({**VECTOR, "outputs": 3}))
    with using_code(code, tmp_path):
        real = real_model(spec.model_copy(), IRIS)
        assert np.isfinite(real.predict(np.zeros((2, 4)), verbose=0)).all()


def test_results_of_earlier_releases_have_no_variables() -> None:
    from tests.code.dry_builds import BUILT

    assert BuiltModel.model_validate(BUILT.model_dump(exclude={"variables"})).state is None
