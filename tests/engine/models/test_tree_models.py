"""Trees among other models: tables, ensembles, and settings without effect on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from jobs.messages.training import TrainTask
from jobs.spec.checks.data import problems as data_problems
from jobs.spec.checks.settings import problems
from jobs.spec.data.profile import InputBlock, Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.templates.trees import INFO, TreesArgs
from tests.engine.data.test_tables import customers
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.engine.making import ArtifactReport, train_member
from tests.engine.models.test_trees import BUNDLED, EPOCHS, predicted, sklearn_model, trained
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.models.files import load_model, save_model
from workers.engine.models.predict import Predictor
from workers.engine.models.trees.build import build_trees
from workers.engine.models.trees.categories import target_means
from workers.engine.models.trees.growing import TrainingRows, grower
from workers.engine.models.untrusted import scan
from workers.engine.tasks import train
from workers.engine.tasks.ensemble import combine
from workers.engine.training.prepare import prepare
from workers.features.files import read_features


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Limit scikit-learn's models in these tests too: its waiting threads would slow each other down."""
    with threadpool_limits(1, user_api="openmp"):
        yield


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dataset]:
    folder = tmp_path_factory.mktemp("bundled")
    return {
        name: load_dataset(profiled(folder / name, bundled=name), present(spec_of(name).data))
        for name in BUNDLED
    }


def test_class_weights_change_the_trees(bundled: dict[str, Dataset], tmp_path: Path) -> None:
    dataset = bundled["breast_cancer"]
    rows = dataset.parts.validation
    means = []
    for weights in ("none", {"malignant": 50.0}):
        spec = spec_of("any", "trees", fit={"class_weights": weights})
        prepared = prepare(spec, dataset, dataset.parts.train, name="t", seed=0)
        loop = prepared.loop(epochs=5)
        loop.epoch(5, 0, [], lambda _: None)
        means.append(prepared.predict(dataset.x[rows], 64).mean())
    assert abs(means[1] - means[0]) > 0.05


def test_weighted_boosting_is_as_good_as_that_of_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) ** 2 > 1).astype(np.int32)
    weights = np.where(y == 1, 3.0, 1.0)
    builder = grower(TreesArgs(), TrainingRows(x, y, weights, "binary", 1), 0)
    builder.grow(EPOCHS)
    rounds = [builder.trees(number) for number in range(EPOCHS)]
    predictions = Predictor(build_trees(rounds, (3,), "binary", boosting=True, name="t"))(x)[:, 0]
    model = sklearn_model("boosting", classifies=True).fit(x, y, sample_weight=weights)
    expected = predicted(model, x)[:, 0]
    # Their bins differ a little, so some rows near a threshold get another value.
    assert np.median(np.abs(predictions - expected)) < 0.02
    loss = [np.average(-np.log(np.where(y == 1, p, 1 - p)), weights=weights) for p in (predictions, expected)]
    assert loss[0] == pytest.approx(loss[1], rel=0.05)


def test_the_mean_of_a_category_is_not_computed_from_the_row_itself() -> None:
    block = InputBlock(column="city", start=1, positions=1, kind="index", size=402)
    x = np.column_stack([np.ones(400), np.arange(2, 402)]).astype(np.float32)
    targets = (np.arange(400) % 2).astype(float)[:, None]
    means = target_means([block], x, targets, np.ones(400))
    encoded = means.encode(x)[:, 1]
    np.testing.assert_allclose(encoded, (targets[:, 0] + 5) / 11, rtol=1e-6)
    others = means.encode_training_rows(x, targets, np.ones(400), 0)[:, 1]
    # Each category has one row, so without it nothing is known but the mean of the other folds.
    assert len(np.unique(others)) <= 5
    assert np.abs(others - 0.5).max() < 0.1


@pytest.mark.parametrize("method", ["boosting"])
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
    "/resources/gpu": {"count": 1},
}


@pytest.mark.parametrize("pointer", INFO.unused)
def test_a_setting_without_effect_is_refused_with_its_place_and_reason(pointer: str) -> None:
    section, _, name = pointer[1:].partition("/")
    value = OTHER_VALUES[pointer]
    spec = spec_of("iris", "trees", **{section: {name: value} if name else value})
    [problem] = problems(spec)
    assert problem.pointer == pointer
    assert problem.message.startswith("has no effect on trees, since ")
    assert list(problems(spec_of("iris", "mlp", **{section: {name: value} if name else value}))) == []


def test_trees_cannot_be_quantized() -> None:
    [problem] = problems(spec_of("iris", "trees", after={"quantize": {"mode": "int8"}}))
    assert problem.pointer == "/after/quantize"
    assert problem.message.startswith("cannot follow trees, since int8 is for the kernels of layers")


def test_hyperparameters_without_effect_are_refused() -> None:
    space = [{"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}]
    [problem] = problems(spec_of("iris", "trees", search={"space": space}))
    assert problem.pointer == "/search/space/0/name"
    assert problem.message == "'learning_rate' has no effect on trees; leave it out"


def test_a_search_over_trees_and_networks_may_set_what_networks_use_but_not_quantize() -> None:
    tried = {"name": "template", "kind": "choice", "values": ["mlp", "trees"]}
    rate = {"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}
    parts = {"fit": {"batch_size": 32}, "search": {"space": [tried, rate]}}
    for template in ("mlp", "trees"):
        assert list(problems(spec_of("iris", template, **parts))) == []
        [problem] = problems(spec_of("iris", template, **parts, after={"quantize": {}}))
        assert problem.pointer == "/after/quantize"


def test_arguments_of_boosting_are_refused_for_forests() -> None:
    with pytest.raises(ValueError, match="shrinkage has no effect on random_forest"):
        spec_of("iris", "trees", args={"method": "random_forest", "shrinkage": 0.2})
    with pytest.raises(ValueError, match="leaves is 1"):
        spec_of("iris", "trees", args={"leaves": 1})
