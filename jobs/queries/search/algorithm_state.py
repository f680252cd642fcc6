"""Reads the state that a search keeps for its algorithm."""

from jobs.kinds.search.payload import SearchPayload
from jobs.models import Job
from jobs.spec.sections.space_growth import FoundHyperparameter

AlgorithmState = SearchPayload
"""The state that a search keeps for its algorithm."""


def algorithm_state(root: Job) -> AlgorithmState:
    """Return the algorithm's state in a search.

    Raises:
        Conflict: the job is not an experiment's search.
    """
    return root.payload_as(SearchPayload)


def first_revision(root: Job) -> int | None:
    """Return the revision with which a search began. None for other jobs and searches never revised."""
    payload = root.payload
    return payload.first_revision if isinstance(payload, SearchPayload) else None


def found_hyperparameters(root: Job) -> tuple[FoundHyperparameter, ...]:
    """Return the hyperparameters that a search's trials have found. Empty for other jobs."""
    payload = root.payload
    return payload.found if isinstance(payload, SearchPayload) else ()
