"""Augmentation: random during training, inactive otherwise, and not in the saved model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.helpers import RecordingReport, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import Dataset
from workers.engine.errors import BadSpec
from workers.engine.training.prepare import Prepared

EVERYTHING = {
    "flip": "both", "rotation": 0.1, "zoom": 0.2, "translation": 0.1, "contrast": 0.2, "brightness": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    from workers.engine.data.dataset import load_dataset

    file = profiled(tmp_path_factory.mktemp("digits"), bundled="digits")
    return load_dataset(file, present(spec_of("digits").data))


def prepared_for(dataset: Dataset, **augmentation: Any) -> Prepared:
    from workers.engine.training.prepare import prepare

    fit = {"epochs": 1, "batch_size": 64, "augmentation": augmentation}
    spec = spec_of("digits", args={"units": 4, "dropout": 0.5}, fit=fit)
    return prepare(spec, dataset, dataset.parts.train[:128], name="t", seed=0)


def test_a_model_augments_images_only_in_training_and_is_saved_without(
    digits: Dataset, tmp_path: Path
) -> None:
    from workers.engine.tasks.export import export
    from workers.engine.training.loops import predict

    prepared = prepared_for(digits, flip="horizontal", rotation=0.1, contrast=0.2, brightness=0.2)
    assert prepared.model.jit_compile
    prepared.model.fit(prepared.batches.draw(1), steps_per_epoch=2, verbose=0)
    layer, images = prepared.model.get_layer("augmentation"), digits.x[:16]
    varied = np.asarray(layer(images, training=True))
    assert not np.allclose(varied, images)
    assert varied.min() >= digits.x[:].min()
    assert varied.max() <= digits.x[:].max()
    np.testing.assert_array_equal(np.asarray(layer(images, training=False)), images)

    exported = export(prepared, RecordingReport(tmp_path), "plain")
    assert "augmentation" not in {layer.name for layer in exported.model.layers}
    seen = predict(prepared.model, digits.x[:64], 64)
    np.testing.assert_allclose(predict(exported.model, digits.x[:64], 64), seen, atol=1e-6)


def test_random_draws_depend_only_on_the_seed(digits: Dataset) -> None:
    draws = [
        np.asarray(
            prepared_for(digits, flip="both").model.get_layer("augmentation")(digits.x[:16], training=True)
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])


def test_all_transformations_form_one_layer_that_compiles(digits: Dataset) -> None:
    layer = prepared_for(digits, **EVERYTHING).model.get_layer("augmentation")
    assert len(layer.layers) == len(EVERYTHING)
    assert all(one.supports_jit for one in layer.layers)


def test_a_cached_model_draws_from_the_new_seed(digits: Dataset) -> None:
    from workers.engine.models.width_padding import Widths

    prepared = prepared_for(digits, flip="both", zoom=0.1)
    layer = prepared.model.get_layer("augmentation")
    before = [np.asarray(one.generator.state) for one in layer.layers]
    for seed, same in ((1, False), (0, True)):
        prepared.initial.redraw(seed, Widths())
        after = [np.asarray(one.generator.state) for one in layer.layers]
        assert np.array_equal(after, before) == same


def test_an_empty_spec_adds_no_layer_and_vectors_are_rejected(digits: Dataset, tmp_path: Path) -> None:
    from workers.engine.models.build import build

    names = {layer.name for layer in prepared_for(digits).model.layers}
    assert "augmentation" not in names
    vectors = digits.profile.model_copy(update={"kind": "vector"})
    spec = spec_of("digits", fit={"augmentation": {"zoom": 0.1}})
    with pytest.raises(BadSpec, match="needs images"):
        build(spec, vectors, prepared_for(digits).scaling, name="t", seed=0, augmented=True)
