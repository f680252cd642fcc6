"""Encodes named columns as arrays for a model.

Numbers are unchanged. Text columns become one-hot columns, with the vocabulary recorded in the profile: a
`StringLookup` layer inside the model could not be loaded in Keras' safe mode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast, get_args

import numpy as np

from jobs.spec.data.columns import ARRAY_ROLES, ArrayType, ColumnRequest
from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from jobs.spec.data.profile import DataKind
from jobs.spec.sections.data import Task
from workers.engine.arrays import Array
from workers.engine.data.expansion import check_expanded
from workers.engine.data.labels import is_list_column, several_labels
from workers.engine.data.table import NUMBERS, Table
from workers.engine.data.texts import is_text
from workers.engine.errors import BadData

MAX_CATEGORIES = 100
"""Maximum number of distinct texts of a feature; each becomes a column."""
MAX_CLASSES = 10_000
MAX_LABEL = 500
"""Maximum number of characters of a category or a class, whose names every page and model repeats."""
MAX_CLASSES_OF_NUMBERS = 20
"""A numeric target with more distinct values is taken for a regression."""
_KINDS = {"T": "words", "U": "words", "M": "dates"}
"""Values by NumPy's kind of their type, for messages."""


@dataclass(frozen=True)
class Encoded:
    """A data set's encoded arrays.

    Attributes:
        x: features, (rows, …) float32, or uint8 for images of bytes. Sequences are (rows, steps, numbers).
        y: targets. Binary and multiclass: class numbers, (rows,) int32; multilabel: 0 or 1, (rows, labels)
            float32; regression: in the target's own unit, (rows, targets) float32.
        kind: the feature kind.
        task: the prediction task.
        target: the target column's name.
        features: the feature columns.
        inputs: the encoded inputs' names, more than features where text is one-hot encoded.
        class_labels: the class or label names.
        findings: messages about columns that were left out.
    """

    x: Array
    y: Array
    kind: DataKind
    task: Task
    target: str
    features: tuple[str, ...]
    inputs: tuple[str, ...]
    class_labels: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def outputs(self) -> int:
        """How many classes, labels or target columns there are."""
        return len(self.class_labels) if self.class_labels else int(self.y.shape[1])


@dataclass
class _Features:
    """The encoded features so far; `blocks` has one array per feature, with one or more columns."""

    limits: FileLimits
    blocks: list[Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, name: str, block: Array, inputs: list[str]) -> None:
        self.names.append(name)
        self.blocks.append(block)
        self.inputs.extend(inputs)


def encode(
    table: Table,
    *,
    target: str | None,
    features: tuple[str, ...] | None,
    task: Task | None,
    limits: FileLimits = DEFAULT_LIMITS,
    types: Mapping[str, ArrayType] | None = None,
    without: str | None = None,
) -> Encoded:
    """Encode a table.

    Args:
        table: the columns.
        target: the target column's name; None for `y`, `target`, `label`, `class` or the last column.
        features: the feature columns; None for all usable ones.
        task: the prediction task; None to guess it from the target.
        limits: how many bytes the encoded features may have.
        types: types that a person has chosen for arrays whose rows have two axes.
        without: a column that is no feature.

    Raises:
        BadData: the features are too large, or a column does not exist, has missing values, or cannot be a
            feature or target.
    """
    target = choose_target(table, target)
    if without is not None and without in (target, *(features or ())):
        raise BadData(f"column {without!r} has the role split, and is also a feature or the target")
    y, task, labels = encode_target(target, table.columns[target], task)
    usable = replace(table, columns={name: rows for name, rows in table.columns.items() if name != without})
    chosen = _encode_features(usable, target, features, limits)
    x, kind = _join(chosen, types or {})
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


def choose_target(table: Table, target: str | None) -> str:
    """Return the target's name: the requested one, a usual one, or the last column.

    Raises:
        BadData: there is no such column.
    """
    if target is not None:
        if target not in table.columns:
            raise BadData(f"no column {target!r}; there are {some(list(table.columns))}")
        return target
    for name in ("y", "target", "label", "class"):
        if name in table.columns:
            return name
    return list(table.columns)[-1]


def encode_target(name: str, column: Array, task: Task | None) -> tuple[Array, Task, tuple[str, ...]]:
    """Encode a target column.

    Args:
        name: the column's name.
        column: its values, (rows,) or (rows, targets).
        task: the prediction task; None to guess it.

    Returns:
        y, the task and the class labels; see `Encoded`.

    Raises:
        BadData: missing values, or values that do not fit `task`.
    """
    _reject_missing(name, column, "the target")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim > 2:
        raise BadData(
            f"target {name!r} has rows of shape {column.shape[1:]}; each row must be a value or a list"
        )
    task = task or _guess_task(column)
    if task == "regression":
        if column.dtype.kind not in NUMBERS:
            raise BadData(
                f"target {name!r} contains {_KINDS.get(column.dtype.kind, column.dtype)}, the first is "
                f"{column[0]!s}; regression needs numbers"
            )
        with np.errstate(over="ignore"):
            y = column.reshape(len(column), -1).astype(np.float32)
        if len(rows := np.flatnonzero(~np.isfinite(y).all(axis=1))):
            raise BadData(
                f"target {name!r} has a number above the range of 32-bit floats in row {rows[0] + 1}"
            )
        return y, task, ()
    if task == "multilabel" and column.ndim == 1 and is_text(column):
        y, labels = several_labels(name, column)
        return y, task, labels
    if task == "multilabel":
        if column.ndim != 2 or not np.isin(column, (0, 1)).all():
            raise BadData(
                f"multilabel target {name!r} must be lists of labels, texts such as 'a;b', or an array of "
                "0 and 1 with one column per label"
            )
        return column.astype(np.float32), task, tuple(f"{name}_{i}" for i in range(column.shape[1]))
    return _class_indices(name, column, task)


def _guess_task(column: Array) -> Task:
    if column.ndim == 2:
        return "multilabel" if np.isin(column, (0, 1)).all() else "regression"
    if is_list_column(column):
        return "multilabel"
    distinct = np.unique(column)
    numbers = column.dtype.kind in "iuf"
    if numbers and not (len(distinct) <= MAX_CLASSES_OF_NUMBERS and np.all(distinct == np.round(distinct))):
        return "regression"
    return "binary" if len(distinct) == 2 else "multiclass"


def _class_indices(name: str, column: Array, task: Task) -> tuple[Array, Task, tuple[str, ...]]:
    if column.ndim != 1:
        raise BadData(f"target {name!r} has {column.shape[1]} columns; a {task} task needs one class per row")
    classes, indices = np.unique(column, return_inverse=True)
    if len(classes) < 2:
        raise BadData(f"target {name!r} has only the value {classes[0]!s}; a task needs at least two")
    if task == "binary" and len(classes) != 2:
        raise BadData(f"target {name!r} has {len(classes)} classes; a binary task needs exactly 2")
    if len(classes) > MAX_CLASSES:
        raise BadData(f"target {name!r} has {len(classes)} classes; is it a number to predict (regression)?")
    if is_text(classes) and (longest := int(np.strings.str_len(classes).max())) > MAX_LABEL:
        raise BadData(
            f"target {name!r} has a class of {longest:,} characters; at most {MAX_LABEL} are accepted"
        )
    return indices.astype(np.int32), task, tuple(_label(value) for value in classes.tolist())


def _label(number: object) -> str:
    """Return a class as text: a whole number without a decimal point, also if it is stored as a float."""
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def _encode_features(
    table: Table, target: str, features: tuple[str, ...] | None, limits: FileLimits
) -> _Features:
    feature_names = features or tuple(name for name in table.columns if name != target)
    chosen = _Features(limits)
    for name in feature_names:
        if name not in table.columns:
            raise BadData(f"no feature column {name!r}; there are {some(list(table.columns))}")
        if name == target:
            raise BadData(f"{name!r} is the target and cannot also be a feature")
        _encode_feature(chosen, name, table.columns[name], is_selected=features is not None)
    if not chosen.blocks:
        raise BadData("no column can be used as a feature; " + " ".join(chosen.findings))
    return chosen


def _encode_feature(chosen: _Features, name: str, column: Array, *, is_selected: bool) -> None:
    if (reason := _unusable(column)) is not None:
        if is_selected:
            raise BadData(f"column {name!r} cannot be a feature: {reason}")
        chosen.findings.append(f"Column {name!r} is left out of the features: {reason}.")
        return
    _reject_missing(name, column, "a feature")
    if is_text(column):
        words = np.unique(column)
        # A text of one byte may become a hundred numbers, so the size is checked before it is allocated.
        size = sum(block.nbytes for block in chosen.blocks) + 4 * len(column) * len(words)
        check_expanded("the table with its texts encoded", size, chosen.limits)
        block = (column[:, None] == words[None, :]).astype(np.float32)
        chosen.add(name, block, [f"{name}={word}" for word in words])
    elif column.ndim == 1:
        chosen.add(name, column.astype(np.float32)[:, None], [name])
    else:
        chosen.add(name, column, [f"{name}_{i}" for i in range(column.shape[1])] if column.ndim == 2 else [])


def _unusable(column: Array) -> str | None:
    if column.dtype.kind == "M":
        return "it contains times, which can only order the split (time)"
    if is_text(column):
        if column.ndim > 1:
            return "it contains arrays of texts"
        if (longest := int(np.strings.str_len(column).max())) > MAX_LABEL:
            return f"it has a text of {longest:,} characters; a category has at most {MAX_LABEL}"
        distinct = len(np.unique(column))
        if distinct > MAX_CATEGORIES:
            return f"it has {distinct} distinct texts; at most {MAX_CATEGORIES} categories are encoded"
    elif column.dtype.kind not in NUMBERS:
        return f"it contains {column.dtype} values"
    return None


def array_types(table: Table, requests: Sequence[ColumnRequest]) -> dict[str, ArrayType]:
    """Return the types that a person has chosen for arrays.

    Raises:
        BadData: an array does not exist, or cannot have this role or type.
    """
    types = {}
    for request in requests:
        if request.name not in table.columns:
            raise BadData(f"no column {request.name!r}; there are {some(list(table.columns))}")
        if request.role not in (None, *ARRAY_ROLES):
            raise BadData(f"array {request.name!r} cannot have the role {request.role}, which is for tables")
        if request.type is None:
            continue
        axes = table.columns[request.name].ndim - 1
        if request.type not in get_args(ArrayType) or axes != 2:
            raise BadData(
                f"array {request.name!r}, whose rows have {axes} axes, cannot be of type {request.type}; the "
                "types image and sequence are for rows of 2 axes"
            )
        types[request.name] = cast("ArrayType", request.type)
    return types


def _join(chosen: _Features, types: Mapping[str, ArrayType]) -> tuple[Array, DataKind]:
    arrays = [name for name, block in zip(chosen.names, chosen.blocks, strict=True) if block.ndim > 2]
    if not arrays:
        return np.ascontiguousarray(np.concatenate(chosen.blocks, axis=1, dtype=np.float32)), "vector"
    name, block = arrays[0], chosen.blocks[0]
    if len(chosen.blocks) > 1:
        raise BadData(f"{name!r} contains images; other features cannot be combined with an image")
    if block.ndim > 4:
        raise BadData(f"{name!r} has rows of shape {block.shape[1:]}; an image must have 2 or 3 axes")
    # Colours are not negative, but measures over time often are.
    proposed = "sequence" if block.ndim == 3 and block.dtype.kind != "u" and block.min() < 0 else "image"
    if types.get(name, proposed) == "sequence":
        if name not in types:
            steps, numbers = block.shape[1:]
            chosen.findings.append(
                f"Array {name!r} has values below 0, so its rows are sequences of {steps} steps with "
                f"{numbers} numbers each. If they are images, choose the type image."
            )
        return np.ascontiguousarray(block, np.float32), "sequence"
    image = block if block.ndim == 4 else block[..., None]
    return np.ascontiguousarray(image if image.dtype == np.uint8 else image.astype(np.float32)), "image"


def missing(column: Array) -> Array:
    """Return whether each row has a missing value (NaN, infinite, NaT or empty text), (rows,) bool."""
    if column.dtype.kind == "f":
        gaps = ~np.isfinite(column)
    elif column.dtype.kind == "M":
        gaps = np.isnat(column)
    elif is_text(column):
        gaps = column == ""
    else:
        return np.zeros(len(column), dtype=bool)
    return gaps if column.ndim == 1 else gaps.reshape(len(column), -1).any(axis=1)


def _reject_missing(name: str, column: Array, role: str) -> None:
    rows = np.flatnonzero(missing(column))
    if len(rows):
        raise BadData(
            f"column {name!r}, {role}, has {len(rows)} missing or infinite value(s), the first in row "
            f"{rows[0] + 1}; fill them or remove these rows"
        )


def some(names: list[str]) -> str:
    """Return the first few names, for a message."""
    return ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
