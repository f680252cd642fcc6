"""Finds the jobs that compare a split's parts."""

from django.db.models import Q

from jobs.kinds.rows import of_kind
from jobs.kinds.split_overview.facts import SPLIT_OVERVIEW


def overviews_of_split(dataset_version: int, key: str) -> Q:
    """Find the jobs that compare the parts of this dataset version by the split `key`."""
    return of_kind(SPLIT_OVERVIEW, dataset_version=dataset_version, key=key)
