"""The data sets that come inside scikit-learn's wheel: real data without a network.

Their files are read here. scikit-learn's own loaders give the same figures, but importing them takes three
seconds of CPU, five times at an installation's first start.
"""

import gzip
import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from jobs.contracts.data import Task
from workers.engine.data.table import Array, Table
from workers.engine.errors import BadSpec

_CELL = (
    *("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity"),
    *("concave_points", "symmetry", "fractal_dimension"),
)
_CELLS = ("mean_{}", "{}_error", "worst_{}")


@dataclass(frozen=True)
class Bundled:
    """What a bundled set is about: `target` is its target column, `features` are the others in order."""

    task: Task
    target: str
    features: tuple[str, ...] = ()


CATALOGUE: dict[str, Bundled] = {
    "digits": Bundled("multiclass", "digit"),
    "breast_cancer": Bundled(
        "binary", "diagnosis", tuple(form.format(name) for form in _CELLS for name in _CELL)
    ),
    "wine": Bundled(
        "multiclass",
        "cultivar",
        (
            *("alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols"),
            *("flavanoids", "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue"),
            *("od280_per_od315_of_diluted_wines", "proline"),
        ),
    ),
    "iris": Bundled(
        "multiclass", "species", ("sepal_length_cm", "sepal_width_cm", "petal_length_cm", "petal_width_cm")
    ),
    "diabetes": Bundled(
        "regression", "progression", ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
    ),
}


def load_bundled(name: str) -> tuple[Table, Bundled]:
    """Return the bundled set `name`: digits as 8×8 images, the others as named columns.

    Raises:
        BadSpec: no such set.
    """
    if name not in CATALOGUE:
        raise BadSpec(f"no bundled data set {name!r}; there are {', '.join(CATALOGUE)}")
    about = CATALOGUE[name]
    match name:
        case "digits":
            rows = _numbers("digits.csv.gz", delimiter=",")
            images = rows[:, :-1].reshape(-1, 8, 8).astype(np.float32)
            return Table({"image": images, about.target: rows[:, -1].astype(np.int64)}), about
        case "diabetes":
            # the unscaled values: scikit-learn scales them by all rows, test rows among them
            rows, target = _numbers("diabetes_data_raw.csv.gz"), _numbers("diabetes_target.csv.gz")
        case _:
            rows, target = _labelled("wine_data.csv" if name == "wine" else f"{name}.csv")
    columns: dict[str, Array] = {feature: rows[:, i] for i, feature in enumerate(about.features)}
    return Table({**columns, about.target: target}), about


def _labelled(file: str) -> tuple[Array, Array]:
    """Return features and labels of a file whose first line is: rows, features, the name of each class."""
    text = (_folder() / file).read_text(encoding="utf-8")
    classes = np.asarray(text.partition("\n")[0].split(",")[2:], dtype=np.str_)
    rows = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
    return rows[:, :-1], classes[rows[:, -1].astype(np.int64)]


def _numbers(file: str, **form: Any) -> Array:
    with gzip.open(_folder() / file, mode="rt", encoding="utf-8") as text:
        return np.loadtxt(text, **form)


def _folder() -> Path:
    """Return where scikit-learn keeps the files, without importing it."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("scikit-learn is not installed, and the bundled data come with it")
    return Path(found.origin).parent / "datasets" / "data"
