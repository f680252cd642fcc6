"""Initial values: every Keras layer redrawn for another seed equals one that was built with it."""

import numpy as np
import pytest


def mistakes(name: str, everything_random: bool) -> list[str]:
    """Train a layer, redraw it for another seed, and return the differences to one built with that seed."""
    from tests.engine.keras_layers import built
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
    found = [] if start.complete else ["not complete"]
    found += [f"{v.path} differs" for v, wanted in pairs if not np.array_equal(v.value, wanted)]
    if start.sources and all(map(np.array_equal, before, values(fresh.variables))):
        found.append("two seeds start alike")
    return found


def test_a_redrawn_layer_equals_one_built_with_the_seed() -> None:
    from tests.engine.keras_layers import CASES

    found = {(name, random): mistakes(name, random) for name, random in CASES}
    assert len(found) > 100
    assert {case: wrong for case, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("name", ["LSTM", "Embedding", "MultiHeadAttention", "Dropout"])
def test_the_sources_of_randomly_initialized_layers_are_found(name: str) -> None:
    from tests.engine.keras_layers import built

    _, start = built(name, 1, everything_random=False)
    kinds = {source.variable.name for source in start.sources}
    wanted = {"LSTM": {"kernel", "recurrent_kernel"}, "Embedding": {"embeddings"}}
    assert kinds >= wanted.get(name, {"seed_generator_state"})


def test_loading_a_file_draws_no_initial_values_on_the_device(tmp_path, monkeypatch) -> None:
    import keras
    from keras.src.backend.jax import random

    from workers.engine.models.files import load_model, save_model

    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(3, kernel_initializer="glorot_uniform")(inputs))
    save_model(model, tmp_path / "m.keras")
    draw = random.uniform
    monkeypatch.setattr(
        random, "uniform", lambda *_, **__: pytest.fail("a program is compiled for each shape")
    )
    loaded = load_model(tmp_path / "m.keras", tmp_path)
    for mine, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    monkeypatch.setattr(random, "uniform", draw)
    first, second = (keras.initializers.GlorotUniform(seed=seed)((3, 3)) for seed in (1, 2))
    assert not np.array_equal(first, second), "outside of loading Keras draws as before"


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


def test_a_model_that_cannot_be_redrawn_is_not_cached(tmp_path, monkeypatch) -> None:
    from jobs.contracts.data import DataSpec
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
