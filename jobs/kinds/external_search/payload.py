"""Defines an external search's payload."""

from pydantic import Field

from jobs.kinds.base import Payload
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.external_search import ChiefAddress, ExternalSearch
from jobs.spec.sections.search import Objective, SearchSpec


class ExternalSearchPayload(Payload):
    """A search whose trials run in scripts outside Trainyard.

    Attributes:
        search: its settings, with the space reported so far.
        address: its newest chief's address; None before the first.
        exhausted: whether the algorithm has no more suggestions.
    """

    search: ExternalSearch = Field(alias="outside")
    address: ChiefAddress | None = None
    exhausted: bool = False

    def search_spec(self, spec: ExperimentSpec | None) -> SearchSpec:
        """Return the search spec that pages and queries read."""
        del spec
        return self.search.search_spec()

    def objective(self, spec: ExperimentSpec | None) -> Objective:
        """Return the objective that the scripts report."""
        del spec
        return self.search.objective()

    def trials_planned(self, spec: ExperimentSpec | None) -> int:
        """Return how many trials the algorithm will create."""
        del spec
        return self.search.planned()
