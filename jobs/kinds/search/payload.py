"""Defines a search's payload; `jobs.messages.training` defines its task."""

from pydantic import Field

from jobs.kinds.base import Payload
from jobs.spec.experiment import ExperimentSpec


class SearchPayload(Payload):
    """The state that a search's algorithm has reached.

    Attributes:
        exhausted: whether the algorithm has no more suggestions.
        answered_empty: the trials' fingerprint when the algorithm had no suggestion.
        first_revision: the revision with which the search began, set when the search is first revised.
        beyond_space: how many trials by the algorithm are outside a narrowed space.
        has_whole_space: whether a search with own code has the whole space that the code declares.
    """

    exhausted: bool = False
    answered_empty: str | None = Field(default=None, alias="nothing_for")
    first_revision: int | None = None
    beyond_space: int | None = None
    has_whole_space: bool = False

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will create. Trials outside a narrowed grid come on top."""
        if spec is None or spec.search is None:
            return 0
        trials = spec.search.trials_planned(spec.fit.epochs)
        if spec.search.info.enumerates_grid:
            return min(spec.search.max_trials, trials + (self.beyond_space or 0))
        return trials
