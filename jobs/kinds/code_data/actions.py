"""Loads data by own code, and makes the rows a dataset version."""

from typing import Any

from django.conf import settings

from jobs.actions.data import datasets
from jobs.actions.data.datasets import Roles, StoredUpload
from jobs.actions.runs.kind_actions import KindActions, ResultRefused, register_actions
from jobs.actions.runs.payloads import change_payload
from jobs.errors import Conflict
from jobs.kinds.code_data.facts import CODE_DATA
from jobs.kinds.code_data.payload import CodeDataPayload, CodeDataResult, CodeDataTask
from jobs.models import Attempt, Dataset, DatasetVersion, Job
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.dialect import ReadOptions
from jobs.spec.data.file_limits import FileLimits


class CodeDataActions(KindActions[CodeDataPayload, CodeDataResult]):
    """A completed job has made a dataset version; one that ends in another way has changed nothing."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> CodeDataTask:
        """Return the task: the function, and the limits under which its file will be profiled."""
        payload = attempt.job.payload_as(CodeDataPayload)
        limits = FileLimits(
            expanded_bytes=settings.TRAINYARD_MAX_EXPANDED_BYTES,
            table_bytes=settings.TRAINYARD_MAX_TABLE_BYTES,
        )
        return CodeDataTask(**common, entry=payload.entry, prediction=payload.prediction, limits=limits)

    def on_done(self, job: Job, result: CodeDataResult) -> None:
        """Make the version, which a job outside the sandbox reads like an upload."""
        change_payload(job, made=_make_version(job, result).pk)


def _make_version(job: Job, result: CodeDataResult) -> DatasetVersion:
    """Create a dataset version from a job's file. The file is read like an upload.

    Raises:
        ResultRefused: there is no file, the data set's name cannot be used any more, or the project's disk
            quota is reached.
    """
    payload = job.payload_as(CodeDataPayload)
    row = job.artifacts.filter(role="loaded").select_related("artifact").order_by("-pk").first()
    if row is None or job.project is None or job.created_by is None:
        raise ResultRefused({"code": "bad_result", "message": "the code left no file with its rows"})
    stored = StoredUpload(
        row.artifact,
        result.source,
        f"load_data.{result.source}",
        code={"digest": payload.code, "entry": payload.entry, "job": job.pk},
    )
    columns = (ColumnRequest(name=result.part, role="split"),) if result.part is not None else ()
    roles = Roles(target=result.target, task=payload.prediction, columns=columns)
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


register_actions(CODE_DATA.name, CodeDataActions())
