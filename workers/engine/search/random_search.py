"""Random search. Trial n draws from a generator seeded by (search seed, n) and nothing else."""

import random
from itertools import islice

from jobs.spec.search_space import (
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    grid,
    grid_size,
    sample,
)
from workers.engine.search.request import Key, SuggestRequest, key

DRAWS = 64
"""How often a known configuration is drawn again before the unseen ones are listed."""

LISTED = 10_000
"""Spaces of up to this many configurations are listed to find an unseen one."""


def suggest(request: SuggestRequest) -> list[dict[str, Value]]:
    """Draw `request.count` configurations, none known while the space has others."""
    seen = request.seen()
    drawn = []
    first = request.next_number()
    for number in range(first, first + request.count):
        values = unseen(request.search.space, seen, request.search.seed, number)
        seen.add(key(values))
        drawn.append(values)
    return drawn


def unseen(space: Space, seen: set[Key], seed: int, number: int | str) -> dict[str, Value]:
    """Draw the configuration of trial `number`: one not in `seen`, or any once the space is used up."""
    generator = random.Random(f"{seed}/{number}")  # noqa: S311  repeatable, not secret
    for _ in range(DRAWS):
        values = sample(space, generator)
        if key(values) not in seen:
            return values
    left = [v for v in _listed(space) if key(v) not in seen]
    return generator.choice(left) if left else sample(space, generator)


def _listed(space: Space) -> list[dict[str, Value]]:
    """List all configurations of a small space; nothing for one that is large or not countable."""
    if not all(_is_countable(parameter) for parameter in space) or grid_size(space, LISTED + 1) > LISTED:
        return []
    return list(islice(grid(space), LISTED))


def _is_countable(parameter: Parameter) -> bool:
    """Say whether the grid of this parameter holds every value that sampling may give."""
    if isinstance(parameter, FloatParameter):
        return parameter.step is not None or parameter.min == parameter.max
    if isinstance(parameter, IntParameter):
        return parameter.step is not None or parameter.sampling == "linear"
    return True
