"""Loads a dataset version for training, with the columns that the experiment selects."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from jobs.messages.task import DatasetFile
from jobs.spec.data.column_plans import ColumnPlan
from jobs.spec.data.columns import TextEncode
from jobs.spec.data.features import Features
from jobs.spec.data.images import IMAGE
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import column_with, resolved
from jobs.spec.data.windows import is_windowed, resolved_window
from jobs.spec.sections.data import DataSpec, Task
from workers.engine.arrays import Array
from workers.engine.data.encode import encode
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.reading.arrow_file import is_arrow
from workers.engine.data.rows import Rows, StreamedRows, WholeColumns, in_memory, selected
from workers.engine.data.split import Parts, split
from workers.engine.data.store import read_arrays
from workers.engine.data.table import Table
from workers.engine.data.tabular import Selection, encoded_bytes, select
from workers.engine.data.weights import RowWeights
from workers.engine.data.windows import Windows, described, windows_of, windows_over, with_windows
from workers.engine.errors import BadData, BadSpec
from workers.engine.phases import Repeated
from workers.features.fitting import check_types, fit, with_text_rules
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue

FOLDS_BYTES = 512 << 20
"""Encoded tables of folds are kept up to this size; a larger one is kept until another fold is used."""


@dataclass(frozen=True)
class Dataset:
    """A loaded dataset version.

    Attributes:
        x: features; see `encode.Encoded`. If a table does not fit into memory, they are read from its
            file.
        y: targets; see `encode.Encoded`.
        profile: describes these arrays.
        parts: row numbers for training, validation and testing.
        digest: the file's SHA-256.
        groups: the split's group column, (rows,), whose equal values stay together; else None.
        table: the columns and the pipeline that made `x` from them; None for arrays.
        weights: row weights; None if each counts once.
    """

    x: Rows
    y: Array
    profile: Profile
    parts: Parts
    digest: str
    groups: Array | None = None
    table: "EncodedTable | None" = None
    weights: RowWeights | None = None
    _cache: dict[bytes, tuple[Rows, Array]] = field(default_factory=dict, repr=False, compare=False)

    def take(self, rows: Array) -> tuple[Rows, Array]:
        """Return x and y for some rows. The same rows return the same arrays, which saves memory."""
        # Several executions train on the same rows, and each copy may be as large as the data set.
        key = hashlib.sha256(rows.tobytes()).digest()
        if key not in self._cache:
            self._cache[key] = (selected(self.x, rows), self.y[rows])
        return self._cache[key]

    def weights_of(self, rows: Array) -> RowWeights | None:
        """Return the weights for some rows; None if each counts once.

        Raises:
            BadSpec: all have weight 0.
        """
        return None if self.weights is None else self.weights.select(rows)

    @property
    def is_streamed(self) -> bool:
        """Whether the rows are read from their file when they are used."""
        return isinstance(self.x, StreamedRows)

    @property
    def task(self) -> Task:
        """The prediction task."""
        return self.profile.task

    @property
    def features(self) -> Features | None:
        """The pipeline that a model needs for these data; None for arrays."""
        return None if self.table is None else self.table.pipeline.features

    def rows_for(self, features: Features | None, rows: Array) -> Rows:
        """Return a model's input for some rows, (rows, …).

        Args:
            features: the pipeline in the model's file, which another experiment may have fitted; None for a
                model without one, which takes these data's encoded features.
            rows: the row numbers.

        Raises:
            BadData: the pipeline needs a column that these data lack, or have with another type.
        """
        if features is None:
            return selected(self.x, rows)
        pipeline = Pipeline(features)
        columns = {} if self.table is None else self.table.columns
        if absent := [name for name in pipeline.columns if name not in columns]:
            raise BadData(f"the model takes the column {absent[0]!r}, which these data do not have")
        try:
            check_types(features, () if self.table is None else self.table.plans)
            if features.window is not None:
                return _windows_for(
                    pipeline, windows_over(WholeColumns(columns), features.window), columns, rows
                )
            if isinstance(columns, MappedColumns):
                streamed = StreamedRows(columns, tuple(pipeline.columns), pipeline.of_stored, rows)
                return streamed if self.is_streamed else in_memory(streamed)
            return pipeline.of_stored({name: columns[name][rows] for name in pipeline.columns})
        except BadValue as error:
            raise BadData(f"the model takes other values than these data have: {error}") from error

    def fitted_on(self, rows: Array) -> "Dataset":
        """Return the data set with its pipeline fitted on other rows: a fold's training rows."""
        if self.table is None or self.table.is_fixed or np.array_equal(rows, self.parts.train):
            return self
        key = hashlib.sha256(rows.tobytes()).hexdigest()
        if key not in self.table.refitted:
            # Before the next one is encoded: all folds of a large table may not fit into memory.
            if not self.is_streamed and self.x.nbytes * (len(self.table.refitted) + 1) > FOLDS_BYTES:
                self.table.refitted.clear()
            earlier = self.table
            table = EncodedTable.fit(
                earlier.plans, earlier.columns, rows, earlier.windows, is_streamed=earlier.is_streamed
            )
            self.table.refitted[key] = replace(self, x=table.encode(), table=table, _cache={})
        return self.table.refitted[key]


@dataclass(frozen=True)
class EncodedTable:
    """A table's columns and the pipeline that encodes them.

    Attributes:
        plans: how each column becomes numbers.
        columns: the stored columns by name, (rows,) each, and (rows, …) for images; if the file does
            not fit into memory, a `MappedColumns`.
        pipeline: fitted on the training rows.
        windows: the rows in each window that is predicted from; None if each input is one row.
        is_streamed: whether the rows are encoded when they are used. A file whose columns do not fit
            into memory may have an input that does.
        is_fixed: whether the pipeline comes from an earlier model, and is not fitted to these rows.
        refitted: data sets whose pipeline was fitted on other rows.
    """

    plans: tuple[ColumnPlan, ...]
    columns: Mapping[str, Rows]
    pipeline: Pipeline
    windows: Windows | None = None
    is_streamed: bool = False
    is_fixed: bool = False
    refitted: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def fit(
        cls,
        plans: tuple[ColumnPlan, ...],
        columns: Mapping[str, Rows],
        rows: Array,
        windows: Windows | None = None,
        *,
        is_streamed: bool = False,
    ) -> Self:
        """Return a table whose pipeline is fitted on `rows`."""
        features = fit(plans, columns, rows, Repeated("loading"))
        if windows is not None:
            features = features.model_copy(update={"window": windows.window})
        return cls(plans, columns, Pipeline(features), windows, is_streamed)

    @classmethod
    def of_pipeline(
        cls,
        features: Features,
        plans: tuple[ColumnPlan, ...],
        columns: Mapping[str, Rows],
        windows: Windows | None,
        *,
        is_streamed: bool,
    ) -> Self:
        """Return a table that an earlier model's pipeline encodes.

        Raises:
            BadData: the pipeline needs a column or windows that these data lack, or values of another type.
        """
        try:
            pipeline = Pipeline(with_text_rules(features, plans))
        except BadValue as error:
            raise BadData(str(error)) from None
        if absent := [name for name in pipeline.columns if name not in columns]:
            raise BadData(f"the model takes the column {absent[0]!r}, which these data do not have")
        here = None if windows is None else windows.window.rows
        needed = None if features.window is None else features.window.rows
        if here != needed:
            raise BadData(
                f"the model takes {_of_rows(needed)}, but this experiment makes {_of_rows(here)}; change "
                "data.window"
            )
        return cls(plans, columns, pipeline, windows, is_streamed, is_fixed=True)

    def encode(self) -> Rows:
        """Return the input for all rows, (rows, width) float32; (rows, …) uint8 for images.

        For windows it is (rows, window rows, width) float32, without meaning for rows that no window
        predicts.
        """
        pipeline, columns = self.pipeline, self.columns
        if isinstance(columns, MappedColumns):
            streamed = StreamedRows(columns, tuple(pipeline.columns), pipeline.of_stored)
            if self.is_streamed:
                return streamed
            encoded = in_memory(streamed)
        else:
            encoded = pipeline.of_stored({name: column[:] for name, column in columns.items()})
        if self.windows is None:
            return encoded
        return windows_of(encoded, self.windows, np.arange(len(encoded)))


def _of_rows(window: int | None) -> str:
    return "single rows" if window is None else f"windows of {window} rows"


def load_dataset(
    file: DatasetFile,
    spec: DataSpec,
    texts: TextEncode = "words",
    in_memory_bytes: int | None = None,
    features: Features | None = None,
) -> Dataset:
    """Read a dataset file, select its columns and split its rows according to `spec`.

    Args:
        file: the dataset version's path, digest and profile.
        spec: target, features, task, preprocessing and split.
        texts: the text encoding where the spec chooses none; a template has its own.
        in_memory_bytes: if the table's file is larger, only the encoded features are in memory. If these are
            larger, rows are read from the file when they are used. None for all rows in memory.
        features: an earlier model's pipeline, which encodes the columns; None fits one to the training
            part.

    Raises:
        BadData: the file is damaged, or a column cannot be used as the spec requires.
        BadSpec: these rows cannot be split as the spec requires.
    """
    profile, path = Profile.model_validate(file.profile), Path(file.path)
    if in_memory_bytes is not None and profile.has_pipeline and profile.images is None and is_arrow(path):
        size = encoded_bytes(profile, spec, texts)
        if max(size, path.stat().st_size) > in_memory_bytes:
            _check_windows(spec, size, in_memory_bytes)
            columns = MappedColumns(path)
            chosen = select(WholeColumns(columns), columns.array("y"), profile, spec, texts)
            is_streamed = size > in_memory_bytes
            return _load_table(columns, chosen, profile, spec, file.digest, features, is_streamed=is_streamed)
    arrays = _arrays_in(path, profile)
    raw = columns_of(arrays, has_images=profile.images is not None)
    if profile.has_pipeline:
        chosen = select(raw, arrays["y"], profile, spec, texts)
        return _load_table(raw, chosen, profile, spec, file.digest, features)
    if features is not None:
        raise BadData("the model takes the columns of a table, but these data are arrays")
    if spec.preprocessing:
        raise BadSpec("data.preprocessing is for tables; upload the file again if this is an earlier table")
    x, y = arrays["x"], arrays["y"]
    # The file contains the arrays for the columns that were chosen at upload.
    encoded_for = (profile.target, profile.features, profile.task)
    selected = (spec.target, spec.features, spec.task)
    if any(new not in (None, old) for old, new in zip(encoded_for, selected, strict=True)):
        x, y, profile = _reencode(raw, profile, spec)
    request = resolved(spec.split, profile)
    parts = split(y, raw, profile.task, request)
    groups = raw[request.group] if request.group is not None else None
    return Dataset(x, y, profile, parts, file.digest, groups)


def _check_windows(spec: DataSpec, size: int, in_memory_bytes: int) -> None:
    """Refuse windows over a table whose encoded rows do not fit into memory."""
    if size > in_memory_bytes and spec.window is not None:
        raise BadSpec(
            f"all windows are in memory, with {size:,} bytes, and this run has room for "
            f"{in_memory_bytes:,}; choose a window of fewer rows or fewer features, or raise "
            "resources.memory_gib"
        )


def _arrays_in(path: Path, profile: Profile) -> dict[str, Array]:
    """Read a dataset file, and check that it is one."""
    arrays = read_arrays(path)
    needed = {"y", "columns"} if profile.has_pipeline and profile.images is None else {"x", "y", "columns"}
    if not needed <= arrays.keys():
        raise BadData(f"{path.name} is not a data set file: it contains {sorted(arrays)[:10]}")
    return arrays


def _load_table(
    raw: Mapping[str, Rows],
    chosen: Selection,
    profile: Profile,
    spec: DataSpec,
    digest: str,
    features: Features | None = None,
    *,
    is_streamed: bool = False,
) -> Dataset:
    request, values = resolved(spec.split, profile), WholeColumns(raw)
    parts = split(chosen.target.y, values, chosen.target.task, request)
    window, windows = resolved_window(spec, profile), None
    if window is not None and is_windowed(spec, profile):
        windows = windows_over(values, described(window))
        parts = with_windows(parts, windows)
    described_by = chosen.profile
    if features is None:
        table = EncodedTable.fit(chosen.plans, raw, parts.train, windows, is_streamed=is_streamed)
    else:
        table = EncodedTable.of_pipeline(features, chosen.plans, raw, windows, is_streamed=is_streamed)
        described_by = described_by.model_copy(update={"input_shape": features.input_shape, "blocks": ()})
    groups = values[request.group] if request.group is not None else None
    weight = profile.weight
    weights = RowWeights.of_column(weight, values[weight]) if weight is not None else None
    try:
        x = table.encode()
    except BadValue as error:
        raise BadData(f"the model takes other values than these data have: {error}") from error
    dataset = Dataset(x, chosen.target.y, described_by, parts, digest, groups, table, weights)
    for rows in (parts.train, parts.validation, parts.test):
        dataset.weights_of(rows)
    return dataset


def _windows_for(pipeline: Pipeline, windows: Windows, columns: Mapping[str, Rows], rows: Array) -> Array:
    """Return the windows that predict some rows, (rows, window rows, width) float32.

    Raises:
        BadData: a row has no window.
    """
    if (without := rows[~windows.exists[rows]]).size:
        raise BadData(
            f"the model takes windows of {windows.window.rows} rows, and row {without[0] + 1} has fewer rows "
            "before it"
        )
    # Each row is encoded once, although many windows have it.
    is_needed = np.zeros(len(windows.order), bool)
    for _, inside in windows.in_parts(rows):
        is_needed[inside] = True
    needed = np.flatnonzero(is_needed)
    position = np.cumsum(is_needed, dtype=windows.order.dtype) - 1
    encoded = pipeline.of_stored({name: columns[name][needed] for name in pipeline.columns})
    return windows_of(encoded, windows, rows, position)


def columns_of(arrays: Mapping[str, Array], *, has_images: bool) -> dict[str, Array]:
    """Return the columns in a data set's file by name.

    Args:
        arrays: the file's content.
        has_images: whether it was made from an image archive.

    Returns:
        Values, (rows,) each, and images, (rows, …) uint8.
    """
    columns = {str(name): arrays[f"column_{i}"] for i, name in enumerate(arrays.get("columns", ()))}
    return {IMAGE: arrays["x"], **columns} if has_images else columns


class UploadedColumns:
    """A data set's columns as they were uploaded."""

    def __init__(self, file: DatasetFile | None) -> None:
        self._columns: Mapping[str, Rows] = {} if file is None else _uploaded(file)

    def __contains__(self, name: str) -> bool:
        """Return whether there is such a column."""
        return name in self._columns

    def column(self, name: str) -> Rows:
        """Return a column, (rows,), or images, (rows, …).

        Raises:
            BadData: there is no such column.
        """
        if name not in self._columns:
            names = ", ".join(list(self._columns)[:20]) or "none"
            raise BadData(f"the data set has no column {name!r}; the columns are {names}")
        return self._columns[name]

    def values(self, name: str) -> Array:
        """Return a column's values, (rows,).

        Raises:
            BadData: there is no such column, or it holds arrays.
        """
        column = self.column(name)
        if column.ndim != 1:
            raise BadData(f"column {name!r} holds arrays, which have no single value")
        return column[:]


def _uploaded(file: DatasetFile) -> Mapping[str, Rows]:
    path, has_images = Path(file.path), file.profile.get("images") is not None
    if is_arrow(path) and not has_images:
        return MappedColumns(path)
    return columns_of(read_arrays(path), has_images=has_images)


def equal_to(values: Array, value_text: str) -> Array:
    """Return which values equal `value_text`: numbers by their value, all others by their text, (rows,)."""
    if values.dtype.kind in "iufb":
        try:
            number = float({"true": "1", "false": "0"}.get(value_text.strip().lower(), value_text))
        except ValueError:
            return np.zeros(len(values), bool)
        return np.asarray(values.astype(np.float64) == number)
    # Files are read without blanks around words.
    text = value_text.strip()
    return np.array([str(value).strip() == text for value in values], bool)


def _reencode(raw: dict[str, Array], profile: Profile, spec: DataSpec) -> tuple[Array, Array, Profile]:
    if not raw.keys() >= set(profile.features):
        raise BadSpec(
            "the features of this data set are arrays; another target or other features cannot be selected"
        )
    encoded = encode(
        Table(raw),
        target=spec.target or profile.target,
        features=spec.features,
        task=spec.task,
        without=column_with(profile, "split"),
    )
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
