"""Trees: they predict as scikit-learn does, train like any other template, and are saved without code."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from jobs.messages.training import TrainTask
from jobs.spec.checks.data import problems as data_problems
from jobs.spec.checks.settings import problems
from jobs.spec.data.profile import InputBlock, Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.templates.trees import INFO, TreesArgs
from tests.engine.data.test_tables import customers
from tests.engine.helpers import RecordingReport, csv_file, profiled, spec_of
from tests.engine.making import ArtifactReport, train_member
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.models.files import load_model, save_model
from workers.engine.models.predict import Predictor
from workers.engine.models.trees.arrays import below
from workers.engine.models.trees.build import build_trees
from workers.engine.models.trees.categories import target_means
from workers.engine.models.trees.growing import TrainingRows, grower
from workers.engine.models.untrusted import scan
from workers.engine.report import TaskInterrupted
from workers.engine.tasks import train
from workers.engine.tasks.ensemble import combine
from workers.engine.training import checkpoint
from workers.engine.training.checkpointing import Checkpointer
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.plan import TrainingPlan, TrainingResult
from workers.engine.training.prepare import prepare
from workers.engine.training.trees import PreparedTrees
from workers.features.files import read_features

BUNDLED = ("digits", "breast_cancer", "wine", "iris", "diabetes")
METHODS = ("boosting", "random_forest", "extra_trees")
EPOCHS = 12
EXPECTED = {
    ("boosting", True): HistGradientBoostingClassifier,
    ("boosting", False): HistGradientBoostingRegressor,
    ("random_forest", True): RandomForestClassifier,
    ("random_forest", False): RandomForestRegressor,
    ("extra_trees", True): ExtraTreesClassifier,
    ("extra_trees", False): ExtraTreesRegressor,
}


def sklearn_model(method: str, *, classifies: bool, rounds: int = EPOCHS, seed: int = 0) -> Any:
    """Return scikit-learn's model with its own defaults, but for the depth."""
    if method == "boosting":
        return EXPECTED[method, classifies](
            max_iter=rounds, max_depth=32, early_stopping=False, random_state=seed
        )
    return EXPECTED[method, classifies](n_estimators=rounds, max_depth=32, random_state=seed)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Limit scikit-learn's models of these tests too: its waiting threads would slow each other down."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def predicted(model: Any, x: np.ndarray) -> np.ndarray:
    """Return scikit-learn's predictions in the form of a model of this product."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(x)).reshape(len(x), -1)
    shares = model.predict_proba(x)
    return shares[:, 1:] if shares.shape[1] == 2 else shares


def grown(
    tmp_path: Path,
    args: TreesArgs,
    x: np.ndarray,
    y: np.ndarray,
    task: Any,
    outputs: int,
    rounds: int = EPOCHS,
) -> Any:
    """Return the saved and loaded model of trees that were grown on these rows."""
    made = grower(args, TrainingRows(x, y, None, task, outputs), 0)
    made.grow(rounds)
    model = build_trees(
        [made.trees(number) for number in range(rounds)],
        x.shape[1:],
        task,
        boosting=args.method == "boosting",
        name="t",
    )
    save_model(model, tmp_path / "t.keras")
    return load_model(tmp_path / "t.keras", tmp_path)


def trained(
    dataset: Dataset,
    folder: Path,
    *,
    epochs: int = EPOCHS,
    resume: Any = None,
    requests: Any = (),
    patience: int | None = None,
    keeps_last: bool = False,
    **parts: Any,
) -> tuple[PreparedTrees, TrainingResult, RecordingReport]:
    """Train trees as a trial does."""
    spec = spec_of("any", "trees", fit={"epochs": epochs}, **parts)
    prepared = prepare(spec, dataset, dataset.parts.train, name="t", seed=0)
    assert isinstance(prepared, PreparedTrees)
    report = RecordingReport(folder)
    report.requests = list(requests)
    validation = prepared.evaluation_set(dataset.parts.validation)
    plan = TrainingPlan(
        model=prepared.model,
        batches=prepared.batches,
        loop=prepared.loop(validation, epochs=epochs),
        validation=validation,
        epochs=epochs,
        best=None if keeps_last else BestTracker("val_loss", "min"),
        stop=None if patience is None else BestTracker("val_loss", "min", patience),
        checkpointer=Checkpointer(folder / "checkpoints", report, fence=1, interval=1e9),
        report=report,
        on_progress=lambda done: report.progress(done),
    )
    return prepared, prepared.training(plan).run(resume), report


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dataset]:
    folder = tmp_path_factory.mktemp("bundled")
    return {
        name: load_dataset(profiled(folder / name, bundled=name), present(spec_of(name).data))
        for name in BUNDLED
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BUNDLED)
def test_a_trained_model_predicts_as_the_same_model_of_scikit_learn(
    bundled: dict[str, Dataset], tmp_path: Path, name: str, method: str
) -> None:
    dataset = bundled[name]
    prepared, _, _ = trained(dataset, tmp_path, keeps_last=True, args={"method": method})
    save_model(prepared.model_to_save("t"), tmp_path / "t.keras")
    x = dataset.x[:].reshape(len(dataset.x), -1).astype(np.float32)
    expected = sklearn_model(method, classifies=dataset.task != "regression")
    expected.fit(x[dataset.parts.train], dataset.y[dataset.parts.train].ravel())
    found = Predictor(load_model(tmp_path / "t.keras", tmp_path))(dataset.x[:].astype(np.float32))
    np.testing.assert_allclose(found, predicted(expected, x), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("method", METHODS)
def test_missing_values_take_the_same_way_as_in_scikit_learn(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5)).astype(np.float32)
    x[rng.random(x.shape) < 0.3] = np.nan
    y = (np.nan_to_num(x[:, 0], nan=2.0) + np.nan_to_num(x[:, 1]) > 0.5).astype(np.int32)
    model = grown(tmp_path, TreesArgs(method=method), x, y, "binary", 1)
    expected = sklearn_model(method, classifies=True).fit(x, y)
    np.testing.assert_allclose(Predictor(model)(x), predicted(expected, x), rtol=2e-6, atol=2e-6)


def test_a_rounded_threshold_decides_as_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [rng.normal(size=2000) * 10.0 ** rng.integers(-42, 42, 2000), [np.inf, -np.inf, 0]]
    )
    rounded = below(numbers)
    with np.errstate(over="ignore"):
        near = numbers.astype(np.float32)
    for step in (-np.inf, np.inf):
        for x in (near, np.nextafter(near, np.float32(step))):
            np.testing.assert_array_equal(x <= rounded, x.astype(np.float64) <= numbers)


@pytest.mark.parametrize("method", METHODS)
def test_how_many_rounds_are_grown_at_once_does_not_change_them(
    bundled: dict[str, Dataset], method: str
) -> None:
    dataset = bundled["wine"]
    args = TreesArgs(method=method, features=0.5)
    rows = TrainingRows(dataset.x[:], dataset.y, None, "multiclass", 3)
    whole, parts = grower(args, rows, 5), grower(args, rows, 5)
    whole.grow(9)
    for rounds in (1, 3, 4, 9):
        parts.grow(rounds)
    for number in range(9):
        for one, other in zip(whole.trees(number), parts.trees(number), strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", METHODS)
def test_several_labels_and_several_targets_have_an_output_each(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)).astype(np.float32)
    args = TreesArgs(method=method)
    # The last label is the same in all rows.
    labels = np.column_stack([x[:, 0] > 0, x[:, 1] > 0, np.ones(300)]).astype(np.float32)
    found = Predictor(grown(tmp_path, args, x, labels, "multilabel", 3, 30))(x)
    assert ((found > 0.5) == (labels > 0.5)).mean() > 0.97
    assert (found[:, 2] > 0.999).all()
    targets = np.column_stack([x[:, 0], 100 * x[:, 1]]).astype(np.float32)
    found = Predictor(grown(tmp_path, args, x, targets, "regression", 2, 60))(x)
    spread = np.square(targets - targets.mean(axis=0)).mean(axis=0)
    assert (np.square(found - targets).mean(axis=0) < 0.1 * spread).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("present", [(0, 1, 3), (1, 3), (2,)])
def test_a_class_without_training_rows_has_no_probability(
    tmp_path: Path, method: str, present: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(present, 200).astype(np.int32)
    x = (y[:, None] + rng.normal(size=(200, 3)) / 10).astype(np.float32)
    found = Predictor(grown(tmp_path, TreesArgs(method=method), x, y, "multiclass", 4, 40))(x)
    absent = [label for label in range(4) if label not in present]
    assert (found[:, absent] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(found.argmax(axis=1), y)


def test_a_training_reports_each_round_and_keeps_the_best(
    bundled: dict[str, Dataset], tmp_path: Path
) -> None:
    dataset = bundled["breast_cancer"]
    args = {"method": "boosting", "shrinkage": 1.0}
    prepared, result, report = trained(dataset, tmp_path, epochs=60, patience=5, args=args)
    assert result.is_exhausted
    assert result.epochs == result.best_epoch + 5 < 60
    assert [args[0] for args, _ in report.of("metric")] == list(range(1, result.epochs + 1))
    names = set(report.of("metric")[0][0][1])
    assert names == {"loss", "accuracy", "val_loss", "val_accuracy", "val_auc"} & names
    assert {"loss", "val_loss", "val_accuracy"} <= names
    assert len(prepared.loops[-1].rounds) == result.best_epoch
    validation = prepared.evaluation_set(dataset.parts.validation)
    found = prepared.predict(validation.x, 64)
    accuracy = float(((found[:, 0] > 0.5) == validation.y).mean())
    assert accuracy == pytest.approx(result.metrics["val_accuracy"])


def test_a_forest_has_all_its_trees_whatever_a_few_validation_rows_prefer(
    bundled: dict[str, Dataset], tmp_path: Path
) -> None:
    prepared, result, _ = trained(bundled["wine"], tmp_path, args={"method": "extra_trees"})
    losses = [epoch["val_loss"] for epoch in result.history]
    assert min(losses) < losses[-1], "some epoch looks better than the last one"
    assert (result.best_epoch, len(prepared.loops[-1].rounds)) == (EPOCHS, EPOCHS)
    assert result.metrics == result.history[-1]


@pytest.mark.parametrize("method", METHODS)
def test_a_paused_training_continues_as_if_it_had_not_been_paused(
    bundled: dict[str, Dataset], tmp_path: Path, method: str
) -> None:
    dataset, args = bundled["iris"], {"method": method}
    _, whole, _ = trained(dataset, tmp_path / "whole", args=args)
    with pytest.raises(TaskInterrupted):
        trained(dataset, tmp_path / "paused", requests=[None] * 4 + ["pause"], args=args)
    newest = checkpoint.list_committed(tmp_path / "paused" / "checkpoints")[0]
    assert all(file.stat().st_size < 20_000 for file in newest.iterdir())
    resumed = checkpoint.read(newest)
    assert resumed.state["epoch"] == 5
    _, result, report = trained(dataset, tmp_path / "resumed", resume=resumed, args=args)
    assert result.history == whole.history
    assert [args[0] for args, _ in report.of("metric")] == list(range(6, EPOCHS + 1))
    [(_, named)] = report.of("resumed")
    assert named["saved"] == named["loaded"]


def test_a_checkpoint_of_other_trees_is_not_continued(bundled: dict[str, Dataset], tmp_path: Path) -> None:
    dataset = bundled["iris"]
    _, whole, _ = trained(dataset, tmp_path / "whole")
    with pytest.raises(TaskInterrupted):
        trained(dataset, tmp_path / "paused", requests=[None] * 4 + ["pause"], args={"shrinkage": 0.5})
    resumed = checkpoint.read(checkpoint.list_committed(tmp_path / "paused" / "checkpoints")[0])
    _, result, report = trained(dataset, tmp_path / "resumed", resume=resumed)
    assert result.history == whole.history
    assert not report.of("resumed")
    assert "begins again" in report.of("log")[-1][0][0]


def test_class_weights_change_the_trees(bundled: dict[str, Dataset], tmp_path: Path) -> None:
    dataset = bundled["breast_cancer"]
    rows = dataset.parts.validation
    found = []
    for weights in ("none", {"malignant": 50.0}):
        spec = spec_of("any", "trees", fit={"class_weights": weights})
        prepared = prepare(spec, dataset, dataset.parts.train, name="t", seed=0)
        loop = prepared.loop(epochs=5)
        loop.epoch(5, 0, [], lambda _: None)
        found.append(prepared.predict(dataset.x[rows], 64).mean())
    assert abs(found[1] - found[0]) > 0.05


def test_weighted_boosting_is_as_good_as_that_of_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) ** 2 > 1).astype(np.int32)
    weights = np.where(y == 1, 3.0, 1.0)
    made = grower(TreesArgs(), TrainingRows(x, y, weights, "binary", 1), 0)
    made.grow(EPOCHS)
    rounds = [made.trees(number) for number in range(EPOCHS)]
    found = Predictor(build_trees(rounds, (3,), "binary", boosting=True, name="t"))(x)[:, 0]
    model = sklearn_model("boosting", classifies=True).fit(x, y, sample_weight=weights)
    expected = predicted(model, x)[:, 0]
    # Their bins differ a little, so some rows near a threshold get another value.
    assert np.median(np.abs(found - expected)) < 0.02
    loss = [np.average(-np.log(np.where(y == 1, p, 1 - p)), weights=weights) for p in (found, expected)]
    assert loss[0] == pytest.approx(loss[1], rel=0.05)


def test_the_mean_of_a_category_is_not_computed_from_the_row_itself() -> None:
    block = InputBlock(column="city", start=1, positions=1, kind="index", size=402)
    x = np.column_stack([np.ones(400), np.arange(2, 402)]).astype(np.float32)
    targets = (np.arange(400) % 2).astype(float)[:, None]
    means = target_means([block], x, targets, np.ones(400))
    own = means.encode(x)[:, 1]
    np.testing.assert_allclose(own, (targets[:, 0] + 5) / 11, rtol=1e-6)
    others = means.encode_training_rows(x, targets, np.ones(400), 0)[:, 1]
    # Each category has one row, so without it nothing is known but the mean of the other folds.
    assert len(np.unique(others)) <= 5
    assert np.abs(others - 0.5).max() < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_a_table_with_gaps_is_trained_exported_and_loaded_in_safe_mode(tmp_path: Path, method: str) -> None:
    file = profiled(tmp_path / "table", source="csv", path=csv_file(tmp_path, customers()))
    spec = ExperimentSpec.model_validate(
        {
            "data": {"dataset": "customers"},
            "model": {"kind": "template", "template": "trees", "args": {"method": method}},
            "fit": {"epochs": 40},
            "after": {"retrain": {"top": 1, "patience": 10, "epochs_cap": 40}},
        }
    )
    assert list(problems(spec)) == []
    assert data_problems(spec, Profile.model_validate(file.profile)) == []
    report = ArtifactReport(tmp_path / "job")
    task = TrainTask(
        folder=report.folder,
        threads=1,
        fence=1,
        spec=spec,
        dataset=file,
        model_name="churn",
        objective={"metric": "val_loss", "direction": "min"},
        retrain=spec.after.retrain,
    )
    result = train.run(task, report)
    assert result["metrics"]["test"]["accuracy"] > 0.8
    assert [column["name"] for column in result["signature"]["columns"]] == [
        "age", "city", "plan", "bought", "income", "active", "review",
    ]  # fmt: skip
    path = report.artifacts["model"]
    assert read_features(path) is not None
    # A file from elsewhere is accepted only with built-in layers.
    scanned = scan(path)
    assert scanned.estimated <= 2 * scanned.stored


def test_trees_and_a_network_are_combined_into_one_model(tmp_path: Path, bundled: dict[str, Dataset]) -> None:
    file = profiled(tmp_path / "iris", bundled="iris")
    network = train_member(tmp_path, "network", spec_of("iris"), file)
    dataset = bundled["iris"]
    prepared, _, _ = trained(dataset, tmp_path)
    save_model(prepared.model_to_save("trees"), tmp_path / "trees.keras")
    members = [load_model(path, tmp_path) for path in (Path(network.model), tmp_path / "trees.keras")]
    save_model(combine(members, np.array([0.25, 0.75])), tmp_path / "both.keras")
    x = dataset.x[:20]
    one, other = (Predictor(member)(x) for member in members)
    both = Predictor(load_model(tmp_path / "both.keras", tmp_path))(x)
    np.testing.assert_allclose(both, 0.25 * one + 0.75 * other, atol=1e-6)


OTHER_VALUES: dict[str, Any] = {
    "/mesh": {"shape": [1], "axis_names": ["data"], "simulate": 1},
    "/precision": {"policy": "mixed_bfloat16"},
    "/fit/batch_size": 32,
    "/fit/shuffle": False,
    "/fit/steps_per_execution": 2,
    "/fit/loss": "sparse_categorical_crossentropy",
    "/fit/augmentation": {"flip": "horizontal"},
    "/fit/optimizer": "sgd",
    "/fit/optimizer_args": {"beta_1": 0.8},
    "/fit/learning_rate": 0.1,
    "/fit/schedule": {"kind": "cosine"},
    "/fit/clipnorm": 1.0,
    "/fit/clipvalue": 1.0,
    "/fit/global_clipnorm": 1.0,
    "/fit/ema": {},
}


@pytest.mark.parametrize("pointer", INFO.unused)
def test_a_setting_without_effect_is_refused_with_its_place_and_reason(pointer: str) -> None:
    section, _, name = pointer[1:].partition("/")
    value = OTHER_VALUES[pointer]
    spec = spec_of("iris", "trees", **{section: {name: value} if name else value})
    [found] = problems(spec)
    assert found.pointer == pointer
    assert found.message.startswith("has no effect on trees, since ")
    assert list(problems(spec_of("iris", "mlp", **{section: {name: value} if name else value}))) == []


def test_trees_cannot_be_quantized() -> None:
    [found] = problems(spec_of("iris", "trees", after={"quantize": {"mode": "int8"}}))
    assert found.pointer == "/after/quantize"
    assert found.message.startswith("cannot follow trees, since int8 is for the kernels of layers")


def test_hyperparameters_without_effect_are_refused() -> None:
    space = [{"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}]
    [found] = problems(spec_of("iris", "trees", search={"space": space}))
    assert found.pointer == "/search/space/0/name"
    assert found.message == "'learning_rate' has no effect on trees; leave it out"


def test_a_search_over_trees_and_networks_may_set_what_networks_use_but_not_quantize() -> None:
    tried = {"name": "template", "kind": "choice", "values": ["mlp", "trees"]}
    rate = {"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}
    parts = {"fit": {"batch_size": 32}, "search": {"space": [tried, rate]}}
    for template in ("mlp", "trees"):
        assert list(problems(spec_of("iris", template, **parts))) == []
        [found] = problems(spec_of("iris", template, **parts, after={"quantize": {}}))
        assert found.pointer == "/after/quantize"


def test_arguments_of_boosting_are_refused_for_forests() -> None:
    with pytest.raises(ValueError, match="shrinkage has no effect on random_forest"):
        spec_of("iris", "trees", args={"method": "random_forest", "shrinkage": 0.2})
    with pytest.raises(ValueError, match="leaves is 1"):
        spec_of("iris", "trees", args={"leaves": 1})


def test_the_code_of_networks_does_not_import_scikit_learn() -> None:
    code = (
        "import sys; from workers.runner.libraries import import_keras; import_keras(); "
        "import workers.engine.tasks.train, workers.engine.tasks.trial; "
        "sys.exit('sklearn' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"KERAS_BACKEND": "jax", "PATH": ""})
