"""Computes rungs and brackets for successive halving and Hyperband.

A rung ends at an epoch at which trials are compared. A bracket is one run of successive halving. The plan
and the search algorithms share these functions.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen


class RungOptions(Frozen):
    """The options of successive halving: the best 1 / `factor` of the trials is promoted from each rung."""

    factor: int = Field(
        default=3, ge=2, le=10, title="Factor", description="One of so many trials is promoted from a rung."
    )
    min_epochs: int = Field(default=1, ge=1, le=100_000, title="First rung after", description="Epochs.")
    max_epochs: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        title="Last rung after",
        description="Epochs; all epochs of the training if empty.",
    )
    iterations: int = Field(
        default=1, ge=1, le=1000, title="Rounds", description="How often Hyperband repeats its brackets."
    )

    def rung_epochs(self, epochs: int) -> tuple[int, ...]:
        """Return the epochs at which rungs end, ascending. A full training has `epochs`."""
        return rung_epochs(self.min_epochs, self.max_epochs or epochs, self.factor)


class Bracket(NamedTuple):
    """One run of successive halving: `sizes[k]` trials reach rung k, which ends at `epochs[k]`."""

    number: int
    sizes: tuple[int, ...]
    epochs: tuple[int, ...]


def rung_epochs(low: int, high: int, factor: int) -> tuple[int, ...]:
    """Divide `high` by the powers of `factor`, while at least `low`; rounded and ascending."""
    descending = [high]
    power = factor
    while high / power >= low:
        # Not `round`, which rounds halves to the even neighbour: 2.5 to 2, but 3.5 to 4.
        descending.append(math.floor(high / power + 0.5))
        power *= factor
    return tuple(reversed(descending))


def brackets(options: RungOptions, epochs: int, max_trials: int) -> list[Bracket]:
    """Return Hyperband's brackets; in each iteration, those with the shortest first rung come first.

    The last bracket is smaller if `max_trials` does not suffice, but one trial still reaches the last rung.

    Args:
        options: the algorithm's options.
        epochs: how many epochs a full training has.
        max_trials: the most trials in all brackets.

    Source: Li et al., Hyperband, JMLR 18 (2018) 185, algorithm 1.
    """
    rungs = options.rung_epochs(epochs)
    planned: list[Bracket] = []
    left = max_trials
    for number in range(options.iterations * len(rungs)):
        if left <= 0:
            break
        # s in the paper: how often this bracket is halved.
        above = len(rungs) - 1 - number % len(rungs)
        # -(-a // b) rounds the quotient up.
        size = min(-(-len(rungs) * options.factor**above // (above + 1)), left)
        # Even a bracket that `max_trials` makes smaller keeps one trial to its last rung.
        sizes = tuple(max(size // options.factor**k, 1) for k in range(above + 1))
        planned.append(Bracket(number, sizes, rungs[-above - 1 :]))
        left -= size
    return planned


def single_bracket(rungs: Sequence[int], trials: int, factor: int) -> Bracket:
    """Return the bracket that halves `trials` synchronously; ASHA promotes about as many."""
    sizes = tuple(trials // factor**k for k in range(len(rungs)))
    return Bracket(0, sizes, tuple(rungs))


def total_epochs(bracket: Bracket) -> int:
    """Count the epochs that a bracket's trials train in total; promoted trials resume."""
    steps = [b - a for a, b in pairwise((0, *bracket.epochs))]
    return sum(size * step for size, step in zip(bracket.sizes, steps, strict=True))
