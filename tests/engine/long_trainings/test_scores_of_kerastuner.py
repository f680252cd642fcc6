"""Scores agree with those of KerasTuner's own tuner."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.models import test_own_code_scores, test_own_fit_arguments
from tests.engine.models.test_own_code_training import spec, trial
from tests.engine.models.test_own_fit_arguments import SCORED
from tests.present import present


@pytest.mark.parametrize("case", [case for case in SCORED if case != "multiplies the epochs"])
def test_the_score_is_that_of_kerastuner(tmp_path: Path, iris: DatasetFile, case: str) -> None:
    test_own_fit_arguments.test_the_score_is_that_of_kerastuner(tmp_path, iris, case)


def test_two_outputs_for_two_classes_and_classes_as_vectors_become_one_probability(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    test_own_code_scores.test_two_outputs_for_two_classes_become_the_probability_of_the_second(
        tmp_path, tmp_path_factory, "categorical_crossentropy"
    )


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
    ours = [execution["score"] for execution in result["trials"][0]["executions"]]
    # Fewer of theirs: each builds and traces its model again.
    theirs = kerastuner_scores(tmp_path, text, entry, iris, values, 3)
    limit = 4 * sum(np.std(scores, ddof=1) / np.sqrt(len(scores)) for scores in (ours, theirs))
    assert abs(np.mean(ours) - np.mean(theirs)) < limit, (ours, theirs)


def kerastuner_scores(
    folder: Path, text: str, entry: str, file: DatasetFile, values: dict[str, Any], executions: int
) -> list[float]:
    """Run a trial with KerasTuner's own tuner; return each execution's best validation loss."""
    import keras
    import keras_tuner

    from workers.engine.data.dataset import load_dataset

    scope: dict[str, Any] = {}
    exec(text, scope)
    hypermodel = scope[entry]() if isinstance(scope[entry], type) else scope[entry]
    fixed = keras_tuner.HyperParameters()
    for name, value in values.items():
        fixed.Fixed(name, value)
    dataset = load_dataset(file, present(spec(own_code.code_in(folder / "code", text), entry).data))
    parts = [(dataset.x[rows], dataset.y[rows]) for rows in (dataset.parts.train, dataset.parts.validation)]
    if "categorical_crossentropy" in text and "sparse" not in text:
        parts = [(x, np.eye(3)[y]) for x, y in parts]
    scores = []
    for seed in range(executions):
        keras.utils.set_random_seed(100 + seed)
        tuner = keras_tuner.RandomSearch(
            hypermodel, objective="val_loss", max_trials=1, hyperparameters=fixed, tune_new_entries=False,
            directory=folder, project_name=f"seed-{seed}", overwrite=True,
        )  # fmt: skip
        tuner.search(*parts[0], epochs=6, validation_data=parts[1], verbose=0)
        scores.append(float(tuner.oracle.get_best_trials()[0].score))
    return scores
