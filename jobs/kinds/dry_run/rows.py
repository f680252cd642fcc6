"""Finds dry runs."""

from django.db.models import Q

from jobs.kinds.dry_run.facts import DRY_RUN
from jobs.kinds.rows import of_kind


def dry_runs_of(key: str) -> Q:
    """Find the dry runs with this key."""
    return of_kind(DRY_RUN, key=key)


def all_dry_runs() -> Q:
    """Find all dry runs."""
    return of_kind(DRY_RUN)
