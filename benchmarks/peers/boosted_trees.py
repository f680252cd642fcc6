"""Fits scikit-learn's gradient boosting with its defaults on the rows of a search, and prints its metric.

Run `python -m benchmarks.peers.boosted_trees NAME`. It trains on the training and validation rows, as the
models that are trained again at the end of a search do.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from jobs.spec.sections.data import DataSpec
from tests.engine.making import dataset_file
from workers.engine.data.dataset import load_dataset


def main() -> None:
    name = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        file = dataset_file(Path(folder), name)
        stratify = name != "diabetes"
        split = {"validation": 0.2, "test": 0.2, "seed": 0, "stratify": stratify}
        data = load_dataset(file, DataSpec.model_validate({"dataset": name, "split": split}))
    parts = data.parts
    rows = np.concatenate([parts.train, parts.validation])
    x, y = data.x.reshape(len(data.x), -1), data.y.reshape(len(data.x))
    is_regression = data.profile.task == "regression"
    maker = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
    predictions = maker(random_state=0).fit(x[rows], y[rows]).predict(x[parts.test])
    if is_regression:
        print(float(np.sqrt(np.mean((predictions - y[parts.test]) ** 2))))
    else:
        print(float(np.mean(predictions == y[parts.test])))


if __name__ == "__main__":
    main()
