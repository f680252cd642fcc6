"""Finds ensembles of chosen trials."""

from collections.abc import Collection

from django.db.models import Q

from jobs.kinds.chosen_ensemble.facts import CHOSEN_ENSEMBLE
from jobs.kinds.rows import of_kind


def ensembles_of(search: int) -> Q:
    """Find the ensembles of chosen trials of this search."""
    return of_kind(CHOSEN_ENSEMBLE, search=search)


def ensembles_of_any(searches: Collection[int]) -> Q:
    """Find the ensembles of trials chosen from these searches."""
    return of_kind(CHOSEN_ENSEMBLE, search__in=searches)
