"""What Keras cannot save is found by the dry build, with the class and the remedy; weights are never lost."""

import re
from pathlib import Path
from typing import Any

import keras_tuner
import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks.dry_build import BuiltModel, problems_of
from jobs.spec.experiment import ExperimentSpec
from tests import own_code
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code import dry_built
from tests.engine.models.test_own_code_training import TrainingReport, spec
from tests.unsavable_models import SAVABLE, UNSAVABLE
from workers.engine.data.dataset import load_dataset
from workers.engine.models.code_models.saving import NotSaved


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.mark.parametrize("fault", UNSAVABLE)
def test_a_dry_build_names_the_class_that_cannot_be_saved_and_the_remedy(tmp_path: Path, fault: str) -> None:
    text, message = UNSAVABLE[fault]
    built = dry_built(tmp_path, text)
    assert re.search(message, built.unsaved), built.unsaved
    assert built.unsaved in built.notes
    assert "config=" not in built.unsaved and "\x1b" not in built.unsaved


@pytest.mark.parametrize("form", SAVABLE)
def test_what_can_be_saved_is_not_refused(tmp_path: Path, form: str) -> None:
    assert dry_built(tmp_path, SAVABLE[form]).unsaved == ""


def test_a_step_that_needs_the_file_is_refused_before_the_search() -> None:
    built = BuiltModel(
        is_compiled=True, own_fit=False, input_shape=(4,), output_shape=(3,), output="numbers", parameters=1,
        builds=1, unsaved="the model cannot be saved: Net",
    )  # fmt: skip
    parts: dict[str, Any] = {"version": 1, "data": {"dataset": "iris"}}
    model = {"kind": "code", "digest": "0" * 64, "entry": "build_model"}
    after = {"register": {"model": "net", "what": ["best"]}}
    wanted = ExperimentSpec.model_validate({**parts, "model": model, "after": after})
    (problem,) = problems_of(wanted, built)
    assert problem.pointer == "/after/register" and "cannot be saved: Net" in problem.message
    assert not list(problems_of(ExperimentSpec.model_validate({**parts, "model": model}), built))


@pytest.mark.parametrize("fault", ["a model with weights and arguments"])
def test_trained_weights_are_kept_if_the_model_cannot_be_saved(
    tmp_path: Path, iris: DatasetFile, fault: str
) -> None:
    from jobs.messages.training import TrainTask
    from workers.engine.tasks import train

    text, message = UNSAVABLE[fault]
    code = own_code.code_in(tmp_path / "code", text)
    objective = {"metric": "val_accuracy", "direction": "max"}
    values = {"units": 16} | ({"width": 16} if "width" in text else {})
    task = TrainTask(
        folder=str(tmp_path / "run"),
        code=code,
        spec=spec(code, "build_model", model={"hyperparameters": values}),
        dataset=iris,
        retrain=None,
        objective=objective,
        model_name="m1",
    )
    report = TrainingReport(tmp_path / "run")
    with pytest.raises(NotSaved, match=message + r".*model\.load_weights\('m1\.weights\.h5'\)") as failure:
        train.run(task, report)
    assert failure.value.code == "not_saved"
    names: dict[str, Any] = {"__name__": "script"}
    exec(text, names)
    hyperparameters = keras_tuner.HyperParameters()
    hyperparameters.values = dict(values)
    model = names["build_model"](hyperparameters)
    dataset = load_dataset(iris, task.spec.required_data)
    model(dataset.x[:1])
    model.load_weights(report.artifacts["weights"])
    with np.load(report.artifacts["validation_predictions"]) as stored:
        np.testing.assert_allclose(model.predict(dataset.x[stored["rows"]]), stored["y_pred"], atol=1e-5)
