"""Turns named columns into the arrays a model takes.

Numbers stay as they are. Texts become one-hot columns here, in the table, with the vocabulary
recorded in the profile: a `StringLookup` inside the model would not load in Keras' safe mode.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from jobs.contracts.data import Task
from workers.engine.data.table import NUMBERS, Array, Table
from workers.engine.errors import BadData

MAX_CATEGORIES = 100
MAX_CLASSES_OF_NUMBERS = 20


@dataclass(frozen=True)
class Encoded:
    """The arrays of a data set.

    `x` is (rows, …) float32, or uint8 for images of bytes. `y` is (rows,) int32 class indices for
    binary and multiclass, (rows, labels) float32 of 0 and 1 for multilabel, (rows, targets) float32
    in the target's own unit for regression.
    """

    x: Array
    y: Array
    kind: Literal["vector", "image"]
    task: Task
    target: str
    features: tuple[str, ...]
    inputs: tuple[str, ...]
    class_labels: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def outputs(self) -> int:
        """Return the number of classes, of labels, or of target columns."""
        return len(self.class_labels) if self.class_labels else int(self.y.shape[1])


@dataclass
class _Features:
    blocks: list[Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, name: str, block: Array, inputs: list[str]) -> None:
        self.names.append(name)
        self.blocks.append(block)
        self.inputs.extend(inputs)


def encode(
    table: Table, *, target: str | None, features: tuple[str, ...] | None, task: Task | None
) -> Encoded:
    """Choose roles where none are given (target: `y`, `target` or the last column) and encode.

    Raises:
        BadData: a column is missing, has missing values, or cannot be a feature or target.
    """
    target = _choose_target(table, target)
    y, task, labels = encode_target(target, table.columns[target], task)
    chosen = _encode_features(table, target, features)
    x, kind = _join(chosen)
    return Encoded(
        x=x,
        y=y,
        kind=kind,
        task=task,
        target=target,
        features=tuple(chosen.names),
        inputs=tuple(chosen.inputs),
        class_labels=labels,
        findings=tuple(chosen.findings),
    )


def _choose_target(table: Table, target: str | None) -> str:
    if target is not None:
        if target not in table.columns:
            raise BadData(f"no column {target!r}; there are {_some(list(table.columns))}")
        return target
    for name in ("y", "target", "label", "class"):
        if name in table.columns:
            return name
    return list(table.columns)[-1]


def encode_target(name: str, column: Array, task: Task | None) -> tuple[Array, Task, tuple[str, ...]]:
    """Return (y, task, class labels); see `Encoded` for the shapes.

    Raises:
        BadData: missing values, or values that do not fit `task`.
    """
    _refuse_missing(name, column, "the target")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim > 2:
        raise BadData(f"target {name!r} has rows of shape {column.shape[1:]}; one value or one row is taken")
    task = task or _guess_task(column)
    if task == "regression":
        _refuse_texts(name, column, "regression needs numbers")
        return column.reshape(len(column), -1).astype(np.float32), task, ()
    if task == "multilabel":
        return _labels_matrix(name, column), task, tuple(f"{name}_{i}" for i in range(column.shape[-1]))
    return _class_indices(name, column, task)


def _guess_task(column: Array) -> Task:
    if column.ndim == 2:
        return "multilabel" if np.isin(column, (0, 1)).all() else "regression"
    distinct = np.unique(column)
    numbers = column.dtype.kind in "iuf"
    if numbers and not (len(distinct) <= MAX_CLASSES_OF_NUMBERS and np.all(distinct == np.round(distinct))):
        return "regression"
    return "binary" if len(distinct) == 2 else "multiclass"


def _labels_matrix(name: str, column: Array) -> Array:
    if column.ndim != 2 or not np.isin(column, (0, 1)).all():
        raise BadData(f"multilabel target {name!r} must be a table of 0 and 1, one column a label")
    return column.astype(np.float32)


def _class_indices(name: str, column: Array, task: Task) -> tuple[Array, Task, tuple[str, ...]]:
    if column.ndim != 1:
        raise BadData(f"target {name!r} has {column.shape[1]} columns; {task} takes one class a row")
    classes, indices = np.unique(column, return_inverse=True)
    if len(classes) < 2:
        raise BadData(f"target {name!r} has the one value {classes[0]!s}; there is nothing to learn")
    if task == "binary" and len(classes) != 2:
        raise BadData(f"target {name!r} has {len(classes)} classes; binary takes exactly 2")
    if len(classes) > 10_000:
        raise BadData(f"target {name!r} has {len(classes)} classes; is it a number to predict (regression)?")
    return indices.astype(np.int32), task, tuple(_label(value) for value in classes)


def _label(value: np.generic) -> str:
    number = value.item()
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def _encode_features(table: Table, target: str, features: tuple[str, ...] | None) -> _Features:
    wanted = features or tuple(name for name in table.columns if name != target)
    chosen = _Features()
    for name in wanted:
        if name not in table.columns:
            raise BadData(f"no feature column {name!r}; there are {_some(list(table.columns))}")
        if name == target:
            raise BadData(f"{name!r} is the target and cannot be a feature too")
        _encode_feature(chosen, name, table.columns[name], asked_for=features is not None)
    if not chosen.blocks:
        raise BadData("no column is left to be a feature; " + " ".join(chosen.findings))
    return chosen


def _encode_feature(chosen: _Features, name: str, column: Array, *, asked_for: bool) -> None:
    if (reason := _unusable(column)) is not None:
        if asked_for:
            raise BadData(f"column {name!r} cannot be a feature: {reason}")
        chosen.findings.append(f"Column {name!r} is left out of the features: {reason}.")
        return
    _refuse_missing(name, column, "a feature")
    if column.dtype.kind == "U":
        words = np.unique(column)
        block = (column[:, None] == words[None, :]).astype(np.float32)
        chosen.add(name, block, [f"{name}={word}" for word in words])
    elif column.ndim == 1:
        chosen.add(name, column.astype(np.float32)[:, None], [name])
    else:
        chosen.add(name, column, [f"{name}_{i}" for i in range(column.shape[1])] if column.ndim == 2 else [])


def _unusable(column: Array) -> str | None:
    if column.dtype.kind == "M":
        return "it holds times; it can order the split (time)"
    if column.dtype.kind == "U":
        distinct = len(np.unique(column))
        if column.ndim > 1:
            return "it holds arrays of texts"
        if distinct > MAX_CATEGORIES:
            return f"it holds {distinct} distinct texts; at most {MAX_CATEGORIES} categories are encoded"
    elif column.dtype.kind not in NUMBERS:
        return f"it holds {column.dtype} values"
    return None


def _join(chosen: _Features) -> tuple[Array, Literal["vector", "image"]]:
    images = [name for name, block in zip(chosen.names, chosen.blocks, strict=True) if block.ndim > 2]
    if not images:
        return np.ascontiguousarray(np.concatenate(chosen.blocks, axis=1, dtype=np.float32)), "vector"
    if len(chosen.blocks) > 1:
        raise BadData(f"{images[0]!r} holds images; other features beside an image are not supported")
    block = chosen.blocks[0]
    if block.ndim > 4:
        raise BadData(f"{images[0]!r} has rows of shape {block.shape[1:]}; an image has 2 or 3 axes")
    image = block if block.ndim == 4 else block[..., None]
    return np.ascontiguousarray(image if image.dtype == np.uint8 else image.astype(np.float32)), "image"


def missing(column: Array) -> Array:
    """Return a mask of rows with a missing value (NaN, infinite, no time, empty text)."""
    if column.dtype.kind == "f":
        gaps = ~np.isfinite(column)
    elif column.dtype.kind == "M":
        gaps = np.isnat(column)
    elif column.dtype.kind == "U":
        gaps = column == ""
    else:
        return np.zeros(len(column), dtype=bool)
    return gaps.reshape(len(column), -1).any(axis=1)


def _refuse_missing(name: str, column: Array, role: str) -> None:
    rows = np.flatnonzero(missing(column))
    if len(rows):
        raise BadData(
            f"column {name!r}, {role}, has {len(rows)} missing or infinite value(s), the first in row "
            f"{rows[0] + 1}; fill them or remove these rows"
        )


def _refuse_texts(name: str, column: Array, why: str) -> None:
    if column.dtype.kind not in NUMBERS:
        raise BadData(f"target {name!r} holds {column.dtype} values, the first is {column[0]!s}; {why}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
