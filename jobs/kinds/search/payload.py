"""Defines a search's payload; `jobs.messages.training` defines its task."""

from pydantic import Field

from jobs.kinds.base import Payload
from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import Parameter, Space, Value, Values


class FoundHyperparameter(Frozen):
    """A hyperparameter that a trial's code asked for and that the space lacked.

    Attributes:
        name: of the hyperparameter.
        trial: the number of the first trial that asked for it.
        row: the hyperparameter as it is searched from then on; None if it is not.
        default: the code's default, which trials have that began before.
        in_revision: whether the search's revision has the row, since a user has changed the search.
        refused: why it is not searched; empty if it is.
    """

    name: str
    trial: int
    row: Parameter | None = None
    default: Value | None = None
    in_revision: bool = False
    refused: str = ""


class SearchPayload(Payload):
    """The state that a search's algorithm has reached.

    Attributes:
        exhausted: whether the algorithm has no more suggestions.
        answered_empty: the trials' fingerprint when the algorithm had no suggestion.
        first_revision: the revision with which the search began, set when the search is first revised.
        beyond_space: how many trials by the algorithm are outside a narrowed space.
        has_whole_space: whether a search with own code has the whole space that the code declares.
        found: hyperparameters that trials have found, in the order in which they were added.
    """

    exhausted: bool = False
    answered_empty: str | None = Field(default=None, alias="nothing_for")
    first_revision: int | None = None
    beyond_space: int | None = None
    has_whole_space: bool = False
    found: tuple[FoundHyperparameter, ...] = ()

    def found_rows(self) -> Space:
        """Return the hyperparameters that trials have added to the space."""
        return tuple(one.row for one in self.found if one.row is not None)

    def search_spec(self, spec: ExperimentSpec | None) -> SearchSpec | None:
        """Return the search of the revision, with the hyperparameters that trials have added to its space."""
        search = super().search_spec(spec)
        rows = tuple(one.row for one in self.found if one.row is not None and not one.in_revision)
        return search if search is None or not rows else with_rows(search, rows, self)

    def whole_values(self, values: Values) -> dict[str, Value]:
        """Return a trial's values with the defaults of hyperparameters that were found after it began."""
        whole = dict(values)
        for one in self.found:
            if one.row is None or one.default is None or one.name in whole:
                continue
            if one.row.is_active(whole):
                whole[one.name] = one.default
        return whole

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will create. Trials outside a narrowed grid come on top."""
        search = self.search_spec(spec)
        if spec is None or search is None:
            return 0
        trials = search.trials_planned(spec.fit.epochs)
        if search.info.enumerates_grid:
            return min(search.max_trials, trials + (self.beyond_space or 0))
        return trials


def with_rows(search: SearchSpec, rows: Space, payload: SearchPayload) -> SearchSpec:
    """Return a search whose space has further rows. It is not validated.

    Args:
        search: the search.
        rows: hyperparameters that are known by now.
        payload: has their defaults, with which the first configurations are completed.
    """
    fields = {
        "space": (*search.space, *rows),
        "start_with": tuple(payload.whole_values(values) for values in search.start_with),
    }
    # A copy would have the cached size of the smaller grid.
    return SearchSpec.model_construct(search.model_fields_set | fields.keys(), **{**dict(search), **fields})
