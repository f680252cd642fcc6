"""Describes a search algorithm: the one source for form, checks, plan, scheduling, engine and docs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.contracts.base import Frozen
from jobs.contracts.rungs import Bracket


@dataclass(frozen=True)
class AlgorithmInfo:
    """One search algorithm.

    Attributes:
        name: as a spec names it.
        title: its name for people.
        help: how it chooses, as the rest of a sentence that begins with "chooses".
        answer: the engine function, as `module:function`; nothing is imported before it is asked.
        note: what the form adds to the title.
        options: the class of `search.options`; a field's title and description label it in the form. None: it
            takes no options.
        several_objectives: whether it can weigh several objectives; others need one order among trials.
        learns_from_earlier: whether it uses the trials of `search.warm_start`.
        needs_results: whether its next new trials depend on what became of others; if not, they can be made
            ahead.
        own_process: whether it runs in a process of its own, since it imports large libraries or computes for
            long. Others answer inside the worker's node, in milliseconds.
        enumerates_grid: whether it goes through the points of the grid, so that it is over after the last.
        brackets: plans rungs, from options, the epochs of a whole training and the number of trials. Trials
            train a little, are compared, and only the best continue from their checkpoints. None: no rungs.
            With rungs, `options` derives from `RungOptions`.
    """

    name: str
    title: str
    help: str
    answer: str
    note: str = ""
    options: type[Frozen] | None = None
    several_objectives: bool = False
    learns_from_earlier: bool = False
    needs_results: bool = True
    own_process: bool = False
    enumerates_grid: bool = False
    brackets: Callable[[Any, int, int], list[Bracket]] | None = None

    @property
    def label(self) -> str:
        """Return the title with its note."""
        return f"{self.title} ({self.note})" if self.note else self.title

    @property
    def has_rungs(self) -> bool:
        """Say whether trials are compared at rungs."""
        return self.brackets is not None
