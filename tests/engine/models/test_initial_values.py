"""Initial values: every Keras layer redrawn for another seed equals one that was built with it."""

from pathlib import Path

import numpy as np
import pytest


def mistakes(name: str, everything_random: bool) -> list[str]:
    """Train a layer, redraw it for another seed, and return the differences to one built with that seed."""
    from tests.engine.models.keras_layers import built
    from workers.engine.models.variables import assign, values
    from workers.engine.models.width_padding import Widths

    layer, start = built(name, 1, everything_random=everything_random)
    if not layer.variables:
        return []
    fixed, before = values(start.fixed), values(layer.variables)
    for variable in layer.variables:
        variable.assign(variable + 1)
    assign(start.fixed, fixed)
    start.redraw(2, Widths())
    fresh, _ = built(name, 2, everything_random=everything_random)
    pairs = list(zip(layer.variables, values(fresh.variables), strict=True))
    differences = [] if start.complete else ["not complete"]
    differences += [f"{v.path} differs" for v, expected in pairs if not np.array_equal(v.value, expected)]
    if start.sources and all(map(np.array_equal, before, values(fresh.variables))):
        differences.append("two seeds start alike")
    return differences


def test_a_redrawn_layer_equals_one_built_with_the_seed() -> None:
    from tests.engine.models.keras_layers import CASES

    differences = {(name, random): mistakes(name, random) for name, random in CASES}
    assert len(differences) > 100
    assert {case: wrong for case, wrong in differences.items() if wrong} == {}


@pytest.mark.parametrize("name", ["LSTM", "Embedding", "MultiHeadAttention", "Dropout"])
def test_the_sources_of_randomly_initialized_layers_are_found(name: str) -> None:
    from tests.engine.models.keras_layers import built

    _, start = built(name, 1, everything_random=False)
    kinds = {source.variable.name for source in start.sources}
    sources = {"LSTM": {"kernel", "recurrent_kernel"}, "Embedding": {"embeddings"}}
    assert kinds >= sources.get(name, {"seed_generator_state"})


def test_a_new_and_a_loaded_model_make_no_initial_values_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keras
    from keras.src.backend.jax import numpy, random

    from workers.engine.models.files import load_model, save_model

    def fail(*_args: object, **_options: object) -> None:
        pytest.fail("a program is compiled for each shape")

    for module, name in [(random, "uniform"), (random, "normal"), (numpy, "zeros"), (numpy, "ones")]:
        monkeypatch.setattr(module, name, fail)
    inputs = keras.Input((5, 4))
    outputs = keras.layers.Dense(3)(keras.layers.BatchNormalization()(keras.layers.LSTM(3)(inputs)))
    model = keras.Model(inputs, outputs)
    save_model(model, tmp_path / "m.keras")
    loaded = load_model(tmp_path / "m.keras", tmp_path)
    for mine, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)


MOMENTS = {
    "RandomNormal": ({"mean": 0.5, "stddev": 2.0}, 0.5, 2.0),
    "RandomUniform": ({"minval": -1.0, "maxval": 3.0}, 1.0, 4 / np.sqrt(12)),
    # The middle of a normal distribution, within two standard deviations, has 0.88 of its own.
    "TruncatedNormal": ({"mean": 0.5, "stddev": 2.0}, 0.5, 2 * 0.8796),
    "GlorotUniform": ({}, 0.0, np.sqrt(2 / 500)),
    "GlorotNormal": ({}, 0.0, np.sqrt(2 / 500)),
    "HeNormal": ({}, 0.0, np.sqrt(2 / 300)),
    "LecunUniform": ({}, 0.0, np.sqrt(1 / 300)),
    "Zeros": ({}, 0.0, 0.0),
    "Ones": ({}, 1.0, 0.0),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_values_of_the_host_have_the_distribution_of_keras(name: str) -> None:
    import keras

    options, mean, deviation = MOMENTS[name]
    kind = getattr(keras.initializers, name)
    seeds = [{}, {}] if name in ("Zeros", "Ones") else [{"seed": 7}, {"seed": -7}]
    first, second = (kind(**options, **seed)((300, 200), "float32") for seed in seeds)
    for values in map(np.array, (first, second)):
        assert values.dtype == np.float32
        assert values.mean() == pytest.approx(mean, abs=0.02 * deviation)
        assert values.std() == pytest.approx(deviation, rel=0.02)
        if name == "TruncatedNormal":
            assert np.abs(values - mean).max() <= 4.0
    np.testing.assert_array_equal(first, kind(**options, **seeds[0])((300, 200), "float32"))
    assert np.array_equal(first, second) == (deviation == 0)
    assert str(kind(**options)((2, 3), "bfloat16").dtype) == "bfloat16"


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 2, 3)])
def test_orthogonal_values_of_the_host_are_orthogonal(shape: tuple[int, ...]) -> None:
    import keras

    matrix = np.array(keras.initializers.Orthogonal(gain=2.0, seed=1)(shape)).reshape(-1, shape[-1])
    smaller = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(smaller, 4 * np.eye(min(matrix.shape)), atol=1e-5)


def test_a_seed_with_a_state_draws_new_values_each_time() -> None:
    import keras

    initializer = keras.initializers.GlorotUniform(seed=keras.random.SeedGenerator(1))
    assert not np.array_equal(initializer((3, 3)), initializer((3, 3)))


def test_a_layer_with_a_custom_initializer_is_not_complete() -> None:
    import keras

    from workers.engine.models.initial_values import InitialValues

    inputs = keras.Input((4,))
    with keras.StatelessScope():
        layer = keras.layers.Dense(
            3, kernel_initializer=lambda shape, dtype=None: keras.ops.ones(shape, dtype)
        )
        start = InitialValues(keras.Model(inputs, layer(inputs)).layers)
    assert not start.complete


def test_a_model_that_cannot_be_redrawn_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.spec.sections.data import DataSpec
    from tests.engine.helpers import profiled, spec_of
    from workers.engine.data.dataset import load_dataset
    from workers.engine.models.initial_values import InitialValues
    from workers.engine.training.model_cache import ModelCache

    def lose_one(start: InitialValues, seed: int) -> None:
        start.complete = False

    monkeypatch.setattr(InitialValues, "set_up", lose_one)
    data = load_dataset(profiled(tmp_path, bundled="iris"), DataSpec(dataset="iris"))
    models = ModelCache()
    first, second = (
        models.prepare(spec_of("iris"), data, data.parts.train, name="t", seed=seed) for seed in (1, 2)
    )
    assert first.model is not second.model
