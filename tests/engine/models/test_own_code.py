"""Code of users: the findings of a dry build, and models that are trained, saved and pooled like others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.dry_build.payload import DryBuildTask
from jobs.messages.task import DatasetFile, OwnCode
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from jobs.spec.checks.dry_build import BuiltModel, DataShape
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.space.search_space import FloatParameter
from jobs.spec.space.values import apply_values
from tests import own_code
from tests.engine.helpers import RecordingReport
from tests.engine.making import ArtifactReport, dataset_file
from tests.present import present
from workers.engine.errors import CodeFailure
from workers.engine.tasks import dry_build

IRIS = DataShape(kind="vector", task="multiclass", input_shape=(4,), outputs=3)
NUMBERS = DataShape(kind="vector", task="regression", input_shape=(10,), outputs=1)


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


@pytest.fixture(scope="module")
def diabetes(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("diabetes"), "diabetes")


def dry_built(
    folder: Path, text: str, entry: str = "build_model", shape: DataShape = IRIS, args: Any = None
) -> BuiltModel:
    code = own_code.code_in(folder / "code", text)
    task = DryBuildTask(
        folder=str(folder),
        code=code,
        model={"kind": "code", "digest": code.digest, "entry": entry, "args": args or {}},
        shape=shape,
        data={"dataset": "any"},
        texts="words",
        dataset=None,
    )
    # As it is sent to the supervisor.
    result = json.loads(json.dumps(dry_build.run(task, ArtifactReport(folder))))
    return BuiltModel.model_validate(result["built"])


def names(built: BuiltModel) -> list[str]:
    return [parameter.name for parameter in built.space]


def test_hyperparameters_that_appear_with_other_values_are_found(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.SEARCH_OF_LAYERS)
    assert set(names(built)) == {
        "hidden", "width_0", "width_1", "width_2", "activation", "dropout", "rate",
    }  # fmt: skip
    assert (built.is_compiled, built.own_fit, built.one_hot, built.output) == (
        True,
        False,
        True,
        "probabilities",
    )
    assert built.metrics == ("val_loss", "val_accuracy")
    rate = next(parameter for parameter in built.space if parameter.name == "rate")
    assert isinstance(rate, FloatParameter)
    assert (rate.kind, rate.sampling, rate.min, rate.max) == ("float", "log", 1e-3, 1e-1)
    assert "/fit/optimizer" in built.unused


def test_a_whole_guide_is_executed_up_to_its_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built = dry_built(tmp_path / "run", own_code.WHOLE_GUIDE)
    assert len(built.space) == 7
    assert "tuner.search is not executed" in built.notes[0] and "(model.py, line" in built.notes[0]


def test_the_shape_of_the_data_is_found_in_the_data(tmp_path: Path, iris: DatasetFile) -> None:
    code = own_code.code_in(tmp_path / "code", own_code.SEARCH_OF_LAYERS)
    task = DryBuildTask(
        folder=str(tmp_path),
        code=code,
        model={"kind": "code", "digest": code.digest, "entry": "build_model"},
        shape=None,
        data={"dataset": "iris", "features": ["petal_length_cm", "petal_width_cm"]},
        texts="words",
        dataset=iris,
    )
    assert dry_build.run(task, ArtifactReport(tmp_path))["built"]["input_shape"] == [2]


def test_conditional_scopes_become_conditions(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.CONDITIONAL)
    when = {p.name: [(each.name, each.in_) for each in p.conditions()] for p in built.space}
    assert when == {
        "family": [],
        "flat_units": [("family", ("flat",))],
        "deep_0": [("family", ("deep",))],
        "deep_1": [("family", ("deep",))],
    }
    assert built.output == "logits"


def test_hyperparameters_of_an_own_fit_are_found(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.TUNED_FIT, "TunedFit", args={"classes": 3})
    assert names(built) == ["units", "batch_size", "shuffle"]
    assert built.own_fit and "val_accuracy" in built.metrics
    assert "/fit/batch_size" in built.unused


def test_objects_of_the_code_and_its_metric_are_found(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.OWN_OBJECTS)
    assert {"Scaled", "Half", "MacroRecall"} <= set(built.custom_objects)
    assert built.metrics == ("val_loss", "val_macro_recall")


@pytest.mark.parametrize("wrong", own_code.BROKEN)
def test_each_failure_names_its_cause(tmp_path: Path, wrong: str) -> None:
    text, code, message = own_code.BROKEN[wrong]
    with pytest.raises(CodeFailure) as failure:
        dry_built(tmp_path, text)
    assert (failure.value.code, message in str(failure.value)) == (code, True), str(failure.value)
    # Nothing of the worker's own files.
    assert "workers/engine" not in failure.value.trace


def test_a_traceback_has_the_lines_of_the_code(tmp_path: Path) -> None:
    with pytest.raises(CodeFailure) as failure:
        dry_built(tmp_path, own_code.BROKEN["build"][0])
    assert 'File "model.py", line 7, in build_model' in failure.value.trace


def test_a_fit_that_returns_nothing_is_refused(tmp_path: Path) -> None:
    text = own_code.TUNED_FIT.replace("return model.fit", "model.fit")
    with pytest.raises(CodeFailure, match="fit returned nothing"):
        dry_built(tmp_path, text, "TunedFit")


def spec(code: OwnCode, entry: str, *, dataset: str = "iris", **parts: Any) -> ExperimentSpec:
    model = {"kind": "code", "digest": code.digest, "entry": entry, **parts.pop("model", {})}
    fit = {"epochs": 4, "batch_size": 32, "learning_rate": 0.03, **parts.pop("fit", {})}
    return ExperimentSpec.model_validate(
        {"version": 1, "data": {"dataset": dataset}, "model": model, "fit": fit, **parts}
    )


def trial(
    folder: Path, text: str, entry: str, file: DatasetFile, *, metric: str = "val_loss",
    direction: str = "min", seeds: tuple[int, ...] = (1,), **parts: Any
) -> tuple[dict[str, Any], RecordingReport]:  # fmt: skip
    """Run one trial; return its result and its reports."""
    from workers.engine.tasks import trial as task

    code = own_code.code_in(folder / "code", text)
    known = spec(code, entry, **parts)
    executions = tuple(ExecutionPlan(execution=i, seed=seed) for i, seed in enumerate(seeds, 1))
    report = RecordingReport(folder)
    result = task.run(
        TrialTask(
            folder=str(folder),
            code=code,
            spec=known,
            objective={"metric": metric, "direction": direction},
            dataset=file,
            trials=(TrialPlan(number=1, values={}, spec=known, executions=executions),),
        ),
        report,
    )
    return result, report


@pytest.mark.parametrize(
    ("text", "entry", "metric", "direction"),
    [
        (own_code.SEARCH_OF_LAYERS, "build_model", "val_accuracy", "max"),
        (own_code.CONDITIONAL, "build_model", "val_loss", "min"),
        (own_code.OWN_OBJECTS, "build_model", "val_macro_recall", "max"),
        (own_code.NOT_COMPILED, "build_model", "val_accuracy", "max"),
        (own_code.TUNED_FIT, "TunedFit", "val_accuracy", "max"),
        (own_code.CUSTOM_LOOP, "OwnLoop", "val_my_metric", "min"),
    ],
)
def test_a_trial_trains_code(
    tmp_path: Path, iris: DatasetFile, text: str, entry: str, metric: str, direction: str
) -> None:
    result, _ = trial(tmp_path, text, entry, iris, metric=metric, direction=direction, seeds=(1, 2))
    (found,) = result["trials"]
    assert [each["state"] for each in found["executions"]] == ["completed"] * 2
    assert np.isfinite(found["score"])


def test_an_own_fit_gets_the_rows_of_its_fold(tmp_path: Path, iris: DatasetFile) -> None:
    from workers.engine.tasks import trial as task

    text = own_code.CUSTOM_LOOP.replace("return best", "return float(len(x_val))")
    code = own_code.code_in(tmp_path / "code", text)
    known = spec(code, "OwnLoop", search={"evaluation": {"kind": "k_fold", "folds": 4}})
    plans = tuple(ExecutionPlan(execution=i, seed=1, fold=i) for i in (1, 2))
    result = task.run(
        TrialTask(
            folder=str(tmp_path), code=code, spec=known, objective={"metric": "val_rows", "direction": "max"},
            dataset=iris, trials=(TrialPlan(number=1, values={}, spec=known, executions=plans),),
        ),
        RecordingReport(tmp_path),
    )  # fmt: skip
    # Four folds of the 120 rows beside the test rows.
    assert [each["score"] for each in result["trials"][0]["executions"]] == [30.0, 30.0]


def test_an_objective_that_fit_returns_is_the_score(tmp_path: Path, diabetes: DatasetFile) -> None:
    result, _ = trial(tmp_path, own_code.RETURNED_OBJECTIVE, "Regression", diabetes, dataset="diabetes")
    (found,) = result["trials"]
    assert 20 < found["score"] < 200


class TrainingReport(ArtifactReport):
    """Records the artifacts of a training."""

    def recorded(self) -> tuple[str, ...]:
        return ()


def trained(
    folder: Path, text: str, entry: str, file: DatasetFile, *, metric: str = "val_loss",
    direction: str = "min", **parts: Any
) -> tuple[dict[str, Any], ArtifactReport, TrainTask]:  # fmt: skip
    """Train, retrain on more rows, save and evaluate a model, as the step after a search does."""
    from workers.engine.tasks import train

    code = own_code.code_in(folder / "code", text)
    search = {"objective": {"metric": metric, "direction": direction}}
    task = TrainTask(
        folder=str(folder / "run"),
        code=code,
        spec=spec(code, entry, search=search, **parts),
        dataset=file,
        retrain={"patience": 3, "epochs_cap": 4, "epochs_factor": 1.5},
        objective=search["objective"],
        model_name="m1",
    )
    report = TrainingReport(folder / "run")
    return train.run(task, report), report, task


@pytest.mark.parametrize(
    ("text", "entry", "metric", "direction", "custom"),
    [
        (own_code.SEARCH_OF_LAYERS, "build_model", "val_accuracy", "max", False),
        (own_code.CONDITIONAL, "build_model", "val_loss", "min", False),
        (own_code.OWN_OBJECTS, "build_model", "val_macro_recall", "max", True),
        (own_code.NOT_COMPILED, "build_model", "val_accuracy", "max", False),
        (own_code.TUNED_FIT, "TunedFit", "val_accuracy", "max", False),
        (own_code.CUSTOM_LOOP, "OwnLoop", "val_my_metric", "min", False),
    ],
)
def test_a_model_of_code_is_retrained_saved_and_loaded(
    tmp_path: Path, iris: DatasetFile, text: str, entry: str, metric: str, direction: str, custom: bool
) -> None:
    from workers.engine.models.files import load_model
    from workers.engine.models.own_code import using_code

    result, report, task = trained(tmp_path, text, entry, iris, metric=metric, direction=direction)
    assert result["metrics"]["test"]["accuracy"] > 0.2
    assert np.isfinite(result["score"])
    with np.load(report.artifacts["validation_predictions"]) as arrays:
        np.testing.assert_allclose(arrays["y_pred"].sum(axis=1), 1, atol=1e-5)
    model_file = report.artifacts["model"]
    if custom:
        with pytest.raises((TypeError, ValueError)):
            load_model(model_file, tmp_path)
    with using_code(task.code):
        model = load_model(model_file, tmp_path)
    assert model.name == "m_m1" and model.output_shape == (None, 3)


def test_models_of_code_are_pooled_quantized_and_registered(tmp_path: Path, iris: DatasetFile) -> None:
    from jobs.kinds.ensemble.payload import EnsembleTask, Member
    from jobs.kinds.quantize.payload import QuantizeTask
    from jobs.kinds.register.payload import RegisterTask
    from workers.engine.data.store import file_digest
    from workers.engine.tasks import ensemble, quantize, register

    members = []
    for number, seed in enumerate((1, 2), start=1):
        _, report, task = trained(
            tmp_path / str(number), own_code.OWN_OBJECTS, "build_model", iris, fit={"seed": seed}
        )
        members.append(
            Member(
                name=f"m{number}",
                model=str(report.artifacts["model"]),
                validation_predictions=str(report.artifacts["validation_predictions"]),
            )
        )
    common = {"code": task.code, "spec": task.spec, "dataset": iris}
    pooled = ArtifactReport(tmp_path / "pooled")
    found = ensemble.run(
        EnsembleTask(folder=pooled.folder, members=members, ensemble={"method": "mean"}, **common), pooled
    )
    assert found["metrics"]["test"]["accuracy"] > 0.2
    small = ArtifactReport(tmp_path / "small")
    found = quantize.run(
        QuantizeTask(
            folder=small.folder, model=members[0].model, quantize={"mode": "int8"}, threads=1, **common
        ),
        small,
    )
    assert found["quantized_layers"] == 2
    for number, file in enumerate((pooled.artifacts["model"], small.artifacts["model"])):
        report = ArtifactReport(tmp_path / f"registered-{number}")
        registered = register.run(
            RegisterTask(
                folder=report.folder, code=task.code, model=str(file), digest=file_digest(file), dataset=iris,
                foreign=False,
            ),
            report,
        )  # fmt: skip
        assert registered["class_labels"] == iris.profile["class_labels"]


def test_the_executions_of_a_trial_share_a_program_and_differ_by_their_seeds(
    tmp_path: Path, iris: DatasetFile
) -> None:
    from workers.engine.training import own_code as training

    training._KEPT.clear()
    result, _ = trial(tmp_path, own_code.SEARCH_OF_LAYERS, "build_model", iris, seeds=(1, 2, 1))
    first, second, again = result["trials"][0]["executions"]
    assert len(training._KEPT) == 1
    assert first["score"] != second["score"]
    assert first["metrics"] == again["metrics"]


def test_trials_that_differ_in_the_fit_alone_share_a_program_and_have_their_own_values(
    tmp_path: Path, iris: DatasetFile
) -> None:
    from workers.engine.data.dataset import load_dataset
    from workers.engine.models.own_code import using_code
    from workers.engine.training.prepare import prepare

    code, programs, decays = own_code.code_in(tmp_path / "code", own_code.NOT_COMPILED), set(), []
    searched = spec(code, "build_model", fit={"optimizer": "adamw"})
    dataset = load_dataset(iris, searched.required_data, searched.texts, None)
    with using_code(code, tmp_path):
        for decay in (0.1, 0.2):
            known = apply_values(searched, {"units": 8, "fit/optimizer_args/weight_decay": decay})
            ready = prepare(known, dataset, dataset.parts.train, name="t", seed=0)
            programs.add(ready.program)
            decays.append(float(ready.model.optimizer.weight_decay))
    assert (len(programs), decays) == (1, [0.1, 0.2])


def test_a_training_that_was_stopped_continues_with_its_checkpoint(tmp_path: Path, iris: DatasetFile) -> None:
    whole, _ = trial(tmp_path / "whole", own_code.SEARCH_OF_LAYERS, "build_model", iris)
    stopped, resumed = interrupted(tmp_path, own_code.SEARCH_OF_LAYERS, "build_model", iris)
    assert stopped == "stop"
    assert resumed["trials"][0]["score"] == whole["trials"][0]["score"]


def test_an_own_fit_that_was_stopped_begins_again(tmp_path: Path, iris: DatasetFile) -> None:
    stopped, resumed = interrupted(tmp_path, own_code.TUNED_FIT, "TunedFit", iris)
    assert (stopped, resumed["trials"][0]["executions"][0]["epochs"]) == ("stop", 4)


def interrupted(folder: Path, text: str, entry: str, file: DatasetFile) -> tuple[str, dict[str, Any]]:
    """Stop a trial after its first epoch, and run it again from its checkpoint."""
    from jobs.messages.task import CheckpointFolder
    from workers.engine.report import TaskInterrupted
    from workers.engine.tasks import trial as task

    code = own_code.code_in(folder / "code", text)
    known = spec(code, entry)

    def run(report: RecordingReport, checkpoints: tuple[Any, ...] = ()) -> dict[str, Any]:
        plan = ExecutionPlan(execution=1, seed=1, checkpoints=checkpoints)
        return task.run(
            TrialTask(
                folder=str(folder), code=code, spec=known,
                objective={"metric": "val_loss", "direction": "min"}, dataset=file,
                trials=(TrialPlan(number=1, values={}, spec=known, executions=(plan,)),),
            ),
            report,
        )  # fmt: skip

    report = RecordingReport(folder)
    # The first request is read before the trial, the second one after its first epoch.
    report.requests = [None, "stop"]
    with pytest.raises(TaskInterrupted) as stop:
        run(report)
    written = [
        CheckpointFolder(folder=args[0], manifest=named["manifest"], step=named["step"])
        for args, named in report.of("checkpoint")
    ]
    return str(stop.value.reason), run(RecordingReport(folder), tuple(written))


@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", "categorical_crossentropy"])
def test_two_outputs_for_two_classes_become_the_probability_of_the_second(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, loss: str
) -> None:
    from workers.engine.models.files import load_model

    text = own_code.SEARCH_OF_LAYERS.replace("Dense(3,", "Dense(2,").replace("categorical_crossentropy", loss)
    text += "\n\ndef preprocess(x):\n    return keras.ops.log1p(x)\n"
    file = dataset_file(tmp_path_factory.mktemp("cancer"), "breast_cancer")
    result, report, _ = trained(
        tmp_path, text, "build_model", file, dataset="breast_cancer",
        model={"hyperparameters": {"rate": 0.03}},
    )  # fmt: skip
    assert load_model(report.artifacts["model"], tmp_path).output_shape == (None, 1)
    assert result["metrics"]["test"]["accuracy"] > 0.75


def test_errors_in_an_epoch_name_the_line_of_the_code(tmp_path: Path, iris: DatasetFile) -> None:
    text = own_code.CUSTOM_LOOP.replace("best = min(best, value)", "raise KeyError('lost')")
    _, report = trial(tmp_path, text, "OwnLoop", iris, metric="val_my_metric")
    ((_, error),) = [(args, args[0]) for args, _ in report.of("trial_finished")]
    assert isinstance(error, CodeFailure)
    assert "fit failed: KeyError: 'lost' (model.py, line" in str(error)


@pytest.mark.parametrize(
    ("text", "entry", "values"),
    [
        (own_code.SEARCH_OF_LAYERS, "build_model", {"rate": 0.02, "width_0": 16}),
        (own_code.TUNED_FIT, "TunedFit", {"units": 24, "batch_size": 16, "shuffle": True}),
    ],
)
def test_scores_agree_with_those_of_kerastuner(
    tmp_path: Path, iris: DatasetFile, text: str, entry: str, values: dict[str, Any]
) -> None:
    result, _ = trial(
        tmp_path, text, entry, iris, metric="val_loss", seeds=tuple(range(6)),
        model={"hyperparameters": values}, fit={"epochs": 6},
    )  # fmt: skip
    ours = [each["score"] for each in result["trials"][0]["executions"]]
    # Fewer of theirs: each builds and traces its model again.
    theirs = kerastuner_scores(tmp_path, text, entry, iris, values, 3)
    limit = 4 * sum(np.std(scores, ddof=1) / np.sqrt(len(scores)) for scores in (ours, theirs))
    assert abs(np.mean(ours) - np.mean(theirs)) < limit, (ours, theirs)


def kerastuner_scores(
    folder: Path, text: str, entry: str, file: DatasetFile, values: dict[str, Any], executions: int
) -> list[float]:
    """Return the best validation loss of each execution of a trial that KerasTuner's own tuner runs."""
    import keras
    import keras_tuner

    from workers.engine.data.dataset import load_dataset

    scope: dict[str, Any] = {}
    exec(text, scope)
    made = scope[entry]() if isinstance(scope[entry], type) else scope[entry]
    fixed = keras_tuner.HyperParameters()
    for name, value in values.items():
        fixed.Fixed(name, value)
    dataset = load_dataset(file, present(spec(own_code.code_in(folder / "code", text), entry).data))
    parts = [(dataset.x[rows], dataset.y[rows]) for rows in (dataset.parts.train, dataset.parts.validation)]
    if "categorical_crossentropy" in text and "sparse" not in text:
        parts = [(x, np.eye(3)[y]) for x, y in parts]
    found = []
    for seed in range(executions):
        keras.utils.set_random_seed(100 + seed)
        tuner = keras_tuner.RandomSearch(
            made, objective="val_loss", max_trials=1, hyperparameters=fixed, tune_new_entries=False,
            directory=folder, project_name=f"seed-{seed}", overwrite=True,
        )  # fmt: skip
        tuner.search(*parts[0], epochs=6, validation_data=parts[1], verbose=0)
        found.append(float(tuner.oracle.get_best_trials()[0].score))
    return found


def test_executions_that_are_trained_in_one_call_have_the_same_scores(
    tmp_path: Path, iris: DatasetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled.vmapped import VmappedProgram
    from workers.engine.training import lockstep

    def scores(folder: Path) -> list[float]:
        result, _ = trial(folder, own_code.OWN_OBJECTS, "build_model", iris, seeds=(1, 2, 3))
        return [each["score"] for each in result["trials"][0]["executions"]]

    one_by_one = scores(tmp_path / "a")
    calls = []
    train = VmappedProgram.train

    def counted(*given: Any) -> Any:
        calls.append(1)
        return train(*given)

    monkeypatch.setattr(lockstep, "_vmap_is_faster", lambda *_: True)
    monkeypatch.setattr(VmappedProgram, "is_faster", lambda *_: True)
    monkeypatch.setattr(VmappedProgram, "train", counted)
    np.testing.assert_allclose(scores(tmp_path / "b"), one_by_one, rtol=1e-4)
    assert calls


DENSE_ON_IMAGES = """
import keras


def build_model(hp):
    return keras.Sequential([keras.layers.Dense(hp.Int("units", 4, 8)), keras.layers.Dense(3)])
"""


def test_a_model_that_keeps_the_rows_of_an_image_is_told_to_flatten_them(tmp_path: Path) -> None:
    images = DataShape(kind="image", task="multiclass", input_shape=(4, 4, 1), outputs=3)
    with pytest.raises(CodeFailure, match=r"\(4, 4, 3\), but 3 classes need 3: add a layer such as Flatten"):
        dry_built(tmp_path, DENSE_ON_IMAGES, shape=images)
