"""Trees: they predict as scikit-learn does, train like any other template, and are saved without code."""

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

from jobs.spec.templates.trees import TreesArgs
from tests.engine.helpers import RecordingReport, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.models.files import load_model, save_model
from workers.engine.models.predict import Predictor
from workers.engine.models.trees.arrays import below
from workers.engine.models.trees.build import build_trees
from workers.engine.models.trees.growing import TrainingRows, grower
from workers.engine.training.checkpointing import Checkpointer
from workers.engine.training.early_stopping import BestTracker
from workers.engine.training.plan import TrainingPlan, TrainingResult
from workers.engine.training.prepare import prepare
from workers.engine.training.trees import PreparedTrees

BUNDLED = ("digits", "breast_cancer", "wine", "iris", "diabetes")
QUICK = ("iris", "diabetes")
"""Data sets of the first tier; `tests/engine/long_trainings` has all."""
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
    """Limit scikit-learn's models in these tests too: its waiting threads would slow each other down."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def predicted(model: Any, x: np.ndarray) -> np.ndarray:
    """Return scikit-learn's predictions in the form that this product's models use."""
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
    """Grow trees on these rows; return the model, saved and loaded."""
    builder = grower(args, TrainingRows(x, y, None, task, outputs), 0)
    builder.grow(rounds)
    model = build_trees(
        [builder.trees(number) for number in range(rounds)],
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
@pytest.mark.parametrize("name", QUICK)
def test_a_trained_model_predicts_as_the_same_model_of_scikit_learn(
    bundled: dict[str, Dataset], tmp_path: Path, name: str, method: str
) -> None:
    dataset = bundled[name]
    prepared, _, _ = trained(dataset, tmp_path, keeps_last=True, args={"method": method})
    save_model(prepared.model_to_save("t"), tmp_path / "t.keras")
    x = dataset.x[:].reshape(len(dataset.x), -1).astype(np.float32)
    expected = sklearn_model(method, classifies=dataset.task != "regression")
    expected.fit(x[dataset.parts.train], dataset.y[dataset.parts.train].ravel())
    predictions = Predictor(load_model(tmp_path / "t.keras", tmp_path))(dataset.x[:].astype(np.float32))
    np.testing.assert_allclose(predictions, predicted(expected, x), rtol=2e-6, atol=2e-6)


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
    predictions = Predictor(grown(tmp_path, args, x, labels, "multilabel", 3, 30))(x)
    assert ((predictions > 0.5) == (labels > 0.5)).mean() > 0.97
    assert (predictions[:, 2] > 0.999).all()
    targets = np.column_stack([x[:, 0], 100 * x[:, 1]]).astype(np.float32)
    predictions = Predictor(grown(tmp_path, args, x, targets, "regression", 2, 60))(x)
    spread = np.square(targets - targets.mean(axis=0)).mean(axis=0)
    assert (np.square(predictions - targets).mean(axis=0) < 0.1 * spread).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("present", [(0, 1, 3), (1, 3), (2,)])
def test_a_class_without_training_rows_has_no_probability(
    tmp_path: Path, method: str, present: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(present, 200).astype(np.int32)
    x = (y[:, None] + rng.normal(size=(200, 3)) / 10).astype(np.float32)
    predictions = Predictor(grown(tmp_path, TreesArgs(method=method), x, y, "multiclass", 4, 40))(x)
    absent = [label for label in range(4) if label not in present]
    assert (predictions[:, absent] == 0).all()
    np.testing.assert_allclose(predictions.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(predictions.argmax(axis=1), y)
