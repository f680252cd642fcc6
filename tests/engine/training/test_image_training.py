"""Training on image archives: batch normalization on every path, and equal answers in serving."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.features import Features
from jobs.spec.sections.data import DataSpec
from tests.engine.helpers import RecordingReport, profiled, spec_of
from tests.engine.small_training import train_on
from tests.engine.training.test_training import assert_same, final_state
from tests.images import folders, zipped
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.features.files import read_features
from workers.features.pipeline import Pipeline

FILES = folders(count=20)
FIT = {"epochs": 3, "batch_size": 16, "learning_rate": 0.02}
MODELS: dict[str, dict[str, Any]] = {
    "resnet": {"filters": 4, "stages": 2, "dropout": 0.2},
    "cnn": {"filters": 4, "layers": 1, "units": 8, "dropout": 0.2},
}
AUGMENTATION = {"flip": "horizontal", "rotation": 0.05, "brightness": 0.1}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    folder = tmp_path_factory.mktemp("images")
    path = zipped(folder / "colours.zip", FILES)
    return profiled(folder / "profile", source="images", path=str(path))


@pytest.mark.parametrize(("template", "augmentation"), [("cnn", AUGMENTATION)])
def test_a_training_interrupted_within_an_epoch_ends_with_the_same_bits(
    file: DatasetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, augmentation: Any
) -> None:
    from workers.engine.compiled import training_time
    from workers.engine.report import TaskInterrupted
    from workers.engine.training import checkpoint, training

    fit = FIT if augmentation is None else {**FIT, "augmentation": augmentation}
    parts: dict[str, Any] = {"template": template, "args": MODELS[template], "fit": fit}
    train_on(file, tmp_path / "unbroken", **parts)
    monkeypatch.setattr(training, "REQUEST_INTERVAL", 0.0)  # check for requests after every batch
    monkeypatch.setattr(training_time, "TARGET_CALL_SECONDS", 0.0)
    with pytest.raises(TaskInterrupted):
        train_on(file, tmp_path / "broken", requests=[None] * 4 + ["pause"], **parts)
    middle = checkpoint.read(checkpoint.list_committed(tmp_path / "broken")[0])
    assert middle.state["batch"] > 0
    train_on(file, tmp_path / "broken", resume=middle, **parts)
    assert_same(final_state(tmp_path, "unbroken"), final_state(tmp_path, "broken"))


@pytest.mark.parametrize("template", MODELS)
def test_a_saved_model_answers_files_as_it_answered_the_stored_pixels(
    file: DatasetFile, tmp_path: Path, template: str
) -> None:
    from workers.engine.tasks.export import export
    from workers.engine.tasks.register import features_for
    from workers.engine.tasks.samples.known_rows import rows_of_data
    from workers.engine.training.loops import predict
    from workers.engine.training.prepare import prepare

    spec = spec_of("colours", template, args=MODELS[template], fit=FIT)
    dataset = load_dataset(file, present(spec.data))
    prepared = prepare(spec, dataset, dataset.parts.train, name="t", seed=0)
    exported = export(prepared, RecordingReport(tmp_path), "t")
    assert [(column.name, column.type) for column in exported.signature.columns] == [("image", "image")]
    features = read_features(tmp_path / "model.keras")
    assert isinstance(features, Features)
    assert features == features_for(exported.signature, tmp_path / "model.keras") == dataset.features
    rows = [{"image": {"b64": base64.b64encode(FILES[path]).decode()}} for path in sorted(FILES)]
    sent = Pipeline(features).of_rows(rows)
    assert sent.tobytes() == dataset.x[:].astype(np.float32).tobytes()
    stored = dataset.rows_for(features, np.arange(len(rows)))
    assert predict(exported.model, sent, 16).tobytes() == predict(exported.model, stored, 16).tobytes()
    (sample,) = rows_of_data(exported.signature, file, features)
    assert sample.tobytes() == sent[: len(sample)].tobytes()
    assert Pipeline(features).of_nothing(4).shape[1:] == (12, 12, 3)


def test_residual_networks_learn_colours(file: DatasetFile, tmp_path: Path) -> None:
    parts: dict[str, Any] = {"template": "resnet", "args": MODELS["resnet"], "fit": {**FIT, "epochs": 10}}
    best = train_on(file, tmp_path / "c", **parts).result
    assert best.metrics["val_accuracy"] > 0.9


def test_the_moments_of_bytes_are_those_of_all_their_values(file: DatasetFile) -> None:
    from workers.engine.models.scaling import measure_scaling

    dataset = load_dataset(file, DataSpec(dataset="colours"))
    scaling = measure_scaling(dataset.x, dataset.y, dataset.profile)
    values = dataset.x[:].reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(scaling.x_mean, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaling.x_variance, values.var(axis=0), rtol=1e-12)
    assert scaling.x_range == (float(values.min()), float(values.max()))
