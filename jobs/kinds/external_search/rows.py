"""Finds the searches whose trials run in external scripts."""

from django.db.models import Q

from jobs.kinds.external_search.facts import EXTERNAL_SEARCH
from jobs.kinds.rows import of_kind


def external_searches() -> Q:
    """Find all external searches."""
    return of_kind(EXTERNAL_SEARCH)
