"""Counts trials of a search, as its next suggestions and its end depend on them."""

from django.db.models import BigIntegerField, Count, QuerySet

from jobs.models import Job, Trial
from jobs.prepared import Parameter, PreparedQuery

_OF_SEARCH = Parameter("search", BigIntegerField())


def _counted(trials: QuerySet[Trial]) -> QuerySet[Trial, tuple[int, int]]:
    return trials.order_by().values_list("job_id").annotate(Count("pk"))


_WAITING = PreparedQuery(lambda: _counted(Trial.objects.filter(job=_OF_SEARCH).waiting()))
_SUGGESTED = PreparedQuery(lambda: _counted(Trial.objects.filter(job=_OF_SEARCH, source="algorithm")))


def waiting(search: Job) -> int:
    """Return how many queued trials belong to no open attempt."""
    return sum(count for _, count in _WAITING.rows(search=search.pk))


def suggested(search: Job) -> int:
    """Return how many trials its algorithm has suggested, in any state."""
    return sum(count for _, count in _SUGGESTED.rows(search=search.pk))
