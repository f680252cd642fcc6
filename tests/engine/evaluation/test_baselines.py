"""The score of the constant prediction that a search's trials are compared with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.dummy import DummyClassifier, DummyRegressor

from jobs.messages.task import DatasetFile, OwnCode
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.data.profile import Profile
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.evaluation import Turn
from jobs.spec.sections.measures import METRICS
from jobs.spec.sections.search import Objective
from tests import own_code
from tests.engine.helpers import RecordingReport, csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.folds import Fold, rows_for
from workers.engine.data.split import Parts
from workers.engine.data.weights import RowWeights
from workers.engine.training.baselines import measure_baseline
from workers.engine.training.plan import EvaluationSet

TRAIN, HELD_OUT = np.arange(60), np.arange(60, 100)
ROWS = Fold(TRAIN, HELD_OUT)
NAMES = ("no", "yes", "maybe", "never", "often", "once", "twice")


def data_of(task: Any, y: Any, *, weights: Any = None) -> Dataset:
    """Return a data set with these targets; its features do not matter."""
    outputs = y.shape[1] if y.ndim == 2 else len(np.unique(y))
    labels = NAMES[:outputs] if task != "regression" else ()
    described: dict[str, Any] = {"task": task, "outputs": outputs, "class_labels": labels}
    profile = Profile.model_construct(**described)
    row_weights = None if weights is None else RowWeights.of_column("w", weights)
    x, nothing = np.zeros((len(y), 1), np.float32), np.arange(0)
    return Dataset(x, y, profile, Parts(TRAIN, HELD_OUT, nothing), "d", weights=row_weights)


def measured(data: Dataset, name: str, *, loss: str = "", scale: Any = None) -> Baseline:
    weights = data.weights_of(HELD_OUT)
    evaluation = EvaluationSet(
        x=data.x[HELD_OUT], y=data.y[HELD_OUT], loss=loss, metrics=(), scale=scale, batch_size=8,
        weights=None if weights is None else weights.values,
    )  # fmt: skip
    direction = METRICS[name][1] if name in METRICS else "min"
    return measure_baseline(
        Objective(metric=f"val_{name}", direction=direction), Turn(1, None), evaluation, data, ROWS
    )


@pytest.fixture
def classes() -> Any:
    return np.random.default_rng(1).choice(2, 100, p=[0.7, 0.3])


@pytest.fixture
def numbers() -> Any:
    return np.random.default_rng(1).lognormal(size=(100, 1)).astype(np.float32)


def dummy(strategy: str, y: Any, weights: Any = None) -> Any:
    """Return what scikit-learn's classifier that ignores the features predicts for the held-out rows."""
    x = np.zeros((100, 1))
    of_train = None if weights is None else weights[TRAIN]
    model = DummyClassifier(strategy=strategy, constant=1 if strategy == "constant" else None)
    return model.fit(x[TRAIN], y[TRAIN], of_train).predict_proba(x[HELD_OUT])


def test_accuracy_is_that_of_the_most_frequent_class(classes: Any) -> None:
    baseline = measured(data_of("binary", classes), "accuracy")
    expected = sklearn_metrics.accuracy_score(
        classes[HELD_OUT], dummy("most_frequent", classes).argmax(axis=1)
    )
    assert baseline.score == pytest.approx(expected)
    assert present(baseline.constant).describe() == "always 'no'"
    assert present(baseline.low) < expected < present(baseline.high)


def test_cross_entropy_is_that_of_the_frequencies_of_the_training_rows(classes: Any) -> None:
    expected = sklearn_metrics.log_loss(classes[HELD_OUT], dummy("prior", classes)[:, 1])
    loss = measured(data_of("binary", classes), "loss", loss="binary_crossentropy")
    assert loss.score == pytest.approx(expected) and loss.low is None
    several = np.random.default_rng(2).choice(7, 100)
    expected = sklearn_metrics.log_loss(several[HELD_OUT], dummy("prior", several), labels=range(7))
    several_classes = data_of("multiclass", several)
    loss = measured(several_classes, "loss", loss="sparse_categorical_crossentropy")
    assert loss.score == pytest.approx(expected)
    top_5 = measured(several_classes, "top_5_accuracy").score
    frequent = np.argsort(np.bincount(several[TRAIN]))[-5:]
    assert top_5 == pytest.approx(np.isin(several[HELD_OUT], frequent).mean())


def test_no_order_of_rows_follows_from_a_constant(classes: Any) -> None:
    assert measured(data_of("binary", classes), "auc").score == 0.5


def test_precision_is_that_of_always_the_second_class_and_recall_has_none(classes: Any) -> None:
    data = data_of("binary", classes)
    precision = measured(data, "precision")
    assert precision.score == pytest.approx(classes[HELD_OUT].mean())
    assert present(precision.constant).describe() == "always 'yes'"
    assert measured(data, "recall").score is None, "a constant's recall is 1, which no model exceeds"


@pytest.mark.parametrize(
    ("name", "strategy", "expected"),
    [
        ("mse", "mean", sklearn_metrics.mean_squared_error),
        ("rmse", "mean", sklearn_metrics.root_mean_squared_error),
        ("r2", "mean", sklearn_metrics.r2_score),
        ("mae", "median", sklearn_metrics.mean_absolute_error),
    ],
)
def test_a_number_is_predicted_by_the_mean_or_the_median(
    numbers: Any, name: str, strategy: str, expected: Any
) -> None:
    model = DummyRegressor(strategy=strategy).fit(np.zeros((60, 1)), numbers[TRAIN])
    constant = np.full((40, 1), float(model.constant_[0, 0]))
    baseline = measured(data_of("regression", numbers), name)
    assert baseline.score == pytest.approx(expected(numbers[HELD_OUT], constant))
    assert present(baseline.constant).kind == strategy


def test_a_loss_between_both_takes_the_better_one_on_the_training_rows(numbers: Any) -> None:
    data = data_of("regression", numbers)
    kinds = {
        scale: present(measured(data, "loss", loss="huber", scale=np.array([scale])).constant).kind
        for scale in (100.0, 0.01)
    }
    assert kinds == {100.0: "mean", 0.01: "median"}, "a large scale makes it a squared error"


def test_several_targets_are_predicted_column_by_column() -> None:
    y = np.random.default_rng(3).normal(size=(100, 2)).astype(np.float32) * [1.0, 5.0]
    baseline = measured(data_of("regression", y), "mae")
    expected = np.abs(y[HELD_OUT] - np.median(y[TRAIN], axis=0)).mean()
    assert baseline.score == pytest.approx(expected)
    assert present(baseline.constant).describe() == "always the median"


def test_labels_are_predicted_each_by_its_frequency() -> None:
    y = (np.random.default_rng(4).random((100, 3)) < [0.2, 0.5, 0.8]).astype(np.int64)
    data = data_of("multilabel", y)
    rates = y[TRAIN].mean(axis=0)
    assert measured(data, "accuracy").score == pytest.approx(((rates > 0.5) == y[HELD_OUT]).mean())
    assert measured(data, "precision").score == pytest.approx(y[HELD_OUT, rates.argmax()].mean())
    expected = -np.where(y[HELD_OUT], np.log(rates), np.log(1 - rates)).mean()
    assert measured(data, "loss", loss="binary_crossentropy").score == pytest.approx(expected)


def test_weights_of_rows_count_in_the_constant_and_in_its_score(classes: Any, numbers: Any) -> None:
    weights = np.where(classes == 1, 5.0, 1.0)
    baseline = measured(data_of("binary", classes, weights=weights), "accuracy")
    expected = sklearn_metrics.accuracy_score(
        classes[HELD_OUT],
        dummy("most_frequent", classes, weights).argmax(axis=1),
        sample_weight=weights[HELD_OUT],
    )
    assert baseline.score == pytest.approx(expected) and present(baseline.constant).value == "yes"
    assert baseline.low is None, "weighted rows have no interval of a proportion"
    median = measured(data_of("regression", numbers, weights=weights), "mae")
    model = DummyRegressor(strategy="median").fit(np.zeros((60, 1)), numbers[TRAIN], weights[TRAIN])
    assert present(median.constant).value == pytest.approx(float(model.constant_[0, 0]))


def test_a_score_that_is_not_defined_is_none() -> None:
    y = np.array([0, 1] * 30 + [0] * 40)
    assert measured(data_of("binary", y), "auc").score is None


# Whole trials


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    """Return a table whose target does not follow from its columns: nine of ten rows are 'no'."""
    folder = tmp_path_factory.mktemp("noise")
    draws = np.random.default_rng(5)
    lines = [f"{draws.normal():.4f},{'yes' if draws.random() < 0.1 else 'no'}" for _ in range(200)]
    path = csv_file(folder, "\n".join(["a,bought", *lines]))
    return profiled(folder / "profile", source="csv", path=path, target="bought")


def baselines_of(
    table: DatasetFile, folder: Path, plans: tuple[ExecutionPlan, ...], *, trials: int = 1, **parts: Any
) -> list[Baseline]:
    """Return the scores that a task reports."""
    from workers.engine.tasks import trial

    metric, direction = parts.pop("metric", "val_accuracy"), parts.pop("direction", "max")
    code, parts = parts.pop("code", None), {"fit": {"epochs": 1, "batch_size": 64}, **parts}
    if code is None:
        spec = spec_of("noise", "linear", **parts)
    else:
        model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
        spec = spec_of("noise", **parts).model_validate(
            {"data": {"dataset": "noise"}, "model": model, **parts}
        )
    report = RecordingReport(folder)
    task = TrialTask(
        folder=str(folder), spec=spec, objective=Objective(metric=metric, direction=direction), dataset=table,
        code=code,
        trials=tuple(
            TrialPlan(number=number, values={}, spec=spec, executions=plans)
            for number in range(1, trials + 1)
        ),
    )  # fmt: skip
    trial.run(task, report)
    return [args[0] for args, _ in report.of("baseline")]


def share_of_no(table: DatasetFile, rows: Any = None) -> float:
    data = load_dataset(table, present(spec_of("noise").data))
    y = data.y[data.parts.validation if rows is None else rows]
    return float((y == data.profile.class_labels.index("no")).mean())


def test_a_task_measures_it_once_for_the_same_rows(table: DatasetFile, tmp_path: Path) -> None:
    plans = tuple(ExecutionPlan(execution=n, seed=n, repeat=n, wants_baseline=True) for n in (1, 2))
    (baseline,) = baselines_of(table, tmp_path, plans, trials=2)
    assert baseline.score == pytest.approx(share_of_no(table))
    assert (baseline.metric, baseline.repeat, baseline.fold) == ("val_accuracy", 1, None)


def test_it_is_not_measured_where_it_is_known(table: DatasetFile, tmp_path: Path) -> None:
    assert baselines_of(table, tmp_path, (ExecutionPlan(execution=1, seed=1),)) == []


def test_each_fold_has_its_own(table: DatasetFile, tmp_path: Path) -> None:
    search = {
        "evaluation": {"kind": "k_fold", "folds": 2},
        "space": [{"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}],
    }
    plans = tuple(ExecutionPlan(execution=n, seed=1, fold=n, wants_baseline=n == 2) for n in (1, 2))
    (baseline,) = baselines_of(table, tmp_path, plans, search=search)
    spec = spec_of("noise", search=search)
    rows = rows_for(Turn(1, 2), load_dataset(table, present(spec.data)), spec).validation
    assert baseline.fold == 2 and baseline.score == pytest.approx(share_of_no(table, rows))


BINARY = """
def build_model(hp):
    model = keras.Sequential([layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=METRICS)
    return model
"""


def own_model(folder: Path, metrics: str) -> OwnCode:
    text = own_code.IMPORTS + BINARY.replace("METRICS", metrics)
    return own_code.code_in(folder / "code", text)


@pytest.mark.parametrize("name", ["accuracy", "binary_accuracy"])
def test_code_that_compiles_its_model_measures_it_itself(
    table: DatasetFile, tmp_path: Path, name: str
) -> None:
    plans = (ExecutionPlan(execution=1, seed=1, wants_baseline=True),)
    code = own_model(tmp_path, f'["{name}"]')
    (baseline,) = baselines_of(table, tmp_path, plans, code=code, metric=f"val_{name}")
    assert baseline.score == pytest.approx(share_of_no(table))
    assert present(baseline.constant).describe() == "always 'no'" and baseline.low is not None


@pytest.mark.parametrize(
    ("loss", "constant"),
    [
        ("mean_absolute_error", "always 'no'"),
        ("binary_crossentropy", "always the frequencies in the training rows"),
    ],
)
def test_a_loss_that_is_no_cross_entropy_may_be_better_with_the_most_frequent_class(
    table: DatasetFile, tmp_path: Path, loss: str, constant: str
) -> None:
    plans = (ExecutionPlan(execution=1, seed=1, wants_baseline=True),)
    text = own_code.IMPORTS + BINARY.replace("METRICS", "[]").replace("binary_crossentropy", loss)
    code = own_code.code_in(tmp_path / "code", text)
    (baseline,) = baselines_of(table, tmp_path, plans, code=code, metric="val_loss", direction="min")
    assert present(baseline.constant).describe() == constant
    if loss == "mean_absolute_error":
        assert baseline.score == pytest.approx(1 - share_of_no(table)), "each row with 'yes' is wrong by 1"


def test_a_metric_that_only_the_code_knows_has_none(table: DatasetFile, tmp_path: Path) -> None:
    plans = (ExecutionPlan(execution=1, seed=1, wants_baseline=True),)
    metric = '[keras.metrics.BinaryAccuracy(name="own_score")]'
    code = own_model(tmp_path, metric)
    (baseline,) = baselines_of(table, tmp_path, plans, code=code, metric="val_own_score")
    assert (baseline.score, baseline.constant) == (None, None)
