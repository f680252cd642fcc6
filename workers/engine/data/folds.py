"""Cuts rows into folds for cross-validation: a pure function of data, split and repeat.

Folds respect what the split respects: groups stay whole, classes keep their proportions. The split's
test rows are in no fold.
"""

from typing import NamedTuple

import numpy as np

from jobs.contracts.data import Split, Task
from jobs.contracts.evaluation import Turn
from jobs.contracts.experiment import ExperimentSpec
from workers.engine.data.dataset import Dataset
from workers.engine.data.table import Array
from workers.engine.errors import BadSpec


class Fold(NamedTuple):
    """Ascending row numbers: what one training of a cross-validation sees, and what it is measured on."""

    train: Array
    validation: Array


def rows_of(turn: Turn, dataset: Dataset, spec: ExperimentSpec) -> Fold:
    """Return the rows of one execution of a trial: the split's own, or those of its fold.

    Raises:
        BadSpec: there are fewer rows, or groups, than folds.
    """
    parts, evaluation = dataset.parts, spec.search.evaluation if spec.search is not None else None
    if evaluation is None or evaluation.kind != "k_fold" or turn.fold is None:
        return Fold(parts.train, parts.validation)
    rows = parts.both()
    groups = None if dataset.groups is None else dataset.groups[rows]
    owners = folds(
        dataset.y[rows],
        groups,
        dataset.task,
        spec.data.split,
        count=evaluation.folds,
        repeat=turn.repeat,
    )
    held = owners == turn.fold - 1
    return Fold(rows[~held], rows[held])


def folds(y: Array, groups: Array | None, task: Task, spec: Split, *, count: int, repeat: int = 1) -> Array:
    """Say which fold each row belongs to.

    Args:
        y: (rows, …) targets of the rows to be cut: training and validation part together.
        groups: (rows,) rows of equal values stay together; None for a split without groups.
        task: classes are spread evenly where there are classes.
        spec: the split; its stratification and seed hold for the folds too.
        count: how many folds.
        repeat: counts from 1; each cuts otherwise.

    Returns:
        (rows,) fold numbers from 0, none of which is missing.

    Raises:
        BadSpec: there are fewer rows, or groups, than folds.
    """
    rng = np.random.default_rng((spec.seed, repeat))
    if groups is not None:
        owners = _by_group(groups, count, rng)
    elif spec.stratify and task in ("binary", "multiclass"):
        owners = _stratified(y, count, rng)
    else:
        owners = _dealt(rng.permutation(len(y)), count)
    if (made := len(np.unique(owners))) < count:
        what = f"groups in {spec.group!r}" if groups is not None else "rows"
        raise BadSpec(f"{count} folds need as many {what} beside the test part; there are {made}")
    return owners


def _dealt(order: Array, count: int) -> Array:
    """Deal positions out like cards, in this order."""
    owners = np.empty(len(order), dtype=int)
    owners[order] = np.arange(len(order)) % count
    return owners


def _stratified(y: Array, count: int, rng: np.random.Generator) -> Array:
    """Deal class after class, each going on where the one before ended, so that folds are even too."""
    return _dealt(np.concatenate([rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]), count)


def _by_group(groups: Array, count: int, rng: np.random.Generator) -> Array:
    """Give each group, the largest first, to the fold that has the fewest rows."""
    values, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    shuffled = rng.permutation(len(values))
    of_group, filled = np.zeros(len(values), dtype=int), np.zeros(count, dtype=int)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        of_group[group] = int(np.argmin(filled))
        filled[of_group[group]] += sizes[group]
    return of_group[member]
