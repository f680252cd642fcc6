"""Several objectives at once: which results no other beats."""

from collections.abc import Sequence

Costs = tuple[float, ...]
"""One value an objective, each to be minimized."""


def dominates(a: Costs, b: Costs) -> bool:
    """Say whether `a` is nowhere worse than `b`, and somewhere better."""
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def fronts(costs: Sequence[Costs], enough: int) -> list[list[int]]:
    """Sort results into fronts: those that nothing dominates, then those that only the first front does, …

    Args:
        costs: of each result.
        enough: no further front is looked for once the fronts hold so many.

    Returns:
        Indices into `costs`; within a front by the first objective, then the second, ….
    """
    left = sorted(range(len(costs)), key=lambda i: (costs[i], i))
    found: list[list[int]] = []
    while left and sum(map(len, found)) < enough:
        front: list[int] = []
        beaten: list[int] = []
        for i in left:  # what dominates another stands before it in this order
            is_beaten = any(dominates(costs[j], costs[i]) for j in front)
            (beaten if is_beaten else front).append(i)
        found.append(front)
        left = beaten
    return found
