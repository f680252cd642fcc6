"""A hypermodel of KerasTuner is trained, saved and loaded."""

from typing import Any

import numpy as np

from tests.engine.compiled.test_program import train
from tests.engine.helpers import profiled, spec_of
from tests.present import present

SMALL = {
    "conv2d_num_filters": 4, "sep_num_filters": 4, "num_residual_blocks": 1, "num_dense_layers": 1,
    "dropout_rate": 0.5, "initial_strides": 4, "activation": "selu",
}  # fmt: skip
FIT = {"epochs": 1, "batch_size": 64}


def test_a_small_hyper_xception_trains_and_its_file_predicts_the_same(tmp_path: Any) -> None:
    from workers.engine.data.dataset import load_dataset
    from workers.engine.models.files import load_model, save_model
    from workers.engine.models.predict import Predictor
    from workers.engine.training.prepare import prepare

    spec = spec_of("digits", "HyperXception", args=SMALL, fit=FIT)
    data = load_dataset(profiled(tmp_path / "data", bundled="digits"), present(spec.data))
    begun = prepare(spec, data, data.parts.train[:64], name="x", seed=1)
    train(begun, tmp_path / "run", begun.loop(epochs=1))
    save_model(begun.model, tmp_path / "model.keras", None)
    loaded = load_model(tmp_path / "model.keras", tmp_path)
    names = [layer.name for layer in loaded.layers]
    assert names[:3] == ["input", "normalize", "conv2d"] and names[-1] == "output"
    np.testing.assert_array_equal(Predictor(loaded)(data.x[:5]), Predictor(begun.model)(data.x[:5]))
