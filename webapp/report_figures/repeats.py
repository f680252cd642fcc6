"""Finds blocks that a sequence repeats, such as equal layer blocks in a deep model."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

MAX_PERIOD = 64
"""Maximum number of items of a block."""
MIN_ITEMS = 4
"""Minimum number of items that are worth being collapsed."""


class Repeat(NamedTuple):
    """A block with `period` items that occurs `copies` times in a row from `start`; 1 for other items."""

    start: int
    period: int = 1
    copies: int = 1

    @property
    def items(self) -> int:
        """Return the number of items of all copies."""
        return self.period * self.copies


def find_repeats(items: Sequence[Hashable]) -> list[Repeat]:
    """Split a sequence into repeated blocks and single items.

    The time is proportional to the number of items times `MAX_PERIOD`.
    """
    best = _longest(items)
    runs, at = [], 0
    while at < len(items):
        here = best[at]
        # A longer one may begin inside of a short one, which would cut its first items off.
        ahead = best[at + 1 : at + min(here.items, MAX_PERIOD)]
        if here.items < MIN_ITEMS or any(other.items > here.items for other in ahead):
            here = Repeat(at)
        runs.append(here)
        at += here.items
    return runs


def _longest(items: Sequence[Hashable]) -> list[Repeat]:
    """Return the repeat with the most items at each position; among equals, that with the shortest block."""
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(item, len(numbers)) for item in items]
    best = [Repeat(at) for at in range(len(codes))]
    for period in range(1, min(MAX_PERIOD, len(codes) // 2) + 1):
        equal = 0
        for at in range(len(codes) - period - 1, -1, -1):
            equal = equal + 1 if codes[at] == codes[at + period] else 0
            count = equal // period + 1
            if count > 1 and count * period > best[at].items:
                best[at] = Repeat(at, period, count)
    return best
