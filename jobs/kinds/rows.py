"""Builds the conditions that find the jobs of a kind. Each kind names its own in its `rows.py`.

A condition is not bound to a queryset, so it finds deleted jobs as well, or several kinds at once.
"""

from collections.abc import Collection

from django.db.models import Q

from jobs.kinds.base import Facts


def of_kind(facts: Facts, **payload: int | str | Collection[int]) -> Q:
    """Return the condition that a job has a kind and these payload fields."""
    return Q(kind=facts.name, **{f"payload_json__{name}": value for name, value in payload.items()})


def that_read_any(dataset_versions: Collection[int]) -> Q:
    """Return the condition that a job of any kind reads one of these dataset versions."""
    return Q(payload_json__dataset_version__in=dataset_versions)
