"""KerasTuner's hypermodels: their ranges are the package's, and their models are like all others."""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jobs.spec.data.profile import Profile
from jobs.spec.formats import importing
from jobs.spec.sections.search import SearchSpec
from jobs.spec.templates import TEMPLATES
from tests.engine.helpers import spec_of

HYPERMODELS = [info for info in TEMPLATES.values() if info.is_hypermodel]
IMAGES = {
    "rows": 9, "task": "multiclass", "target": "y", "features": ("x",), "outputs": 10, "columns": (),
    "preview": (), "kind": "image", "input_shape": (32, 32, 3),
}  # fmt: skip


def built_by_keras_tuner(name: str) -> Any:
    """Return a hypermodel's hyperparameters with KerasTuner's defaults; no variable gets a value."""
    import keras
    import keras_tuner

    hyperparameters = keras_tuner.HyperParameters()
    with keras.StatelessScope(initialize_variables=False):
        model = getattr(keras_tuner.applications, name)(input_shape=(32, 32, 3), classes=10)
        model.build(hyperparameters)
    return hyperparameters


def in_thread(function: Any, *arguments: Any) -> Any:
    """Call a function whose variables never get values, in a thread: Keras keeps them by thread."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(function, *arguments).result()


def meaning(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a hyperparameter's values and its default, whatever its kind."""
    (parameter,) = SearchSpec.model_validate({"space": [row]}).space
    values = sorted(parameter.grid(), key=str)
    default = getattr(parameter, "default", None)
    return values, parameter.grid()[0] if default is None else default


@pytest.fixture
def no_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let KerasTuner compile without an optimizer, whose variables would need values."""
    import keras

    monkeypatch.setattr(keras.optimizers, "Adam", lambda rate: rate)
    monkeypatch.setattr(keras.optimizers, "get", lambda name: SimpleNamespace())
    monkeypatch.setattr(keras.Model, "compile", lambda self, **_: None)


@pytest.mark.usefixtures("no_optimizer")
@pytest.mark.parametrize("info", HYPERMODELS, ids=lambda info: info.name)
def test_the_space_of_a_hypermodel_is_that_of_keras_tuner(info: Any) -> None:
    config = in_thread(built_by_keras_tuner, info.name).get_config()
    theirs = {row["config"]["name"]: row["config"] for row in config["space"]}
    ours = {**info.ranges, **info.fit_ranges}
    assert set(ours) == set(theirs)
    assert not any(row["conditions"] for row in theirs.values()), "they would become conditions of ours"
    for name, bounds in ours.items():
        parameter = meaning({"name": name, **bounds})
        tuner_config = {"space": [row for row in config["space"] if row["config"]["name"] == name]}
        (row,) = importing.read(json.dumps(tuner_config), "keras_tuner").search["space"]
        assert parameter == meaning(row), name
        if name in info.arguments.model_fields:
            # KerasTuner writes null for the first value.
            default = theirs[name]["default"]
            expected = parameter[1] if default is None else default
            assert info.arguments.model_fields[name].default == expected, name


@pytest.mark.parametrize("version", ["v1", "v2", "next"])
def test_a_hyper_resnet_has_no_layer_with_a_function(version: str) -> None:
    def build() -> list[Any]:
        import keras

        from workers.engine.models.build import _assemble
        from workers.engine.models.scaling import Scaling

        spec = spec_of("d", "HyperResNet", args={"version": version, "conv3_depth": 2, "conv4_depth": 2})
        scaling = Scaling(np.zeros(3), np.ones(3))
        with keras.StatelessScope(initialize_variables=False):
            return _assemble(spec, Profile.model_validate(IMAGES), scaling, "x", augmented=False).layers

    layers = in_thread(build)
    assert "Lambda" not in {type(layer).__name__ for layer in layers}
    assert layers[-1].name == "output" and tuple(layers[-1].output.shape) == (None, 10)


def test_the_sum_of_version_next_is_that_of_its_function() -> None:
    import keras

    from jobs.spec.sections.precision import PrecisionSpec
    from workers.engine.models.templates.hypermodels import _sum_of_last_axis
    from workers.engine.models.templates.site import Site

    inputs = keras.Input((2, 3, 4, 8, 8))
    site = Site(PrecisionSpec(), Profile.model_validate(IMAGES), TEMPLATES["HyperResNet"].arguments(), inputs)
    model = keras.Model(inputs, _sum_of_last_axis(site, "reduce", inputs))
    x = np.random.default_rng(0).normal(size=(2, 2, 3, 4, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(model(x)), x.sum(axis=-1), rtol=1e-5, atol=1e-5)
