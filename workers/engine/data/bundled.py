"""The data sets that come inside scikit-learn's wheel: real data without a network."""

from dataclasses import dataclass

import numpy as np

from jobs.spec.data import Task
from workers.engine.data.table import Array, Table
from workers.engine.errors import BadSpec


@dataclass(frozen=True)
class Bundled:
    """What a bundled set is about; `target` is its target column."""

    task: Task
    target: str


CATALOGUE: dict[str, Bundled] = {
    "digits": Bundled("multiclass", "digit"),
    "breast_cancer": Bundled("binary", "diagnosis"),
    "wine": Bundled("multiclass", "cultivar"),
    "iris": Bundled("multiclass", "species"),
    "diabetes": Bundled("regression", "progression"),
}


def load_bundled(name: str) -> tuple[Table, Bundled]:
    """Return the bundled set `name`: digits as 8×8 images, the others as named columns.

    Raises:
        BadSpec: no such set.
    """
    if name not in CATALOGUE:
        raise BadSpec(f"no bundled data set {name!r}; there are {', '.join(CATALOGUE)}")
    from sklearn import datasets

    about = CATALOGUE[name]
    if name == "digits":
        digits = datasets.load_digits()
        return Table({"image": digits.images.astype(np.float32), about.target: digits.target}), about
    # the unscaled values of diabetes: the scaled ones were made from all rows, test rows among them
    loaded = (
        datasets.load_diabetes(scaled=False) if name == "diabetes" else getattr(datasets, f"load_{name}")()
    )
    columns: dict[str, Array] = {
        _tidy(feature): loaded.data[:, i] for i, feature in enumerate(loaded.feature_names)
    }
    names = getattr(loaded, "target_names", None)
    target = loaded.target if about.task == "regression" else np.asarray(names, dtype=np.str_)[loaded.target]
    return Table({**columns, about.target: target}), about


def _tidy(name: str) -> str:
    return name.replace(" (cm)", "_cm").replace("/", "_per_").replace(" ", "_")
