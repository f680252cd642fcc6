"""Builds conditions that find jobs by their kinds' facts and their payloads.

A condition is not bound to a queryset, so it finds deleted jobs as well, or several kinds at once. A kind's
`rows.py` has those for this kind alone.
"""

from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet

from jobs.kinds import kinds_that
from jobs.kinds.base import Facts, Owner


def of_kind(facts: Facts, **payload: int | str | Collection[int]) -> Q:
    """Return the condition that a job has a kind and these payload fields."""
    return Q(kind=facts.name, **{f"payload_json__{name}": value for name, value in payload.items()})


def belonging_to(owner: Owner, keys: Collection[int]) -> Q:
    """Build the condition that a job describes or checks one of these rows."""
    return Q(kind__in=_kinds_of(owner), **{f"payload_json__{owner}__in": keys})


def owner_keys(owner: Owner, jobs: QuerySet[Any]) -> list[int]:
    """Return the primary keys of the rows to which these jobs belong."""
    bodies = jobs.filter(kind__in=_kinds_of(owner)).values_list("payload_json", flat=True)
    return [body[owner] for body in bodies]


def _kinds_of(owner: Owner) -> tuple[str, ...]:
    return kinds_that(lambda facts: facts.belongs_to == owner)


def retraining_trials_of(searches: Collection[int]) -> Q:
    """Build the condition that a job retrains chosen trials from one of these searches."""
    kinds = kinds_that(lambda facts: facts.retrains_chosen)
    return Q(kind__in=kinds, payload_json__search__in=searches)


def that_make_smaller(artifact: str, model: str) -> Q:
    """Build the condition that a job quantizes or casts this file of a registered model."""
    kinds = kinds_that(lambda facts: facts.registered_as == "quantized")
    return Q(kind__in=kinds, payload_json__artifact=artifact, payload_json__model=model)


def that_made_smaller(model: str, mode: str) -> Q:
    """Build the condition that a job quantizes or casts a version of a registered model to a format."""
    kinds = kinds_that(lambda facts: facts.registered_as == "quantized")
    return Q(kind__in=kinds, payload_json__mode=mode, payload_json__model=model)


def retraining_trial(search: int, trial: int) -> Q:
    """Build the condition that a job retrains a trial as an experiment of its own."""
    return Q(payload_json__source={"search": search, "trial": trial})


def that_read_any(dataset_versions: Collection[int]) -> Q:
    """Build the condition that a job, whatever its kind, reads one of these dataset versions."""
    return Q(payload_json__dataset_version__in=dataset_versions)
