"""Computes Pareto fronts for results with several objectives."""

from collections.abc import Sequence

Costs = tuple[float, ...]
"""One value per objective, each to be minimized."""


def dominates(a: Costs, b: Costs) -> bool:
    """Return whether `a` is no worse than `b` in every objective, and better in one."""
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def pareto_fronts(costs: Sequence[Costs], enough: int) -> list[list[int]]:
    """Sort results into Pareto fronts: not dominated, dominated only by the first front, and so on.

    Args:
        costs: the costs for each result.
        enough: stop when the fronts have at least this many results.

    Returns:
        Indices into `costs`; within a front by the first objective, then the second, ….
    """
    remaining = sorted(range(len(costs)), key=lambda i: (costs[i], i))
    fronts: list[list[int]] = []
    while remaining and sum(map(len, fronts)) < enough:
        front: list[int] = []
        dominated: list[int] = []
        # In sorted order, a result comes after all that dominate it, so one pass is enough.
        for i in remaining:
            is_dominated = any(dominates(costs[j], costs[i]) for j in front)
            (dominated if is_dominated else front).append(i)
        fronts.append(front)
        remaining = dominated
    return fronts
