"""Loads a dataset version for training, with the columns that the experiment selects."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jobs.contracts.data import DataSpec, Task
from jobs.contracts.profile import Profile
from jobs.contracts.task_parts import DatasetFile
from workers.engine.arrays import Array
from workers.engine.data.encode import encode
from workers.engine.data.split import Parts, split
from workers.engine.data.store import read_arrays
from workers.engine.data.table import Table
from workers.engine.errors import BadData, BadSpec


@dataclass(frozen=True)
class Dataset:
    """A loaded dataset version.

    Attributes:
        x: features; see `encode.Encoded`.
        y: targets; see `encode.Encoded`.
        profile: describes these arrays.
        parts: row numbers of the training, validation and test parts.
        digest: SHA-256 of the file.
        groups: the split's group column, (rows,), whose equal values stay together; else None.
    """

    x: Array
    y: Array
    profile: Profile
    parts: Parts
    digest: str
    groups: Array | None = None
    _cache: dict[bytes, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)

    def take(self, rows: Array) -> tuple[Array, Array]:
        """Return x and y of some rows. The same rows return the same arrays, which saves memory."""
        # Several executions train on the same rows, and each copy may be as large as the data set.
        key = hashlib.sha256(rows.tobytes()).digest()
        if key not in self._cache:
            self._cache[key] = (self.x[rows], self.y[rows])
        return self._cache[key]

    @property
    def task(self) -> Task:
        """Kind of prediction."""
        return self.profile.task


def load_dataset(file: DatasetFile, spec: DataSpec) -> Dataset:
    """Read a dataset file, select its columns and split its rows according to `spec`.

    Args:
        file: path, digest and profile of the dataset version.
        spec: target, features, task and split.

    Raises:
        BadData: the file is damaged, or a column cannot be used as the spec requires.
        BadSpec: these rows cannot be split as the spec requires.
    """
    profile = Profile.model_validate(file.profile)
    arrays = read_arrays(Path(file.path))
    if not {"x", "y", "columns"} <= arrays.keys():
        raise BadData(f"{Path(file.path).name} is not a data set file: it contains {sorted(arrays)[:10]}")
    raw = {str(name): arrays[f"column_{i}"] for i, name in enumerate(arrays["columns"])}
    x, y = arrays["x"], arrays["y"]
    # The file contains the arrays for the columns that were chosen at upload.
    encoded_for = (profile.target, profile.features, profile.task)
    selected = (spec.target, spec.features, spec.task)
    if any(new not in (None, old) for old, new in zip(encoded_for, selected, strict=True)):
        x, y, profile = _reencode(raw, profile, spec)
    parts = split(y, raw, profile.task, spec.split)
    groups = raw[spec.split.group] if spec.split.group is not None else None
    return Dataset(x, y, profile, parts, file.digest, groups)


class UploadedColumns:
    """The columns of a data set as they were uploaded, read once."""

    def __init__(self, file: DatasetFile | None) -> None:
        arrays = read_arrays(Path(file.path)) if file is not None else {}
        names = [str(column) for column in arrays.get("columns", ())]
        self._columns = {name: arrays[f"column_{i}"] for i, name in enumerate(names)}

    def values(self, name: str) -> Array:
        """Return the values of a column, (rows,).

        Raises:
            BadData: there is no such column, or it holds arrays.
        """
        if name not in self._columns:
            known = ", ".join(list(self._columns)[:20]) or "none"
            raise BadData(f"the data set has no column {name!r}; the columns are {known}")
        if self._columns[name].ndim != 1:
            raise BadData(f"column {name!r} holds arrays, which have no single value")
        return self._columns[name]


def equal_to(values: Array, wanted: str) -> Array:
    """Return which values equal `wanted`: numbers by their value, all others by their text, (rows,)."""
    if values.dtype.kind in "iufb":
        try:
            number = float({"true": "1", "false": "0"}.get(wanted.strip().lower(), wanted))
        except ValueError:
            return np.zeros(len(values), bool)
        return np.asarray(values.astype(np.float64) == number)
    return np.array([str(value) == wanted for value in values], bool)


def _reencode(raw: dict[str, Array], profile: Profile, spec: DataSpec) -> tuple[Array, Array, Profile]:
    if not raw.keys() >= set(profile.features):
        raise BadSpec(
            "the features of this data set are arrays; another target or other features cannot be selected"
        )
    encoded = encode(Table(raw), target=spec.target or profile.target, features=spec.features, task=spec.task)
    described = profile.model_copy(
        update={
            "task": encoded.task,
            "target": encoded.target,
            "features": encoded.features,
            "inputs": encoded.inputs,
            "input_shape": encoded.x.shape[1:],
            "outputs": encoded.outputs,
            "class_labels": encoded.class_labels,
        }
    )
    return encoded.x, encoded.y, described
