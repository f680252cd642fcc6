"""Computes the functional ANOVA of a regression tree: the share of its variance that each input explains.

Source: F. Hutter, H. Hoos, K. Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter Importance",
ICML 2014, algorithm 2, for main effects (subsets of one input). A tree is constant on boxes that partition
the unit cube, so its marginals are sums over leaves and need no sampling.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAF = -1


def main_effects(tree: Any, inputs: int) -> Floats:
    """Return the share of a tree's variance over the unit cube that each input explains on its own.

    Args:
        tree: the `tree_` of a scikit-learn regressor with one output, fitted to inputs between 0 and 1.
        inputs: number of inputs.

    Returns:
        Shares, (inputs,), each between 0 and 1; all 0 for a constant tree.
    """
    low, high, value = leaves(tree, inputs)
    sides = high - low
    volume = sides.prod(axis=1)
    mean = float(volume @ value)
    variance = float(volume @ (value - mean) ** 2)
    if variance <= 0:
        return np.zeros(inputs)
    variances = [
        _marginal_variance(low[:, j], high[:, j], volume / sides[:, j], value, mean) for j in range(inputs)
    ]
    return np.array(variances) / variance


def leaves(tree: Any, inputs: int) -> tuple[Floats, Floats, Floats]:
    """Return the leaves of a tree as boxes in the unit cube.

    Returns:
        Lower and upper bounds, (leaves, inputs) each, and values, (leaves,).
    """
    count = tree.node_count
    low, high = np.zeros((count, inputs)), np.ones((count, inputs))
    left, right, feature, threshold = tree.children_left, tree.children_right, tree.feature, tree.threshold
    # scikit-learn numbers parents before their children.
    for node in range(count):
        if left[node] == LEAF:
            continue
        for child in (left[node], right[node]):
            low[child], high[child] = low[node], high[node]
        high[left[node], feature[node]] = low[right[node], feature[node]] = threshold[node]
    is_leaf = left == LEAF
    return low[is_leaf], high[is_leaf], tree.value[is_leaf, 0, 0]


def _marginal_variance(low: Floats, high: Floats, weight: Floats, value: Floats, mean: float) -> float:
    """Return the variance of the marginal of one input.

    The marginal is a step function: each leaf adds its weighted value at its lower bound and subtracts it at
    its upper bound.
    """
    edges = np.concatenate([low, high])
    steps = np.concatenate([weight * value, -weight * value])
    order = np.argsort(edges, kind="stable")
    heights = np.cumsum(steps[order])[:-1]
    widths = np.diff(edges[order])
    return float(widths @ (heights - mean) ** 2)
