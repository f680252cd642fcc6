"""Finds dry builds."""

from django.db.models import Q

from jobs.kinds.dry_build.facts import DRY_BUILD
from jobs.kinds.rows import of_kind


def dry_builds_of(key: str) -> Q:
    """Find the dry builds with this key."""
    return of_kind(DRY_BUILD, key=key)
