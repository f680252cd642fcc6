"""Analyses of a search: one process at a time computes one anew, under a fence."""

from typing import Any

from django.db.models import F, Q

from jobs import clock
from jobs.models import Analysis, Job

LEASE_SECONDS = 180.0


def claim(search: Job, kind: Analysis.Kind) -> Analysis | None:
    """Take the right to compute an analysis anew; None while somebody else has it."""
    Analysis.objects.get_or_create(job=search, kind=kind)
    rows = Analysis.objects.filter(Q(until=None) | Q(until__lt=clock.now()), job=search, kind=kind)
    if not rows.update(until=clock.seconds_from_now(LEASE_SECONDS), fence=F("fence") + 1):
        return None
    return Analysis.objects.get(job=search, kind=kind)


def finish(analysis: Analysis, *, trials: int, result: dict[str, Any]) -> None:
    """Keep a result; one that comes after its lease was given to another is dropped."""
    _mine(analysis).update(until=None, trials=trials, result=result, error="", failed_at=0)


def fail(analysis: Analysis, *, trials: int, error: str) -> None:
    """Keep why there is no result of so many trials; the one before stays. It is tried again with more."""
    _mine(analysis).update(until=None, failed_at=trials, error=error[:500])


def _mine(analysis: Analysis) -> Any:
    return Analysis.objects.filter(pk=analysis.pk, fence=analysis.fence)
