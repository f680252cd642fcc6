"""Divides rows into training, validation and test parts: a pure function of data, spec and seed."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jobs.contracts.data import Split, Task
from workers.engine.data.encode import missing
from workers.engine.data.table import Array
from workers.engine.errors import BadSpec

NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "testing"),
}


class Parts(NamedTuple):
    """Ascending row numbers of each part; every row is in at most one."""

    train: Array
    validation: Array
    test: Array

    def both(self) -> Array:
        """Return the rows of training and validation together, ascending."""
        return np.sort(np.concatenate([self.train, self.validation]))


def split(y: Array, columns: Mapping[str, Array], task: Task, spec: Split) -> Parts:
    """Return the parts that `spec` asks for.

    Raises:
        BadSpec: a column is missing, or a part would be empty.
    """
    if spec.column is not None:
        parts = _by_column(_named(columns, spec.column), spec.column)
    elif spec.time is not None:
        parts = _by_time(_named(columns, spec.time), spec)
    elif spec.group is not None:
        parts = _by_group(_named(columns, spec.group), spec)
    elif spec.stratify and task in ("binary", "multiclass"):
        parts = _stratified(y, spec)
    else:
        parts = _cut(np.random.default_rng(spec.seed).permutation(len(y)), spec)
    _refuse_empty(parts, len(y))
    return Parts(*(np.sort(rows) for rows in parts))


def _named(columns: Mapping[str, Array], name: str) -> Array:
    if name not in columns:
        known = ", ".join(list(columns)[:20]) or "none"
        raise BadSpec(f"the split names column {name!r}; the data set has {known}")
    if (gaps := np.flatnonzero(missing(columns[name]))).size:
        raise BadSpec(f"the split's column {name!r} has no value in row {gaps[0] + 1}")
    return columns[name]


def _sizes(rows: int, spec: Split) -> tuple[int, int]:
    """Return how many rows go to validation and test; each gets one where there are three rows."""
    least = 1 if rows >= 3 else 0
    return max(round(rows * spec.validation), least), max(round(rows * spec.test), least)


def _cut(order: Array, spec: Split) -> Parts:
    validation, test = _sizes(len(order), spec)
    train = len(order) - validation - test
    return Parts(order[:train], order[train : train + validation], order[train + validation :])


def _stratified(y: Array, spec: Split) -> Parts:
    """Cut each class on its own, so every part has the classes in the proportions of the whole."""
    rng = np.random.default_rng(spec.seed)
    cuts = [_cut(rng.permutation(np.flatnonzero(y == value)), spec) for value in np.unique(y)]
    return Parts(*(np.concatenate(rows) for rows in zip(*cuts, strict=True)))


def _by_time(moments: Array, spec: Split) -> Parts:
    """Train on the oldest rows, test on the newest."""
    return _cut(np.argsort(moments, kind="stable"), spec)


def _by_group(groups: Array, spec: Split) -> Parts:
    """Give whole groups, in random order, to test, then to validation, until each has its share."""
    values, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    order = np.random.default_rng(spec.seed).permutation(len(values))
    before = np.concatenate([[0], np.cumsum(sizes[order])[:-1]])
    validation, test = _sizes(len(groups), spec)
    part_of_group = np.zeros(len(values), dtype=int)
    part_of_group[order[before < test + validation]] = 1
    part_of_group[order[before < test]] = 2
    part = part_of_group[member]
    return Parts(*(np.flatnonzero(part == i) for i in range(3)))


def _by_column(names: Array, column: str) -> Parts:
    lowered = np.char.lower(np.char.strip(names.astype(np.str_)))
    known = [word for words in NAMES.values() for word in words]
    if (strange := np.flatnonzero(~np.isin(lowered, known))).size:
        row = int(strange[0])
        raise BadSpec(
            f"column {column!r} says {names[row]!s} in row {row + 1}; it takes train, validation or test"
        )
    return Parts(*(np.flatnonzero(np.isin(lowered, words)) for words in NAMES.values()))


def _refuse_empty(parts: Parts, rows: int) -> None:
    for name, part in parts._asdict().items():
        if not len(part):
            raise BadSpec(f"the split of {rows} rows leaves the {name} part empty")
