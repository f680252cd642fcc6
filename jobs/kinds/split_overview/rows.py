"""Finds the jobs that compare the parts of splits."""

from django.db.models import Q

from jobs.kinds.rows import of_kind
from jobs.kinds.split_overview.facts import SPLIT_OVERVIEW


def overviews_of_split(dataset_version: int, key: str) -> Q:
    """Find the jobs that compare the parts of the split `key` of this dataset version."""
    return of_kind(SPLIT_OVERVIEW, dataset_version=dataset_version, key=key)
