"""Loads the data sets that scikit-learn's package contains: real data without a network.

The files are read directly. scikit-learn's loaders return the same values, but importing them takes three
CPU seconds, and an installation loads five data sets at its first start.
"""

import gzip
import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.table import Table
from workers.engine.errors import BadSpec

_CELL_FEATURES = (
    *("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity"),
    *("concave_points", "symmetry", "fractal_dimension"),
)
_CELL_COLUMNS = ("mean_{}", "{}_error", "worst_{}")


@dataclass(frozen=True)
class BundledInfo:
    """Describes a bundled data set.

    Attributes:
        task: the prediction task.
        target: the target column's name.
        features: the other columns, in order.
    """

    task: Task
    target: str
    features: tuple[str, ...] = ()


CATALOGUE: dict[str, BundledInfo] = {
    "digits": BundledInfo("multiclass", "digit"),
    "breast_cancer": BundledInfo(
        "binary", "diagnosis", tuple(form.format(name) for form in _CELL_COLUMNS for name in _CELL_FEATURES)
    ),
    "wine": BundledInfo(
        "multiclass",
        "cultivar",
        (
            *("alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols"),
            *("flavanoids", "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue"),
            *("od280_per_od315_of_diluted_wines", "proline"),
        ),
    ),
    "iris": BundledInfo(
        "multiclass", "species", ("sepal_length_cm", "sepal_width_cm", "petal_length_cm", "petal_width_cm")
    ),
    "diabetes": BundledInfo(
        "regression", "progression", ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
    ),
}


def load_bundled(name: str) -> tuple[Table, BundledInfo]:
    """Return the bundled data set `name`: digits as 8×8 images, the others as named columns.

    Raises:
        BadSpec: there is no such data set.
    """
    if name not in CATALOGUE:
        raise BadSpec(f"no bundled data set {name!r}; there are {', '.join(CATALOGUE)}")
    info = CATALOGUE[name]
    match name:
        case "digits":
            rows = _read_numbers("digits.csv.gz", delimiter=",")
            images = rows[:, :-1].reshape(-1, 8, 8).astype(np.float32)
            return Table({"image": images, info.target: rows[:, -1].astype(np.int64)}), info
        case "diabetes":
            # The unscaled values: scikit-learn scales with all rows, including test rows.
            rows = _read_numbers("diabetes_data_raw.csv.gz")
            target = _read_numbers("diabetes_target.csv.gz")
        case _:
            rows, target = _read_labelled("wine_data.csv" if name == "wine" else f"{name}.csv")
    columns: dict[str, Array] = {feature: rows[:, i] for i, feature in enumerate(info.features)}
    return Table({**columns, info.target: target}), info


def _read_labelled(file: str) -> tuple[Array, Array]:
    """Return features and labels from a file whose first line has the counts and the class names."""
    text = (_folder() / file).read_text(encoding="utf-8")
    classes = np.asarray(text.partition("\n")[0].split(",")[2:], dtype=np.str_)
    rows = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
    return rows[:, :-1], classes[rows[:, -1].astype(np.int64)]


def _read_numbers(file: str, **options: Any) -> Array:
    with gzip.open(_folder() / file, mode="rt", encoding="utf-8") as text:
        return np.loadtxt(text, **options)


def _folder() -> Path:
    """Return scikit-learn's data folder, without importing scikit-learn."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("scikit-learn, which contains the bundled data sets, is not installed")
    return Path(spec.origin).parent / "datasets" / "data"
