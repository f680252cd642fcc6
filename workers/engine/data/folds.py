"""Divides rows into folds for cross-validation. Data, split and repeat alone determine them.

Folds follow the split's settings: groups stay together, classes keep their proportions. The split's test rows
are not in any fold.
"""

from typing import NamedTuple

import numpy as np

from jobs.spec.data.split_roles import resolved
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.data import Split, Task
from jobs.spec.sections.evaluation import Turn
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset
from workers.engine.errors import BadSpec


class Fold(NamedTuple):
    """Row numbers for training and validation, ascending."""

    train: Array
    validation: Array


def rows_for(turn: Turn, dataset: Dataset, spec: ExperimentSpec) -> Fold:
    """Return the rows for one execution in a trial: its fold's, or the split's without folds.

    Args:
        turn: the execution's fold and repeat.
        dataset: the data set with its split.
        spec: the experiment.

    Raises:
        BadSpec: there are fewer rows, or groups, than folds.
    """
    parts, evaluation = dataset.parts, spec.search.evaluation if spec.search is not None else None
    if evaluation is None or evaluation.kind != "k_fold" or turn.fold is None:
        return Fold(parts.train, parts.validation)
    rows = parts.train_and_validation()
    groups = None if dataset.groups is None else dataset.groups[rows]
    fold_of_row = assign_folds(
        dataset.y[rows],
        groups,
        dataset.task,
        resolved(spec.required_data.split, dataset.profile),
        count=evaluation.folds,
        repeat=turn.repeat,
    )
    # Folds are numbered from 1 in a spec.
    is_validation = fold_of_row == turn.fold - 1
    return Fold(rows[~is_validation], rows[is_validation])


def assign_folds(
    y: Array, groups: Array | None, task: Task, spec: Split, *, count: int, repeat: int = 1
) -> Array:
    """Assign each row to a fold.

    Args:
        y: targets for training and validation, (rows, …).
        groups: rows with equal values stay together, (rows,); None for a split without groups.
        task: classes are spread evenly over the folds if it has classes.
        spec: the split; its stratification and seed apply to the folds too.
        count: how many folds to make.
        repeat: counted from 1; each repeat divides the rows differently.

    Returns:
        Fold numbers from 0, (rows,). No fold is empty.

    Raises:
        BadSpec: there are fewer rows, or groups, than folds.
    """
    rng = np.random.default_rng((spec.seed, repeat))
    if groups is not None:
        fold_of_row = _by_group(groups, count, rng)
    elif spec.stratify and task in ("binary", "multiclass"):
        # Class after class in turn: each starts where the last one ended, so the folds have equal sizes.
        by_class = [rng.permutation(np.flatnonzero(y == value)) for value in np.unique(y)]
        fold_of_row = _round_robin(np.concatenate(by_class), count)
    else:
        fold_of_row = _round_robin(rng.permutation(len(y)), count)
    if (folds := len(np.unique(fold_of_row))) < count:
        what = f"groups in {spec.group!r}" if groups is not None else "rows"
        raise BadSpec(f"{count} folds need at least as many {what} outside the test part; there are {folds}")
    return fold_of_row


def _round_robin(order: Array, count: int) -> Array:
    """Assign positions to folds in turn, in the given order."""
    fold_of_row = np.empty(len(order), dtype=int)
    fold_of_row[order] = np.arange(len(order)) % count
    return fold_of_row


def _by_group(groups: Array, count: int, rng: np.random.Generator) -> Array:
    """Assign each group, the largest first, to the fold with the fewest rows."""
    values, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    # Shuffled before the stable sort, so that groups of equal size are in random order.
    shuffled = rng.permutation(len(values))
    fold_of_group, filled = np.zeros(len(values), dtype=int), np.zeros(count, dtype=int)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of_group[group] = int(np.argmin(filled))
        filled[fold_of_group[group]] += sizes[group]
    return fold_of_group[member]
