"""Functional ANOVA of a regression tree: which share of its variance each input explains alone.

F. Hutter, H. Hoos, K. Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter Importance", ICML
2014, algorithm 2, for subsets of one input. A tree is constant on boxes that partition the unit cube, so its
marginals are sums over leaves and need no sampling.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAF = -1


def alone(tree: Any, inputs: int) -> Floats:
    """Return the share of a tree's variance over the unit cube that each input explains alone.

    Args:
        tree: the `tree_` of a scikit-learn regressor with one output, fitted to inputs between 0 and 1.
        inputs: how many inputs it has.

    Returns:
        Shares, (inputs,), each between 0 and 1; all 0 for a tree that is constant.
    """
    low, high, value = leaves(tree, inputs)
    sides = high - low
    volume = sides.prod(axis=1)
    mean = float(volume @ value)
    variance = float(volume @ (value - mean) ** 2)
    if variance <= 0:
        return np.zeros(inputs)
    parts = [_of_marginal(low[:, j], high[:, j], volume / sides[:, j], value, mean) for j in range(inputs)]
    return np.array(parts) / variance


def leaves(tree: Any, inputs: int) -> tuple[Floats, Floats, Floats]:
    """Return the boxes of a tree's leaves inside the unit cube, (leaves, inputs) each, and their values."""
    count = tree.node_count
    low, high = np.zeros((count, inputs)), np.ones((count, inputs))
    left, right, feature, threshold = tree.children_left, tree.children_right, tree.feature, tree.threshold
    for node in range(count):  # parents stand before their children
        if left[node] == LEAF:
            continue
        for child in (left[node], right[node]):
            low[child], high[child] = low[node], high[node]
        high[left[node], feature[node]] = low[right[node], feature[node]] = threshold[node]
    ends = left == LEAF
    return low[ends], high[ends], tree.value[ends, 0, 0]


def _of_marginal(low: Floats, high: Floats, weight: Floats, value: Floats, mean: float) -> float:
    """Return the variance of the marginal of one input: a step function that leaves add to and take from."""
    edges = np.concatenate([low, high])
    steps = np.concatenate([weight * value, -weight * value])
    order = np.argsort(edges, kind="stable")
    heights = np.cumsum(steps[order])[:-1]
    widths = np.diff(edges[order])
    return float(widths @ (heights - mean) ** 2)
