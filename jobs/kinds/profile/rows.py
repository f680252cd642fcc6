"""Finds the jobs that describe dataset versions."""

from collections.abc import Collection

from django.db.models import Q

from jobs.kinds.profile.facts import PROFILE
from jobs.kinds.rows import of_kind


def profiles_of(dataset_version: int) -> Q:
    """Find the jobs that describe this dataset version."""
    return of_kind(PROFILE, dataset_version=dataset_version)


def profiles_of_any(dataset_versions: Collection[int]) -> Q:
    """Find the jobs that describe one of these dataset versions."""
    return of_kind(PROFILE, dataset_version__in=dataset_versions)
