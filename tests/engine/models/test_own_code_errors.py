"""Errors of own code that end one trial, the whole search, or nothing."""

from pathlib import Path

import pytest

from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import dry_built, names
from tests.engine.models.test_own_code_training import trial
from workers.engine.errors import CodeFailure, CodeFatalFailure
from workers.engine.models import build_memory

RAISES = own_code.NOT_COMPILED.replace(
    "    return keras",
    '    if units == 16:\n        raise keras_tuner.errors.ERROR("the reason")\n    return keras',
)
WIDE = own_code.NOT_COMPILED.replace('hp.Int("units", 8, 24, step=8)', 'hp.Int("units", 8, 30_000)').replace(
    "layers.Dense(3)", "layers.Dense(units), layers.Dense(3)"
)


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.mark.parametrize("kind", ["FatalError", "FatalValueError", "FatalRuntimeError"])
def test_a_fatal_error_ends_the_search(tmp_path: Path, iris: DatasetFile, kind: str) -> None:
    text = RAISES.replace("ERROR", kind)
    with pytest.raises(CodeFatalFailure, match=f"ended the search: {kind}: the reason") as failure:
        trial(tmp_path, text, "build_model", iris, model={"hyperparameters": {"units": 16}})
    assert failure.value.code == "code_fatal"
    # With other values it does not appear, so it is a note in the dry build.
    assert any("with units = 16" in note and kind in note for note in dry_built(tmp_path / "d", text).notes)


def test_an_error_that_marks_a_trial_as_failed_ends_that_trial(tmp_path: Path, iris: DatasetFile) -> None:
    text = RAISES.replace("ERROR", "FailedTrialError")
    _, report = trial(tmp_path, text, "build_model", iris, model={"hyperparameters": {"units": 16}})
    ((error,),) = [args for args, _ in report.of("trial_finished")]
    assert isinstance(error, CodeFailure) and not isinstance(error, CodeFatalFailure)
    assert "FailedTrialError: the reason" in str(error)


def test_a_value_that_needs_too_much_memory_is_a_note_of_the_dry_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_memory, "process_memory", lambda: 2 << 30)
    built = dry_built(tmp_path, WIDE)
    assert names(built) == ["units"]
    (note,) = {note for note in built.notes if "GiB" in note}
    assert note.startswith("with units = 30000: a training of this model needs at least 13.4 GiB")


def test_memory_that_does_not_suffice_is_a_note_too(tmp_path: Path) -> None:
    raises = "    if units == 24:\n        raise MemoryError('unable to allocate')\n    return keras"
    built = dry_built(tmp_path, own_code.NOT_COMPILED.replace("    return keras", raises))
    assert any(note.startswith("with units = 24: a training of this model") for note in built.notes)


POLICY = own_code.IMPORTS + "keras.config.set_dtype_policy('mixed_float16')\n"


@pytest.mark.parametrize("text", [own_code.SEARCH_OF_LAYERS])
def test_a_policy_that_code_sets_when_it_is_imported_lasts_and_has_its_loss_scale(
    tmp_path: Path, iris: DatasetFile, text: str
) -> None:
    import keras

    result, report = trial(tmp_path, POLICY + text, "build_model", iris)
    assert 0 < result["trials"][0]["score"] < 3
    points = [values for (_, values), _ in report.of("metric")]
    assert all(point["loss_scale"] >= 1 for point in points)
    assert keras.config.dtype_policy().name == "float32"


def test_a_metric_with_a_number_for_each_class_is_recorded_as_its_mean_and_its_parts(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text = own_code.SEARCH_OF_LAYERS.replace('["accuracy"]', '["accuracy", keras.metrics.F1Score()]')
    result, _ = trial(tmp_path, text, "build_model", iris, metric="val_accuracy", direction="max")
    metrics = result["trials"][0]["executions"][0]["metrics"]
    parts = [metrics[f"val_f1_score_{index}"] for index in range(3)]
    assert metrics["val_f1_score"] == pytest.approx(sum(parts) / 3)
    built = dry_built(tmp_path / "dry", text)
    assert {"val_f1_score", "val_f1_score_2", "val_accuracy"} <= set(built.metrics)
    assert any("f1_score returns 3 numbers" in note and 'average="macro"' in note for note in built.notes)
