"""Grows trees with scikit-learn, a few more at each call.

The parts of scikit-learn that are named with an underscore are private, since it has no public access to the
trees in gradient boosting. A test compares the predictions from both.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from jobs.spec.sections.data import Task
from jobs.spec.templates.trees import TreesArgs
from workers.engine.arrays import Array
from workers.engine.models.trees.arrays import Tree
from workers.engine.models.trees.bins import Bins

NEVER = -1e30
"""The raw prediction of a class without training rows: its probability is 0."""
ALWAYS = 40.0
"""The raw prediction of an output that is the same in all training rows: its probability rounds to 1."""
DEFAULT_LEAVES, DEFAULT_MIN_ROWS = 31, 20
"""Of boosting, as in scikit-learn."""
FORESTS = {
    ("random_forest", True): RandomForestClassifier,
    ("random_forest", False): RandomForestRegressor,
    ("extra_trees", True): ExtraTreesClassifier,
    ("extra_trees", False): ExtraTreesRegressor,
}
"""By method, and whether the task has classes."""


@dataclass(frozen=True)
class TrainingRows:
    """The rows that trees are grown on.

    Attributes:
        x: (rows, features) float32.
        y: class numbers, (rows,), or targets, (rows, outputs).
        weights: (rows,); None if all are equal.
        task: the prediction task.
        outputs: the model's output count.
    """

    x: Array
    y: Array
    weights: Array | None
    task: Task
    outputs: int


class Grower(Protocol):
    """Grows one model's trees. How many are grown in one call has no effect on them."""

    def grow(self, rounds: int) -> None:
        """Grow trees until there are so many rounds; one round follows each epoch."""

    def trees(self, number: int) -> Sequence[Tree]:
        """Return a round's trees, from 0 on: one tree for each output, or one for all outputs."""


def grower(args: TreesArgs, rows: TrainingRows, seed: int) -> Grower:
    """Return the grower for the method in `args`.

    Args:
        args: the template's arguments.
        rows: the training rows.
        seed: for drawing rows and features.
    """
    return Boosting(args, rows, seed) if args.method == "boosting" else Forest(args, rows, seed)


def threads() -> int:
    """Return how many threads this process may use: as many as its slots have."""
    # OpenMP's threads wait in loops: one more than there are free cores makes boosting 40 times slower.
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


class Boosting:
    """Gradient boosting with one tree for each output and round.

    Each label, or each target, has its own model if there are several.
    """

    def __init__(self, args: TreesArgs, rows: TrainingRows, seed: int) -> None:
        self._rows = rows
        self._bins = None if rows.weights is None else Bins.fit(rows.x, seed)
        self._x = rows.x if self._bins is None else self._bins.numbers(rows.x)
        self._options: dict[str, Any] = {
            "learning_rate": args.shrinkage,
            "max_leaf_nodes": args.leaves or DEFAULT_LEAVES,
            "max_depth": args.depth,
            "min_samples_leaf": args.min_rows or DEFAULT_MIN_ROWS,
            "l2_regularization": args.l2,
            "max_features": args.features or 1.0,
            # Training and validation rows are chosen by the experiment, and so is the end of the training.
            "early_stopping": False,
            "warm_start": True,
            "random_state": seed,
        }
        shared = rows.task == "multiclass" or rows.outputs == 1
        targets = [rows.y.reshape(-1)] if shared else list(rows.y.T)
        self._parts = [self._part(target) for target in targets]

    def _part(self, y: Array) -> "_Part":
        if self._rows.task == "regression":
            return _Part(HistGradientBoostingRegressor(**self._options), y.astype(np.float64), (), self._bins)
        labels = y.astype(np.int64)
        classes = np.unique(labels)
        # With a single class there is nothing to fit.
        model = HistGradientBoostingClassifier(**self._options) if len(classes) > 1 else None
        return _Part(model, labels, tuple(map(int, classes)), self._bins)

    def grow(self, rounds: int) -> None:
        """See `Grower.grow`."""
        for part in self._parts:
            if part.model is not None:
                part.model.set_params(max_iter=rounds)
                with threadpool_limits(threads(), user_api="openmp"):
                    part.model.fit(self._x, part.y, sample_weight=self._rows.weights)

    def trees(self, number: int) -> Sequence[Tree]:
        """See `Grower.trees`."""
        columns = self._rows.outputs if self._rows.task == "multiclass" else 1
        return [tree for part in self._parts for tree in part.trees(number, columns)]


@dataclass(frozen=True)
class _Part:
    """One scikit-learn model: all classes, or one label or target.

    Attributes:
        model: None if the training rows have only one class.
        y: its target, (rows,).
        classes: those in the training rows; empty for regression.
        bins: take the place of numbers; None if they do not.
    """

    model: Any
    y: Array
    classes: tuple[int, ...]
    bins: Bins | None

    def trees(self, number: int, columns: int) -> list[Tree]:
        """Return a round's trees, one for each of `columns` outputs."""
        if columns == 1:
            return [self._constant(number) if self.model is None else self._tree(number, 0)]
        # A class that only other rows have gets no tree, and two classes share one.
        absent = Tree.constant(NEVER if number == 0 else 0.0)
        trees = [absent] * columns
        if self.model is None:
            trees[self.classes[0]] = Tree.constant(0.0)
        elif len(self.classes) == 2:
            trees[self.classes[0]] = Tree.constant(0.0)
            trees[self.classes[1]] = self._tree(number, 0)
        else:
            for index, label in enumerate(self.classes):
                trees[label] = self._tree(number, index)
        return trees

    def _constant(self, number: int) -> Tree:
        return Tree.constant((ALWAYS if self.classes[0] else -ALWAYS) if number == 0 else 0.0)

    def _tree(self, number: int, index: int) -> Tree:
        nodes = self.model._predictors[number][index].nodes
        # The first tree has the value that boosting begins with.
        baseline = float(self.model._baseline_prediction.ravel()[index]) if number == 0 else 0.0
        feature, threshold = nodes["feature_idx"], nodes["num_threshold"]
        return Tree.from_nodes(
            feature=feature,
            threshold=threshold if self.bins is None else self.bins.thresholds(feature, threshold),
            children=(nodes["left"], nodes["right"]),
            is_leaf=nodes["is_leaf"].astype(bool),
            missing_left=nodes["missing_go_to_left"],
            value=(nodes["value"] + baseline)[:, None],
        )


class Forest:
    """A random forest, or extremely randomized trees, with one tree for all outputs in each round."""

    def __init__(self, args: TreesArgs, rows: TrainingRows, seed: int) -> None:
        self._rows = rows
        # Labels are predicted by the mean of 0 and 1: its variance ranks splits as the Gini impurity does.
        self._classifies = rows.task in ("binary", "multiclass")
        square_root: Any = "sqrt" if rows.task != "regression" else 1.0
        self._model = FORESTS[args.method, self._classifies](
            max_leaf_nodes=args.leaves or None,
            max_depth=args.depth,
            min_samples_leaf=args.min_rows or 1,
            max_features=args.features or square_root,
            warm_start=True,
            random_state=seed,
            n_jobs=threads(),
        )
        self._y = rows.y.reshape(-1) if self._classifies or rows.outputs == 1 else rows.y
        # All targets share one tree, so each counts in units of its standard deviation.
        self._scale = self._y.std(axis=0) if self._y.ndim > 1 else np.ones(1)
        self._scale = np.where(self._scale > 0, self._scale, 1.0)

    def grow(self, rounds: int) -> None:
        """See `Grower.grow`."""
        self._model.set_params(n_estimators=rounds)
        y = self._y if self._y.ndim == 1 else self._y / self._scale
        self._model.fit(self._rows.x, y, sample_weight=self._rows.weights)

    def trees(self, number: int) -> Sequence[Tree]:
        """See `Grower.trees`."""
        tree = self._model.estimators_[number].tree_
        left = tree.children_left
        return [
            Tree.from_nodes(
                feature=tree.feature,
                threshold=tree.threshold,
                children=(left, tree.children_right),
                is_leaf=left < 0,
                missing_left=tree.missing_go_to_left,
                value=self._values(tree),
            )
        ]

    def _values(self, tree: Any) -> Array:
        """Return each node's prediction, (nodes, outputs)."""
        if not self._classifies:
            return np.asarray(tree.value[:, :, 0] * self._scale)
        shares = np.zeros((tree.node_count, max(self._rows.outputs, 2)))
        shares[:, self._model.classes_.astype(int)] = tree.value[:, 0, :]
        # For two classes the model returns the probability of the second one.
        return shares if self._rows.outputs > 1 else shares[:, 1:]
