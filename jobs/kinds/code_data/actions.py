"""Implements the loading of data by own code: its rows become a version of a data set."""

from typing import Any

from django.conf import settings

from jobs.actions.data import code_data
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.payloads import change_payload
from jobs.kinds.code_data.facts import CODE_DATA
from jobs.kinds.code_data.payload import CodeDataPayload, CodeDataResult, CodeDataTask
from jobs.models import Attempt, Job
from jobs.spec.data.file_limits import FileLimits


class CodeDataActions(KindActions[CodeDataPayload, CodeDataResult]):
    """A completed job has made a version of a data set; one that ends in another way has changed nothing."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> CodeDataTask:
        """Return the task: the function, and the limits that the profile of its file will have."""
        payload = attempt.job.payload_as(CodeDataPayload)
        limits = FileLimits(
            expanded_bytes=settings.TRAINYARD_MAX_EXPANDED_BYTES,
            table_bytes=settings.TRAINYARD_MAX_TABLE_BYTES,
        )
        return CodeDataTask(**common, entry=payload.entry, prediction=payload.prediction, limits=limits)

    def on_done(self, job: Job, result: CodeDataResult) -> None:
        """Make the version, which a job outside of the sandbox reads like an upload."""
        version = code_data.keep_result(job, job.payload_as(CodeDataPayload), result)
        change_payload(job, made=version.pk)


register_actions(CODE_DATA.name, CodeDataActions())
