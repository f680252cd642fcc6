"""Draws random configurations. Trial n draws from a generator seeded by (search seed, n) and nothing else."""

import random

from jobs.contracts.search_space import Value, sample
from workers.engine.search.history import History

DRAWS = 64
"""How often a known configuration is drawn again before the unseen ones are listed."""


def drawn(history: History) -> dict[str, Value]:
    """Draw the configuration of the next trial, whether it was tried or not."""
    return sample(history.search.space, generator(history, history.next_number))


def unseen(history: History, name: int | str) -> dict[str, Value] | None:
    """Draw a configuration without a trial; None when there is none left, or none could be found.

    Args:
        history: what was tried.
        name: what makes this draw differ from others of the search: a trial's number, say.
    """
    drawing = generator(history, name)
    for _ in range(DRAWS):
        values = sample(history.search.space, drawing)
        if not history.is_seen(values):
            return values
    left = history.unseen()
    return drawing.choice(left) if left else None


def generator(history: History, name: int | str) -> random.Random:
    """Return a generator that repeats itself for the same search seed and name."""
    return random.Random(f"{history.search.seed}/{name}")  # noqa: S311  repeatable, not secret
