"""Decision trees as arrays: one tree's nodes, and their predictions."""

from typing import NamedTuple, Self

import numpy as np

from workers.engine.arrays import Array


class Tree(NamedTuple):
    """One tree's nodes; node 0 is the root.

    A row goes to `left` if its feature is at most the threshold, or is NaN and `missing_left` is set;
    otherwise to `right`. A leaf leads to itself, so that it does not matter for how many steps a row is
    followed.

    Attributes:
        feature: input position, (nodes,) int32.
        threshold: (nodes,) float32.
        left: a node's number, (nodes,) int32.
        right: likewise.
        missing_left: (nodes,) bool.
        value: a leaf's prediction, (nodes, outputs) float64.
        depth: steps from the root to the deepest leaf.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array
    missing_left: Array
    value: Array
    depth: int

    @classmethod
    def from_nodes(
        cls,
        *,
        feature: Array,
        threshold: Array,
        children: tuple[Array, Array],
        is_leaf: Array,
        missing_left: Array,
        value: Array,
    ) -> Self:
        """Return a tree made from arrays as scikit-learn has them, (nodes,) each.

        Args:
            feature: ignored for a leaf, as are threshold and children.
            threshold: float64.
            children: left and right.
            is_leaf: whether a node is a leaf.
            missing_left: whether a row with NaN goes to the left.
            value: (nodes, outputs).
        """
        nodes = np.arange(len(feature))
        left, right = (np.where(is_leaf, nodes, child).astype(np.int32) for child in children)
        return cls(
            feature=np.where(is_leaf, 0, feature).astype(np.int32),
            threshold=np.where(is_leaf, np.float32(np.inf), below(threshold)),
            left=left,
            right=right,
            missing_left=is_leaf | missing_left.astype(bool),
            value=np.asarray(value, np.float64),
            depth=_depth(left, right),
        )

    @classmethod
    def constant(cls, value: float) -> Self:
        """Return a tree with one leaf and one output."""
        one = np.zeros(1)
        return cls.from_nodes(
            feature=one,
            threshold=one,
            children=(one, one),
            is_leaf=np.ones(1, bool),
            missing_left=one,
            value=np.array([[value]]),
        )

    def predict(self, x: Array) -> Array:
        """Return the values in the leaves that rows reach, (rows, outputs) float64.

        Args:
            x: (rows, features) float32.
        """
        node = np.zeros(len(x), np.int32)
        # Rows that have reached a leaf are not followed further.
        rows = np.arange(len(x))
        for _ in range(self.depth):
            here = node[rows]
            feature = x[rows, self.feature[here]]
            goes_left = (feature <= self.threshold[here]) | (np.isnan(feature) & self.missing_left[here])
            there = np.where(goes_left, self.left[here], self.right[here])
            node[rows] = there
            rows = rows[self.left[there] != there]
        return self.value[node]


def below(threshold: Array) -> Array:
    """Return the largest float32 that is not above each float64 threshold.

    A float32 is at most the result exactly if it is at most the threshold: no float32 lies between them.
    """
    # Thresholds beyond the range of float32 become infinite, and then its largest number or minus infinity.
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
    return np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _depth(left: Array, right: Array) -> int:
    depth, reached = 0, np.zeros(1, np.int32)
    while len(reached := reached[left[reached] != reached]):
        reached = np.concatenate([left[reached], right[reached]])
        depth += 1
    return depth
