"""Draws random configurations. Trial n's generator is seeded only by the search's seed and n."""

import random

from jobs.spec.space.search_space import Value, sample
from workers.engine.search.history import History

DRAWS = 64
"""Number of draws that may give known configurations before all unseen ones are listed."""


def draw_any(history: History) -> dict[str, Value]:
    """Draw the next trial's configuration, which may have been tried before."""
    return sample(history.search.space, generator(history, history.next_number))


def first_values(history: History) -> dict[str, Value] | None:
    """Return the configuration for a search's first trial: defaults where there are any, other values drawn.

    Returns None if the algorithm has to choose: for later trials, without any default, and for a grid, which
    is tried in its order.
    """
    search = history.search
    if history.own or search.info.enumerates_grid:
        return None
    defaults = {parameter.name: getattr(parameter, "default", None) for parameter in search.space}
    if all(default is None for default in defaults.values()):
        return None
    drawing = generator(history, history.next_number)
    values: dict[str, Value] = {}
    for parameter in search.space:
        if parameter.is_active(values):
            default = defaults[parameter.name]
            values[parameter.name] = parameter.sample(drawing) if default is None else default
    return values


def draw_unseen(history: History, name: int | str) -> dict[str, Value] | None:
    """Draw a configuration without a trial; None if there is none left, or none was found.

    Args:
        history: trials so far.
        name: distinguishes this draw from others in the search, for example a trial's number.
    """
    drawing = generator(history, name)
    for _ in range(DRAWS):
        values = sample(history.search.space, drawing)
        if not history.is_seen(values):
            return values
    left = history.unseen()
    return drawing.choice(left) if left else None


def generator(history: History, name: int | str) -> random.Random:
    """Return a random generator, equal for the same search seed and name."""
    return random.Random(f"{history.search.seed}/{name}")  # noqa: S311  repeatable, not secret
