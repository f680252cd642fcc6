"""Finds the failed jobs of a person that still need them.

A failure is settled once a later job did the same, or once the row for which the job ran was replaced or
decided.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from jobs import access
from jobs.kinds import kinds_that
from jobs.kinds.base import Owner, Payload
from jobs.models import CodeVersion, DatasetVersion, Job, ModelVersion, Project, PromotionRequest, User
from jobs.states import JobState

MAX_LOOKED_AT = 100
"""The newest failures that are examined."""

MAX_LATER = 1000
"""The later jobs without an experiment with which these are compared."""

STATE_FIELDS = frozenset(Payload.model_fields) - {"dataset_version"}
"""Fields of a payload with the progress of the job, not with its input."""


def open_failures(user: User, *, since: datetime, limit: int, project: Project | None = None) -> list[Job]:
    """Return the root jobs of `user` that failed after `since` and still need something, newest first."""
    failed = access.visible_jobs(user).roots().filter(state=JobState.FAILED, created_by=user)
    failed = failed.filter(finished__gt=since, project__isnull=False).exclude(experiment__archived=True)
    if project is not None:
        failed = failed.filter(project=project)
    failed = failed.exclude(Exists(_later_of_experiment(user)))
    newest = failed.select_related("project", "created_by", "experiment", "revision").order_by("-finished")
    jobs = list(newest[:MAX_LOOKED_AT])
    alone = [job for job in jobs if job.experiment_id is None]
    settled = _repeated(alone, user) | _without_owner(alone) | _with_newer_code(alone)
    return [job for job in jobs if job.pk not in settled][:limit]


def _counts(user: User) -> Q:
    # A later failure of the person is in the list itself; one of another user repairs nothing.
    return ~Q(state=JobState.FAILED) | Q(created_by=user)


def _later_of_experiment(user: User) -> QuerySet[Job]:
    """Return the later jobs that did the same as the failed job in its experiment."""
    later = Job.objects.filter(
        _counts(user), parent=None, experiment=OuterRef("experiment"), pk__gt=OuterRef("pk")
    )
    # An experiment's own jobs may change their kind by a revision; ensembles are made beside them.
    beside = kinds_that(lambda facts: facts.retrains_chosen)
    return later.filter(Q(kind=OuterRef("kind")) | ~Q(kind__in=beside)).exclude(
        Q(kind__in=beside) & ~Q(kind=OuterRef("kind"))
    )


def _repeated(failed: Collection[Job], user: User) -> set[int]:
    """Return those of which a later job has the same kind and input."""
    if not failed:
        return set()
    newest: dict[tuple[Any, ...], int] = defaultdict(int)
    later = Job.objects.filter(_counts(user), parent=None, experiment=None, pk__gt=min(j.pk for j in failed))
    later = later.filter(kind__in={j.kind for j in failed}, project__in={j.project_id for j in failed})
    fields = ("pk", "kind", "project_id", "payload_json")
    for pk, *same in later.order_by("-pk").values_list(*fields)[:MAX_LATER]:
        newest[_identity(*same)] = max(newest[_identity(*same)], pk)
    return {j.pk for j in failed if newest[_identity(j.kind, j.project_id, j.payload_json)] > j.pk}


def _identity(kind: str, project: int | None, payload: dict[str, Any]) -> tuple[Any, ...]:
    work = {name: value for name, value in payload.items() if name not in STATE_FIELDS}
    return kind, project, json.dumps(work, sort_keys=True)


def _without_owner(failed: Collection[Job]) -> set[int]:
    """Return those that describe or check a row that was replaced, made ready, decided or deleted."""
    checks: dict[Owner, Callable[[Collection[int]], set[int]]] = {
        "dataset_version": _newest_datasets,
        "version": _newest_versions,
        "promotion": _failed_promotions,
    }
    settled = set()
    for owner, open_among in checks.items():
        jobs = {j.pk: getattr(j.payload, owner) for j in failed if j.facts.belongs_to == owner}
        still_open = open_among(set(jobs.values())) if jobs else set()
        settled |= {pk for pk, row in jobs.items() if row not in still_open}
    return settled | _read_at_last(failed)


def _newest_datasets(rows: Collection[int]) -> set[int]:
    later = DatasetVersion.objects.filter(dataset=OuterRef("dataset"), number__gt=OuterRef("number"))
    versions = DatasetVersion.objects.filter(pk__in=rows, dataset__deletion=None)
    return set(versions.exclude(Exists(later)).values_list("pk", flat=True))


def _read_at_last(failed: Iterable[Job]) -> set[int]:
    """Return the profiles whose versions are no longer failed: their file was fetched or read again."""
    # The version has the result of its profile.
    described = [j for j in failed if j.facts.belongs_to == "dataset_version" and not j.facts.keeps_result]
    profiles = {j.pk: j.payload.dataset_version for j in described}
    states = DatasetVersion.objects.filter(pk__in=set(profiles.values()))
    bad = set(states.filter(state=DatasetVersion.State.FAILED).values_list("pk", flat=True))
    return {pk for pk, version in profiles.items() if version not in bad}


def _newest_versions(rows: Collection[int]) -> set[int]:
    later = ModelVersion.objects.filter(model=OuterRef("model"), number__gt=OuterRef("number"))
    versions = ModelVersion.objects.filter(pk__in=rows, model__deletion=None)
    invalid = versions.filter(state=ModelVersion.State.INVALID)
    return set(invalid.exclude(Exists(later)).values_list("pk", flat=True))


def _failed_promotions(rows: Collection[int]) -> set[int]:
    later = PromotionRequest.objects.filter(
        model=OuterRef("model"), stage=OuterRef("stage"), pk__gt=OuterRef("pk")
    )
    failed = PromotionRequest.objects.filter(pk__in=rows, state=PromotionRequest.State.FAILED)
    return set(failed.exclude(Exists(later)).values_list("pk", flat=True))


def _with_newer_code(failed: Collection[Job]) -> set[int]:
    """Return those that execute a version of code that has a newer one."""
    digests = {j.pk: digest for j in failed if not j.facts.belongs_to and (digest := j.payload.code_digest())}
    if not digests:
        return set()
    later = CodeVersion.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), pk__gt=OuterRef("pk")
    )
    rows = CodeVersion.objects.filter(
        project__in={j.project_id for j in failed}, digest__in=set(digests.values())
    )
    newest = set(rows.exclude(Exists(later)).values_list("project_id", "digest"))
    return {j.pk for j in failed if j.pk in digests and (j.project_id, digests[j.pk]) not in newest}
