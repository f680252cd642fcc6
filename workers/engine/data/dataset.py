"""Loads a dataset version for training, with the columns that the experiment selects."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from jobs.contracts.data import DataSpec, Task
from jobs.contracts.profile import Profile
from jobs.contracts.task_parts import DatasetFile
from workers.engine.data.encode import encode
from workers.engine.data.split import Parts, split
from workers.engine.data.store import read_arrays
from workers.engine.data.table import Array, Table
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
    if _selects_other_columns(profile, spec):
        x, y, profile = _reencode(raw, profile, spec)
    parts = split(y, raw, profile.task, spec.split)
    groups = raw[spec.split.group] if spec.split.group is not None else None
    return Dataset(x, y, profile, parts, file.digest, groups)


def _selects_other_columns(profile: Profile, spec: DataSpec) -> bool:
    return (
        (spec.target is not None and spec.target != profile.target)
        or (spec.features is not None and spec.features != profile.features)
        or (spec.task is not None and spec.task != profile.task)
    )


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
