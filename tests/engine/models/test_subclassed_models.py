"""Models of classes of users run as in Keras: in a dry build, a trial, a retraining, and as a served file."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks.dry_build import problems_of
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.data import DataSpec
from tests import own_models
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import dry_built
from tests.engine.models.test_own_code_training import trained, trial
from tests.engine.models.test_own_objects import registered
from workers.engine.data.dataset import load_dataset

MODELS = own_models.PLAIN | own_models.ONE_CALL
TRAINED = (
    "call without training",
    "not compiled",
    "lazily built weights",
    "own compute_loss",
    "own train_step",
)
"""Models that are trained in the first tier; `tests/engine/long_trainings` trains the others."""
OUTPUTS = {
    "not compiled": "probabilities",
    "not compiled, with logits": "probabilities",
    "logits": "logits",
    "own train_step": "logits",
    "own compute_loss": "probabilities",
}
BATCH = 32
"""Does not divide the training rows, so that the last batch is smaller."""
SIZES = {"name": "fit/batch_size", "kind": "choice", "values": [16, 32]}


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.mark.parametrize("form", TRAINED)
def test_a_model_of_a_class_is_trained_saved_and_loaded_without_its_class(
    tmp_path: Path, iris: DatasetFile, form: str
) -> None:
    text, (metric, direction) = MODELS[form]
    built = dry_built(tmp_path / "dry", text)
    assert built.parameters > 0
    result, report, task = trained(tmp_path, text, "build_model", iris, metric=metric, direction=direction)
    assert np.isfinite(result["score"])
    registration = registered(report.artifacts["model"], task.code)
    # The layers are enough, unless the weights or the layers are of the code.
    assert registration["needs_code"] is form.startswith("lazily")
    assert registration["signature"]["inputs"] == [{"name": "input", "dtype": "float32", "shape": [4]}]
    # The meaning of the outputs is found without a graph of layers.
    assert built.output == OUTPUTS.get(form, built.output)
    with np.load(report.artifacts["validation_predictions"]) as arrays:
        np.testing.assert_allclose(arrays["y_pred"].sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("form", [form for form in MODELS if form not in TRAINED])
def test_a_dry_build_accepts_a_model_of_a_class(tmp_path: Path, form: str) -> None:
    built = dry_built(tmp_path, MODELS[form].text)
    assert built.parameters > 0
    assert built.output == OUTPUTS.get(form, built.output)


def test_validation_rows_of_a_class_without_a_loss_are_measured_by_the_experiment(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text = own_models.ONE_CALL["own train_step"].text
    (note,) = dry_built(tmp_path / "dry", text).notes
    assert "Keras cannot evaluate CustomModel" in note and "add test_step" in note
    _, report = trial(tmp_path, text, "build_model", iris, metric="val_accuracy", direction="max")
    epochs = [args[1] for args, _ in report.of("metric")]
    assert all({"loss", "accuracy", "val_loss", "val_accuracy"} <= set(epoch) for epoch in epochs)


def test_the_objective_of_a_class_that_keras_cannot_evaluate_is_a_measure_of_the_experiment(
    tmp_path: Path,
) -> None:
    built = dry_built(tmp_path, own_models.ONE_CALL["own train_step"].text)
    assert built.measured_by_spec and set(built.metrics) == {"loss", "accuracy"}
    model = {"kind": "code", "digest": "0" * 64, "entry": "build_model"}

    def refused(metric: str, **fit: Any) -> list[str]:
        search = {"algorithm": "random", "objective": {"metric": metric}, "space": [SIZES]}
        parts = {"version": 1, "data": {"dataset": "iris"}, "model": model, "search": search, "fit": fit}
        return [problem.pointer for problem in problems_of(ExperimentSpec.model_validate(parts), built)]

    assert refused("val_accuracy") == refused("val_loss", loss="sparse_categorical_crossentropy") == []
    assert refused("val_top_5_accuracy", metrics=["top_5_accuracy"]) == []
    assert refused("val_f1") == ["/search/objective/metric"]
    assert refused("val_loss", learning_rate=0.5) == ["/fit/learning_rate"]


def test_a_class_with_its_own_step_and_a_loss_is_evaluated_by_its_loss_and_metrics(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text = own_models.ONE_CALL["own train_step with a loss"].text
    text = text.replace(
        "metrics=['accuracy']", "metrics=[keras.metrics.SparseCategoricalAccuracy(name='hits')]"
    )
    assert dry_built(tmp_path / "dry", text).notes == ()
    _, report = trial(tmp_path, text, "build_model", iris, metric="val_hits", direction="max")
    assert all({"val_loss", "val_hits"} <= set(args[1]) for args, _ in report.of("metric"))


def test_a_class_with_a_step_that_is_not_compiled_is_refused_with_the_remedy(tmp_path: Path) -> None:
    text = own_models.ONE_CALL["own train_step"].text.replace("    model.compile(optimizer='adam')\n", "")
    with pytest.raises(Exception, match=r"CustomModel has its own train_step, .*add model\.compile\(optimi"):
        dry_built(tmp_path, text)


def epochs_of_keras(text: str, file: DatasetFile, *, shuffle: bool) -> list[dict[str, float]]:
    """Return the values of each epoch of Keras' own `fit`, as a script would call it."""
    import keras_tuner

    dataset = load_dataset(file, DataSpec(dataset="iris"))
    x, y = dataset.take(dataset.parts.train)
    names: dict[str, Any] = {"__name__": "script"}
    exec(text, names)
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    model = names["build_model"](keras_tuner.HyperParameters())
    options: dict[str, Any] = {"validation_data": dataset.take(dataset.parts.validation), "verbose": 0}
    history = model.fit(x, y, batch_size=BATCH, epochs=4, shuffle=shuffle, **options).history
    return [{name: values[epoch] for name, values in history.items()} for epoch in range(4)]


def epochs_of_trial(
    folder: Path, text: str, file: DatasetFile, objective: tuple[str, str], *, shuffle: bool
) -> list[dict[str, float]]:
    metric, direction = objective
    fit = {"shuffle": shuffle, "batch_size": BATCH}
    options: dict[str, Any] = {"metric": metric, "direction": direction, "fit": fit}
    _, report = trial(folder, text, "build_model", file, **options)
    return [args[1] for args, _ in report.of("metric")]


@pytest.mark.parametrize("form", ["eager", "own compute_loss", "more metrics"])
def test_a_training_by_fit_has_the_losses_of_keras(tmp_path: Path, iris: DatasetFile, form: str) -> None:
    text, objective = own_models.ONE_CALL[form]
    ours = epochs_of_trial(tmp_path, text, iris, objective, shuffle=True)
    for our, their in zip(ours, epochs_of_keras(text, iris, shuffle=True), strict=True):
        assert {name: our[name] for name in their} == pytest.approx(their, rel=1e-5)


@pytest.mark.parametrize("form", ["lazily built layers"])
def test_a_training_by_compiled_steps_has_the_losses_of_keras_for_the_same_order_of_rows(
    tmp_path: Path, iris: DatasetFile, form: str
) -> None:
    text, objective = own_models.PLAIN[form]
    text = text.replace("Dropout(0.1)", "Dropout(0.0)")  # its draws depend on the program
    ours = epochs_of_trial(tmp_path, text, iris, objective, shuffle=False)
    for our, their in zip(ours, epochs_of_keras(text, iris, shuffle=False), strict=True):
        assert {name: our[name] for name in their} == pytest.approx(their, rel=1e-4)
