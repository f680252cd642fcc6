"""Declares a search algorithm's description, which the form, the plan, the engine and the docs read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.spec.base import Frozen
from jobs.spec.sections.rungs import Bracket


@dataclass(frozen=True)
class AlgorithmInfo:
    """One search algorithm.

    Attributes:
        name: the value in `search.algorithm`.
        title: the name for users.
        help: how it chooses, to complete a sentence that begins with "chooses".
        answer: the engine function, as `module:function`; imported at the first request.
        note: added to the title in the form.
        options: the class for `search.options`, whose titles and descriptions label the form's fields. None:
            no options.
        several_objectives: whether it supports several objectives.
        learns_from_earlier: whether it uses the trials from `search.warm_start`.
        needs_results: whether new trials depend on earlier results. If not, they can be created ahead.
        own_process: whether it runs in a separate process, because it imports large libraries or computes
            for long. Others run in the worker's node and answer in milliseconds.
        enumerates_grid: whether it enumerates the grid and ends after the last point.
        brackets: returns the brackets for given options, full training length and number of trials. Trials
            train for a few epochs, are compared, and the best continue from their checkpoints. None: no
            rungs. With rungs, `options` derives from `RungOptions`.
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
        """Return whether trials are compared at rungs."""
        return self.brackets is not None
