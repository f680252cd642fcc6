"""Defines a search's payload; `jobs.messages.training` defines its task."""

from pydantic import Field

from jobs.kinds.base import Payload
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.evaluation import Turn
from jobs.spec.sections.search import SearchSpec
from jobs.spec.sections.space_growth import FoundHyperparameter, whole_values, with_rows
from jobs.spec.space.search_space import Space, Value, Values


class SearchPayload(Payload):
    """The state that a search's algorithm has reached.

    Attributes:
        exhausted: whether the algorithm has no more suggestions.
        answered_empty: the trials' fingerprint when the algorithm had no suggestion.
        first_revision: the revision with which the search began, set when the search is first revised.
        beyond_space: how many trials by the algorithm are outside a narrowed space.
        has_whole_space: whether a search with own code has the whole space that the code declares.
        found: hyperparameters that trials have found, in the order in which they were added.
        baselines: the constant prediction's scores, one for each part of the evaluation that was measured.
    """

    exhausted: bool = False
    answered_empty: str | None = Field(default=None, alias="nothing_for")
    first_revision: int | None = None
    beyond_space: int | None = None
    has_whole_space: bool = False
    found: tuple[FoundHyperparameter, ...] = ()
    baselines: tuple[Baseline, ...] = ()

    def baseline_of(self, turn: Turn) -> Baseline | None:
        """Return the constant prediction's score in one part of the evaluation; None if it is not known."""
        # Without folds, all repeats have the same rows.
        part = Turn(turn.repeat if turn.fold is not None else 1, turn.fold)
        return next((one for one in self.baselines if (one.repeat, one.fold) == part), None)

    def found_rows(self) -> Space:
        """Return the hyperparameters that trials have added to the space."""
        return tuple(one.row for one in self.found if one.row is not None)

    def search_spec(self, spec: ExperimentSpec | None) -> SearchSpec | None:
        """Return the search of the revision, with the hyperparameters that trials have added to its space."""
        search = super().search_spec(spec)
        rows = tuple(one.row for one in self.found if one.row is not None and not one.in_revision)
        return search if search is None or not rows else with_rows(search, rows, self.found)

    def whole_values(self, values: Values) -> dict[str, Value]:
        """Return a trial's values with the defaults of hyperparameters that were found after it began."""
        return whole_values(self.found, values)

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will create. Trials outside a narrowed grid come on top."""
        search = self.search_spec(spec)
        if spec is None or search is None:
            return 0
        trials = search.trials_planned(spec.fit.epochs)
        if search.info.enumerates_grid:
            return min(search.max_trials, trials + (self.beyond_space or 0))
        return trials
