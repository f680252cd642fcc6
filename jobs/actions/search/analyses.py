"""Claims and stores a search's analyses: one process at a time computes each, under a fencing token."""

from typing import Any

from django.db.models import F, Q

from jobs import clock
from jobs.models import Analysis, Job

# Longer than the time limit of the process that computes an analysis.
LEASE_SECONDS = 180.0


def claim_analysis(search: Job, kind: Analysis.Kind) -> Analysis | None:
    """Claim an analysis for computing it again. Return None while another process holds the lease."""
    Analysis.objects.get_or_create(job=search, kind=kind)
    free = Analysis.objects.filter(Q(until=None) | Q(until__lt=clock.now()), job=search, kind=kind)
    if not free.update(until=clock.seconds_from_now(LEASE_SECONDS), fence=F("fence") + 1):
        return None
    return Analysis.objects.get(job=search, kind=kind)


def finish_analysis(analysis: Analysis, *, trials: int, result: dict[str, Any]) -> None:
    """Store a result. A result with an old fencing token is dropped."""
    _claimed_rows(analysis).update(until=None, trials=trials, result=result, error="", failed_at=0)


def fail_analysis(analysis: Analysis, *, trials: int, error: str) -> None:
    """Store the error and keep the previous result. The analysis is tried again with more trials."""
    _claimed_rows(analysis).update(until=None, failed_at=trials, error=error[:500])


def _claimed_rows(analysis: Analysis) -> Any:
    return Analysis.objects.filter(pk=analysis.pk, fence=analysis.fence)
