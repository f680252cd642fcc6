"""Finds the jobs that check the gates of promotion requests."""

from collections.abc import Collection

from django.db.models import Q

from jobs.kinds.gate.facts import GATE
from jobs.kinds.rows import of_kind


def gates_of_any(promotions: Collection[int]) -> Q:
    """Find the gates of one of these promotion requests."""
    return of_kind(GATE, promotion__in=promotions)
