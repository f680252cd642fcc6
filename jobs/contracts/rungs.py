"""Rungs and brackets: at which epochs trials are compared, and how many of them get how far.

Pure arithmetic, so that the plan on a page and the algorithms agree.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pydantic import Field

from jobs.contracts.base import Frozen


class RungOptions(Frozen):
    """How trials are halved: one in `factor` goes on from a rung; `max_epochs` defaults to `fit.epochs`."""

    factor: int = Field(
        default=3, ge=2, le=10, title="Factor", description="One trial in so many goes on from a rung."
    )
    min_epochs: int = Field(default=1, ge=1, le=100_000, title="First rung after", description="Epochs.")
    max_epochs: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        title="Last rung after",
        description="Epochs; those of the training if left open.",
    )
    iterations: int = Field(
        default=1, ge=1, le=1000, title="Rounds", description="How often Hyperband goes through its brackets."
    )

    def ladder(self, epochs: int) -> tuple[int, ...]:
        """List the epochs at which rungs end, ascending; the last is the whole training of `epochs`."""
        return ladder(self.min_epochs, self.max_epochs or epochs, self.factor)


class Bracket(NamedTuple):
    """One successive halving: `sizes[k]` trials reach rung k, which ends at `epochs[k]`."""

    number: int
    sizes: tuple[int, ...]
    epochs: tuple[int, ...]


def ladder(low: int, high: int, factor: int) -> tuple[int, ...]:
    """List `high` and what is left of it under division by `factor`, down to `low`, ascending and rounded."""
    found = [high]
    power = factor
    while high / power >= low:
        found.append(math.floor(high / power + 0.5))
        power *= factor
    return tuple(reversed(found))


def brackets(options: RungOptions, epochs: int, max_trials: int) -> list[Bracket]:
    """List Hyperband's brackets, the most thrifty first in each iteration.

    Where `max_trials` ends, a bracket is cut short and no other follows. Of one that is cut, still one
    trial reaches the end.

    Source: Li et al., Hyperband, JMLR 18 (2018) 185, algorithm 1.
    """
    rungs = options.ladder(epochs)
    found: list[Bracket] = []
    left = max_trials
    for number in range(options.iterations * len(rungs)):
        if left <= 0:
            break
        above = len(rungs) - 1 - number % len(rungs)  # s in the paper: how often this bracket is halved
        size = min(-(-len(rungs) * options.factor**above // (above + 1)), left)
        sizes = tuple(max(size // options.factor**k, 1) for k in range(above + 1))
        found.append(Bracket(number, sizes, rungs[-above - 1 :]))
        left -= size
    return found


def halved(rungs: Sequence[int], trials: int, factor: int) -> Bracket:
    """Return what successive halving of `trials` comes to; asynchronous halving promotes about as many."""
    sizes = tuple(trials // factor**k for k in range(len(rungs)))
    return Bracket(0, sizes, tuple(rungs))


def epochs_of(bracket: Bracket) -> int:
    """Return how many epochs a bracket trains; what goes on from a rung does not begin anew."""
    steps = [b - a for a, b in pairwise((0, *bracket.epochs))]
    return sum(size * step for size, step in zip(bracket.sizes, steps, strict=True))
