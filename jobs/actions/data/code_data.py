"""Lets own code load data: queues the job, and makes a version of a data set of its rows."""

from typing import Any

from django.db import transaction
from pydantic import ValidationError

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.data import datasets
from jobs.actions.data.datasets import Roles, StoredUpload
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.actions.runs.kind_actions import ResultRefused
from jobs.actions.storage.deletions import slug_taken
from jobs.errors import BadInput, Conflict
from jobs.kinds.code_data.payload import CodeDataPayload, CodeDataResult
from jobs.models import CodeVersion, Dataset, DatasetVersion, Job, User
from jobs.queries.data import code_data
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.problems import Problem, problems

PRIORITY = 80
"""A person waits for the data."""
MAX_RESTARTS = 2


def payload_of(
    version: CodeVersion, *, dataset: str, entry: str = "load_data", task: str = ""
) -> CodeDataPayload:
    """Return the request to load data, from the texts of a form or of REST.

    Raises:
        BadInput: a field is not valid.
    """
    slug = datasets.check_slug(dataset, "/dataset")
    sent: dict[str, Any] = {
        "code": version.digest,
        "entry": entry,
        "dataset": slug,
        "prediction": task or None,
    }
    try:
        return CodeDataPayload.model_validate(sent)
    except ValidationError as error:
        field_problems = problems(error, sent)
        renamed = [
            Problem(problem.pointer.replace("/prediction", "/task"), problem.message)
            for problem in field_problems
        ]
        raise BadInput(field_problems[0].message, renamed) from error


def request_loading(version: CodeVersion, payload: CodeDataPayload, *, by: User, again: bool = False) -> Job:
    """Queue the loading of data and return its job. An open job that loads the same is returned instead.

    Args:
        version: the code.
        payload: the function and the data set.
        by: the acting user.
        again: whether to load again after an earlier job has ended.

    Raises:
        Forbidden: `by` may not run code in the project.
        BadInput: the code has no such function, or the name of the data set cannot be used.
        QuotaReached: the project has too many unfinished jobs.
    """
    project = version.project
    access.require(by, project, access.Action.RUN_CODE)
    if (problem := code_data.problem_of_entry(version, payload.entry)) is not None:
        raise BadInput(problem, [Problem("/entry", problem)])
    if (taken := _why_taken(version, payload.dataset)) is not None:
        raise BadInput(taken, [Problem("/dataset", taken)])
    if (earlier_job := code_data.newest_equal_job(version, payload, ended=not again)) is not None:
        return earlier_job
    with transaction.atomic():
        # Locked, so that of two requests at the same time the second finds the job of the first.
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
    """Return why the project cannot have further versions of a data set of this name, or None if it can."""
    row = Dataset.everything.filter(project=version.project, slug=slug).exclude(deletion=None).first()
    return slug_taken(f"A data set with the slug {slug!r}", row) if row is not None else None


def keep_result(job: Job, payload: CodeDataPayload, result: CodeDataResult) -> DatasetVersion:
    """Create a dataset version from the file of a job. The file is read like an upload.

    Raises:
        ResultRefused: there is no file, the name of the data set cannot be used any more, or the disk quota
            of the project is reached.
    """
    row = job.artifacts.filter(role="loaded").select_related("artifact").order_by("-pk").first()
    if row is None or job.project is None or job.created_by is None:
        raise ResultRefused({"code": "bad_result", "message": "the code left no file with its rows"})
    stored = StoredUpload(
        row.artifact,
        result.source,
        f"load_data.{result.source}",
        code={"digest": payload.code, "entry": payload.entry, "job": job.pk},
    )
    named = [ColumnRequest(name=result.part, role="split")] if result.part is not None else []
    roles = Roles(target=result.target, task=payload.prediction, columns=tuple(named))
    by = job.created_by
    dataset = Dataset.objects.filter(project=job.project, slug=payload.dataset).first()
    try:
        if dataset is not None:
            return datasets.new_version(dataset, stored, roles, ReadOptions(), by=by)
        return datasets.create_with(
            job.project,
            slug=payload.dataset,
            by=by,
            name=payload.dataset,
            description="",
            first=lambda dataset_row: datasets.new_version(dataset_row, stored, roles, ReadOptions(), by=by),
        )
    except Conflict as error:
        raise ResultRefused({"code": error.code, "message": error.message}) from error
