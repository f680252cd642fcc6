"""Trees of each method predict as scikit-learn's on further data sets."""

from pathlib import Path

import pytest

from tests.engine.models import test_tree_models, test_trees
from tests.engine.models.test_trees import BUNDLED, METHODS, QUICK, one_thread  # noqa: F401
from workers.engine.data.dataset import Dataset


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [name for name in BUNDLED if name not in QUICK])
def test_a_trained_model_predicts_as_the_same_model_of_scikit_learn(
    bundled: dict[str, Dataset], tmp_path: Path, name: str, method: str
) -> None:
    test_trees.test_a_trained_model_predicts_as_the_same_model_of_scikit_learn(
        bundled, tmp_path, name, method
    )


@pytest.mark.parametrize("method", ["random_forest", "extra_trees"])
def test_a_table_with_gaps_is_trained_exported_and_loaded_in_safe_mode(tmp_path: Path, method: str) -> None:
    test_tree_models.test_a_table_with_gaps_is_trained_exported_and_loaded_in_safe_mode(tmp_path, method)
