"""Loads a dataset version for training, with the columns that the experiment selects."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from jobs.contracts.data import DataSpec, Task
from jobs.contracts.features import ColumnPlan, Features
from jobs.contracts.profile import Profile
from jobs.contracts.task_parts import DatasetFile
from workers.engine.arrays import Array
from workers.engine.data.encode import encode
from workers.engine.data.split import Parts, split
from workers.engine.data.store import read_arrays
from workers.engine.data.table import Table
from workers.engine.data.tabular import select
from workers.engine.errors import BadData, BadSpec
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue


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
        table: the columns and the pipeline that made `x` of them; None for data of arrays.
    """

    x: Array
    y: Array
    profile: Profile
    parts: Parts
    digest: str
    groups: Array | None = None
    table: "EncodedTable | None" = None
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

    @property
    def features(self) -> Features | None:
        """The pipeline that a model of these data needs; None for data of arrays."""
        return None if self.table is None else self.table.pipeline.features

    def rows_for(self, features: Features | None, rows: Array) -> Array:
        """Return the input of a model for some rows, (rows, …).

        Args:
            features: the pipeline in the model's file, which another experiment may have fitted; None for a
                model without one, which takes the encoded features of these data.
            rows: numbers of the rows.

        Raises:
            BadData: the pipeline needs a column that these data lack, or have with values of another type.
        """
        if features is None:
            return self.x[rows]
        pipeline = Pipeline(features)
        columns = {} if self.table is None else self.table.columns
        if absent := [name for name in pipeline.columns if name not in columns]:
            raise BadData(f"the model takes the column {absent[0]!r}, which these data do not have")
        try:
            return pipeline.of_stored({name: columns[name][rows] for name in pipeline.columns})
        except BadValue as error:
            raise BadData(f"the model takes other values than these data have: {error}") from error

    def fitted_on(self, rows: Array) -> "Dataset":
        """Return the data set with its pipeline fitted on other rows: the training rows of a fold."""
        if self.table is None or np.array_equal(rows, self.parts.train):
            return self
        key = hashlib.sha256(rows.tobytes()).hexdigest()
        if key not in self.table.refitted:
            table = EncodedTable.fit(self.table.plans, self.table.columns, rows)
            self.table.refitted[key] = replace(self, x=table.encode(), table=table, _cache={})
        return self.table.refitted[key]


@dataclass(frozen=True)
class EncodedTable:
    """The columns of a table and the pipeline that encodes them.

    Attributes:
        plans: how each column becomes numbers.
        columns: the stored columns by name, (rows,) each.
        pipeline: fitted on the training rows.
        refitted: data sets whose pipeline was fitted on other rows.
    """

    plans: tuple[ColumnPlan, ...]
    columns: dict[str, Array]
    pipeline: Pipeline
    refitted: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def fit(cls, plans: tuple[ColumnPlan, ...], columns: dict[str, Array], rows: Array) -> Self:
        """Return a table whose pipeline is fitted on `rows`."""
        return cls(plans, columns, Pipeline(fit(plans, columns, rows)))

    def encode(self) -> Array:
        """Return the input for all rows, (rows, width) float32."""
        return self.pipeline.of_stored(self.columns)


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
    needed = {"y", "columns"} if profile.has_pipeline else {"x", "y", "columns"}
    if not needed <= arrays.keys():
        raise BadData(f"{Path(file.path).name} is not a data set file: it contains {sorted(arrays)[:10]}")
    raw = {str(name): arrays[f"column_{i}"] for i, name in enumerate(arrays["columns"])}
    if profile.has_pipeline:
        return _load_table(raw, arrays["y"], profile, spec, file.digest)
    if spec.preprocessing:
        raise BadSpec("data.preprocessing is for tables; upload the file again if this is an earlier table")
    x, y = arrays["x"], arrays["y"]
    # The file contains the arrays for the columns that were chosen at upload.
    encoded_for = (profile.target, profile.features, profile.task)
    selected = (spec.target, spec.features, spec.task)
    if any(new not in (None, old) for old, new in zip(encoded_for, selected, strict=True)):
        x, y, profile = _reencode(raw, profile, spec)
    parts = split(y, raw, profile.task, spec.split)
    groups = raw[spec.split.group] if spec.split.group is not None else None
    return Dataset(x, y, profile, parts, file.digest, groups)


def _load_table(raw: dict[str, Array], y: Array, profile: Profile, spec: DataSpec, digest: str) -> Dataset:
    chosen = select(raw, y, profile, spec)
    parts = split(chosen.target.y, raw, chosen.target.task, spec.split)
    table = EncodedTable.fit(chosen.plans, raw, parts.train)
    groups = raw[spec.split.group] if spec.split.group is not None else None
    return Dataset(table.encode(), chosen.target.y, chosen.profile, parts, digest, groups, table)


class UploadedColumns:
    """The columns of a data set as they were uploaded, read once."""

    def __init__(self, file: DatasetFile | None) -> None:
        arrays = read_arrays(Path(file.path)) if file is not None else {}
        names = [str(column) for column in arrays.get("columns", ())]
        self._columns = {name: arrays[f"column_{i}"] for i, name in enumerate(names)}

    def __contains__(self, name: str) -> bool:
        """Return whether there is such a column."""
        return name in self._columns

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
