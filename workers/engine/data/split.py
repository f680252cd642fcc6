"""Divides rows into training, validation and test parts. The data and the spec alone determine them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jobs.spec.data.split_roles import MIN_GROUPS, few_groups
from jobs.spec.sections.data import Split, Task
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.texts import TEXT
from workers.engine.errors import BadData, BadSpec

NAMES_OF_PARTS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "testing"),
}


class Parts(NamedTuple):
    """Each part's row numbers, ascending. Each row is in at most one part."""

    train: Array
    validation: Array
    test: Array

    def train_and_validation(self) -> Array:
        """Return both parts' row numbers together, ascending."""
        return np.sort(np.concatenate([self.train, self.validation]))


def split(y: Array, columns: Mapping[str, Array], task: Task, spec: Split) -> Parts:
    """Divide rows according to `spec`: by a column, by time, by group, stratified by class, or at random.

    Args:
        y: targets, (rows, …).
        columns: the data set's columns by name, (rows,) each.
        task: rows are stratified only if it has classes.
        spec: split kind, shares and seed.

    Raises:
        BadSpec: a column is missing, or a part would be empty.
    """
    if spec.column is not None:
        parts = _by_column(_named(columns, spec.column), spec.column)
    elif spec.time is not None:
        # Stable: rows of the same time stay in the order of the file.
        oldest_first = np.argsort(_named(columns, spec.time), kind="stable")
        parts = _cut(oldest_first, spec)
    elif spec.group is not None:
        parts = _by_group(_named(columns, spec.group), spec.group, spec)
    elif spec.stratify and task in ("binary", "multiclass"):
        # Each class is divided separately, so each part has the class proportions of the whole.
        rng = np.random.default_rng(spec.seed)
        cuts = [_cut(rng.permutation(np.flatnonzero(y == value)), spec) for value in np.unique(y)]
        parts = Parts(*(np.concatenate(rows) for rows in zip(*cuts, strict=True)))
    else:
        parts = _cut(np.random.default_rng(spec.seed).permutation(len(y)), spec)
    for name, part in parts._asdict().items():
        if not len(part):
            raise BadSpec(f"the split of {len(y)} rows leaves the {name} part empty")
    return Parts(*(np.sort(rows) for rows in parts))


def named_parts(column: str | None, values: Mapping[str, Array]) -> tuple[int, int, int] | None:
    """Return the training, validation and test rows that the column with the role split names.

    Args:
        column: its name; None without one, then the result is None.
        values: the data set's columns by name.

    Raises:
        BadData: a value names no part, or a part has no row.
    """
    if column is None:
        return None
    try:
        parts = _by_column(_named(values, column), column)
    except BadSpec as error:
        raise BadData(f"a column with the role split names the part of each row: {error}") from error
    for name, rows in parts._asdict().items():
        if not len(rows):
            raise BadData(f"column {column!r} has the role split, and no row has the value {name}")
    return len(parts.train), len(parts.validation), len(parts.test)


def _named(columns: Mapping[str, Array], name: str) -> Array:
    if name not in columns:
        names = ", ".join(list(columns)[:20]) or "none"
        raise BadSpec(f"the split names column {name!r}; the data set has {names}")
    # A column of a mapped file is read each time.
    column = columns[name]
    if (gaps := np.flatnonzero(missing(column))).size:
        raise BadSpec(f"the split's column {name!r} has no value in row {gaps[0] + 1}")
    return column


def _sizes(rows: int, spec: Split) -> tuple[int, int]:
    """Return how many rows validation and test have. With three rows or more, no part is empty."""
    least = 1 if rows >= 3 else 0
    # Of a few rows, two rounded shares may be all of them.
    test = min(max(round(rows * spec.test), least), rows - 2 * least)
    validation = min(max(round(rows * spec.validation), least), rows - test - least)
    return validation, test


def _cut(order: Array, spec: Split) -> Parts:
    """Use the first rows in `order` for training and the last for testing."""
    validation, test = _sizes(len(order), spec)
    train = len(order) - validation - test
    return Parts(order[:train], order[train : train + validation], order[train + validation :])


def _by_group(groups: Array, column: str, spec: Split) -> Parts:
    """Assign whole groups, in random order, to test and then to validation until each has its share.

    Each part has at least one group, whatever the group sizes are.
    """
    values, member = np.unique(groups, return_inverse=True)
    if len(values) < MIN_GROUPS:
        raise BadSpec(few_groups(column, len(values)))
    sizes = np.bincount(member)
    order = np.random.default_rng(spec.seed).permutation(len(values))
    # Number of rows in the groups before each one, in the order in which parts are filled.
    before = np.concatenate([[0], np.cumsum(sizes[order])[:-1]])
    validation, test = _sizes(len(groups), spec)
    # A large group may have the rows of two parts, so the shares of rows alone could leave a part empty.
    tested = min(int(np.count_nonzero(before < test)), len(values) - 2)
    held_out = int(np.count_nonzero(before < test + validation))
    held_out = min(max(held_out, tested + 1), len(values) - 1)
    part_of_group = np.zeros(len(values), dtype=int)
    part_of_group[order[:held_out]] = 1
    part_of_group[order[:tested]] = 2
    part = part_of_group[member]
    return Parts(*(np.flatnonzero(part == i) for i in range(3)))


def _by_column(names: Array, column: str) -> Parts:
    lowered = np.strings.lower(np.strings.strip(names.astype(TEXT)))
    part_words = [word for words in NAMES_OF_PARTS.values() for word in words]
    if (unknown := np.flatnonzero(~np.isin(lowered, part_words))).size:
        row = int(unknown[0])
        raise BadSpec(
            f"column {column!r} has the value {names[row]!s} in row {row + 1}; "
            "allowed are train, validation and test"
        )
    return Parts(*(np.flatnonzero(np.isin(lowered, words)) for words in NAMES_OF_PARTS.values()))
