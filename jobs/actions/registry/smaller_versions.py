"""Quantizes or casts a registered version: a job makes a smaller model, which becomes a new version."""

from django.db import transaction

from jobs import access
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.actions.runs.tasks import data_of
from jobs.actions.storage import deletions
from jobs.errors import BadInput, Conflict
from jobs.kinds.quantize.payload import QuantizePayload
from jobs.models import Job, ModelVersion, User
from jobs.queries.registry.smaller_versions import smaller_version_jobs, smaller_version_refusal
from jobs.spec.exports import QUANTIZATIONS, ExportFormat
from jobs.spec.problems import Problem


def make_smaller(version: ModelVersion, mode: str, field: str, *, by: User) -> Job:
    """Queue the job that quantizes or casts a version, compares both and adds the result as a version.

    Args:
        version: a candidate that was trained here.
        mode: the name of a format that makes models smaller.
        field: the field of the request that has it.
        by: the acting user.

    Raises:
        BadInput: there is no such format, or the version cannot be made smaller.
        Conflict: the version is not a candidate, or an unfinished job makes the same.
        Forbidden: `by` may not run jobs in the project, or no code.
        QuotaReached: the project has too many unfinished jobs.
    """
    entry = require_smaller_format(version, mode, field, by=by)
    project, source, data = version.model.project, version.source_job, data_of(version)
    if source is None or data is None:
        raise BadInput(f"{version} has no test rows on which a smaller model could be compared")
    with transaction.atomic():
        deletions.require_present(project, version)
        # Locked, so that the second of two simultaneous requests finds the first one's job.
        quotas.lock_project(project)
        for job in smaller_version_jobs(version):
            if job.payload_as(QuantizePayload).mode == mode:
                raise Conflict(f"Job {job.pk} makes {version} in {entry.label} already.")
        quotas.require_room_for_job(project)
        payload = QuantizePayload(
            dataset_version=data.pk,
            source=source.pk,
            mode=mode,
            artifact=version.artifact_id,
            model=version.model.name,
        )
        job = submit.queue(
            payload,
            project=project,
            revision=source.revision,
            title=f"{entry.verb} {version} to {entry.label}",
            created_by=by,
            **submit.placement_like(source.root or source),
        )
        name = f"version:{version.model.name}/{version.number}"
        audit.record("version.make_smaller", name, by=by, project=project, job=job.pk, mode=mode)
    return job


def require_smaller_format(version: ModelVersion, mode: str, field: str, *, by: User) -> ExportFormat:
    """Return the format to which a version would be made smaller.

    Raises:
        BadInput, Conflict, Forbidden: as `make_smaller`.
    """
    project = version.model.project
    access.require(by, project, Action.WRITE)
    if version.code is not None:
        access.require(by, project, Action.RUN_CODE)
    if mode not in QUANTIZATIONS:
        message = f"{mode!r} makes no smaller model; {', '.join(QUANTIZATIONS)} do"
        raise BadInput(message, [Problem(f"/{field}", message)])
    if version.state != ModelVersion.State.CANDIDATE:
        raise Conflict(f"{version} is {version.state}: only candidates can be made smaller.")
    if reason := smaller_version_refusal(version):
        raise BadInput(reason, [Problem(f"/{field}", reason)])
    return QUANTIZATIONS[mode]
