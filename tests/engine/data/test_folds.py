"""Cross-validation: each row is used for validation once, groups stay together, classes are balanced."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.spec.sections.data import Split
from jobs.spec.sections.evaluation import Turn
from tests.engine.helpers import RecordingReport, spec_of
from tests.engine.small_training import blobs_file
from tests.present import present
from workers.engine.data.dataset import Dataset
from workers.engine.data.folds import assign_folds, rows_for
from workers.engine.data.split import split
from workers.engine.errors import BadSpec

SPACE = [{"name": "units", "kind": "fixed", "value": 4}]


def k_fold(count: int, **more: Any) -> dict[str, Any]:
    return {"evaluation": {"kind": "k_fold", "folds": count}, "space": SPACE, **more}


@settings(deadline=None)
@given(rows=st.integers(10, 200), count=st.integers(2, 5), seed=st.integers(0, 9), stratify=st.booleans())
def test_each_row_outside_the_test_part_is_used_for_validation_once(
    rows: int, count: int, seed: int, stratify: bool
) -> None:
    y = np.arange(rows) % 3
    asked = Split(seed=seed, stratify=stratify)
    parts = split(y, {}, "multiclass", asked)
    spec = spec_of("d", split=asked.model_dump(), search=k_fold(count))
    profile: Any = _Profile
    data = Dataset(y[:, None], y, profile, parts, "d")
    all_folds = [rows_for(Turn(1, fold), data, spec) for fold in range(1, count + 1)]
    np.testing.assert_array_equal(
        np.sort(np.concatenate([f.validation for f in all_folds])), parts.train_and_validation()
    )
    for fold in all_folds:
        np.testing.assert_array_equal(np.sort(np.concatenate(fold)), parts.train_and_validation())
    sizes = [len(fold.validation) for fold in all_folds]
    assert max(sizes) - min(sizes) <= 1


class _Profile:
    task = "multiclass"
    columns = ()


def test_each_fold_has_the_classes_in_the_proportions_of_the_whole() -> None:
    y = np.repeat([0, 1, 2], [60, 30, 10])
    fold_of_row = assign_folds(y, None, "multiclass", Split(), count=5)
    for fold in range(5):
        np.testing.assert_array_equal(np.bincount(y[fold_of_row == fold]), [12, 6, 2])


def test_groups_stay_together_and_folds_have_similar_sizes() -> None:
    groups = np.repeat(np.arange(20), np.arange(1, 21))
    fold_of_row = assign_folds(groups % 2, groups, "binary", Split(group="patient"), count=4)
    assert all(len(set(fold_of_row[groups == group])) == 1 for group in range(20))
    assert np.ptp(np.bincount(fold_of_row)) <= 20


def test_each_repeat_has_other_folds_that_are_equal_for_every_trial() -> None:
    first, again, other = (
        assign_folds(np.zeros(50), None, "regression", Split(), count=5, repeat=r) for r in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("groups", [None, np.array([1, 1, 2])])
def test_too_few_rows_or_groups_for_the_folds_are_rejected(groups: Any) -> None:
    with pytest.raises(BadSpec, match="folds need at least as many"):
        assign_folds(
            np.zeros(3), groups, "regression", Split(group="g" if groups is not None else None), count=4
        )


def test_executions_count_through_the_folds_of_each_repeat() -> None:
    search = present(spec_of(search=k_fold(3, executions_per_trial=2)).search)
    assert search.turns() == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert present(spec_of(search={"executions_per_trial": 2, "space": SPACE}).search).turns() == [
        (1, None),
        (2, None),
    ]


def test_a_trial_trains_once_per_fold_and_its_score_is_the_mean(tmp_path: Path) -> None:
    from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
    from workers.engine.data.dataset import load_dataset
    from workers.engine.tasks import trial

    file = blobs_file(tmp_path)
    spec = spec_of(
        "blobs", "linear", fit={"epochs": 1, "batch_size": 64}, search={**k_fold(2), "space": [LEARNING]}
    )
    plans = tuple(ExecutionPlan(execution=n, seed=1, fold=n) for n in (1, 2))
    task = TrialTask(
        folder=str(tmp_path), spec=spec, objective=present(spec.search).objective, dataset=file,
        trials=(TrialPlan(number=1, values={}, spec=spec, executions=plans),),
    )  # fmt: skip
    (result,) = trial.run(task, RecordingReport(tmp_path))["trials"]
    scores = [execution["score"] for execution in result["executions"]]
    assert scores[0] != scores[1], "both measured the same rows"
    assert result["score"] == pytest.approx(np.mean(scores))
    assert result["std"] == pytest.approx(np.std(scores))
    data = load_dataset(file, present(spec.data))
    held = np.concatenate([rows_for(plan.turn(), data, spec).validation for plan in plans])
    assert not set(held) & set(data.parts.test)


LEARNING = {"name": "learning_rate", "kind": "float", "min": 0.01, "max": 0.1}
