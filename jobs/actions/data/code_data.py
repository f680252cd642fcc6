"""Requests that own code loads data, which become a dataset version."""

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.data import datasets
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.actions.storage.deletions import slug_taken
from jobs.errors import BadInput
from jobs.models import CodeVersion, Dataset, Job, User
from jobs.queries.data import code_data
from jobs.spec.problems import Problem

PRIORITY = 80
"""A person waits for the data."""
MAX_RESTARTS = 2


def request_loading(
    version: CodeVersion,
    *,
    dataset: str,
    entry: str = "load_data",
    task: str = "",
    by: User,
    again: bool = False,
) -> Job:
    """Queue a job that loads data, or return the open one that loads the same.

    Args:
        version: the code.
        dataset: the data set's slug.
        entry: the function; after a path and a colon if several files have one of this name.
        task: the kind of prediction; empty infers it from the targets.
        by: the acting user.
        again: whether to load again after an earlier job has ended.

    Raises:
        Forbidden: `by` may not run code in the project.
        BadInput: a field is not valid, the code has no such function, or the name of the data set cannot be
            used.
        QuotaReached: the project has too many unfinished jobs.
    """
    slug = datasets.check_slug(dataset, "/dataset")
    payload = code_data.load_payload(version, dataset=slug, entry=entry, task=task)
    project = version.project
    access.require(by, project, access.Action.RUN_CODE)
    if (problem := code_data.problem_of_entry(version, payload.entry)) is not None:
        raise BadInput(problem, [Problem("/entry", problem)])
    if (taken := _why_taken(version, payload.dataset)) is not None:
        raise BadInput(taken, [Problem("/dataset", taken)])
    if (earlier_job := code_data.newest_equal_job(version, payload, ended=not again)) is not None:
        return earlier_job
    with transaction.atomic():
        # Locked, so that the second of two simultaneous requests finds the first one's job.
        quotas.lock_project(project)
        if (earlier_job := code_data.newest_equal_job(version, payload, ended=not again)) is not None:
            return earlier_job
        quotas.require_room_for_job(project)
        job = submit.queue(
            payload,
            project=project,
            title=f"Load data: {payload.dataset}",
            priority=PRIORITY,
            max_restarts=MAX_RESTARTS,
            created_by=by,
        )
        audit.record("code.load_data", f"job:{job.pk}", by=by, project=project, code=version.digest)
    return job


def _why_taken(version: CodeVersion, slug: str) -> str | None:
    """Return why the project's data set with this name cannot have further versions, or None if it can."""
    row = Dataset.everything.filter(project=version.project, slug=slug).exclude(deletion=None).first()
    return slug_taken(f"A data set with the slug {slug!r}", row) if row is not None else None
