"""Loads a dataset version for training, under the roles that the experiment gives its columns."""

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
    """All rows of a dataset version and which part each belongs to.

    `x` and `y` are as in `workers.engine.data.encode.Encoded`; `profile` describes these very arrays.
    `groups` is the column whose equal values stay together, if the split names one.
    """

    x: Array
    y: Array
    profile: Profile
    parts: Parts
    digest: str
    groups: Array | None = None
    _taken: dict[bytes, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)

    def take(self, rows: Array) -> tuple[Array, Array]:
        """Return x and y of some rows; asked again for the same ones, the same arrays."""
        key = hashlib.sha256(rows.tobytes()).digest()
        if key not in self._taken:
            self._taken[key] = (self.x[rows], self.y[rows])
        return self._taken[key]

    @property
    def task(self) -> Task:
        """Return what is to be predicted."""
        return self.profile.task


def load_dataset(file: DatasetFile, spec: DataSpec) -> Dataset:
    """Read the arrays and split them as `spec` says.

    Raises:
        BadData: the file is damaged, or its columns do not fit their roles.
        BadSpec: the split cannot be made from these rows.
    """
    profile = Profile.model_validate(file.profile)
    arrays = read_arrays(Path(file.path))
    if not {"x", "y", "columns"} <= arrays.keys():
        raise BadData(f"{Path(file.path).name} is no data set file: it holds {sorted(arrays)[:10]}")
    raw = {str(name): arrays[f"column_{i}"] for i, name in enumerate(arrays["columns"])}
    x, y = arrays["x"], arrays["y"]
    if _roles_differ(profile, spec):
        x, y, profile = _encode_again(raw, profile, spec)
    parts = split(y, raw, profile.task, spec.split)
    groups = raw[spec.split.group] if spec.split.group is not None else None
    return Dataset(x, y, profile, parts, file.digest, groups)


def _roles_differ(profile: Profile, spec: DataSpec) -> bool:
    return (
        (spec.target is not None and spec.target != profile.target)
        or (spec.features is not None and spec.features != profile.features)
        or (spec.task is not None and spec.task != profile.task)
    )


def _encode_again(raw: dict[str, Array], profile: Profile, spec: DataSpec) -> tuple[Array, Array, Profile]:
    if not raw.keys() >= set(profile.features):
        raise BadSpec("the features of this data set are arrays; target and features cannot be chosen anew")
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
