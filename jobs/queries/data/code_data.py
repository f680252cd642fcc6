"""Reads the data that own code has loaded, and checks the functions that load them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from jobs.answers.code.code import CodeDataOut
from jobs.errors import BadInput
from jobs.kinds.code_data.payload import CodeDataPayload, CodeDataResult
from jobs.kinds.code_data.rows import data_loads, data_loads_by
from jobs.messages.code import CodeEntry
from jobs.models import CodeVersion, DatasetVersion, Job, Project
from jobs.models.job import JobQuerySet
from jobs.queries.data.causes import cause_of
from jobs.spec.problems import Problem, problems
from jobs.states import FINAL, WAITING, JobState

MOST_SHOWN = 20
MOST_READ = 500
"""How many of a project's newest loads are read to find the last one of each code version."""
LOADS_DATA = "load_data"
"""The kind for entries that load data."""


def entries_of(version: CodeVersion) -> list[CodeEntry]:
    """Return a version's functions that load data."""
    return [entry for entry in version.findings.entries if entry.kind == LOADS_DATA]


def entry_names(version: CodeVersion) -> list[str]:
    """Name the functions that load data, with their paths if several have one name."""
    entries = [entry for entry in entries_of(version) if not entry.note]
    names = [entry.name for entry in entries]
    return [entry.name if names.count(entry.name) == 1 else f"{entry.path}:{entry.name}" for entry in entries]


def problem_of_entry(version: CodeVersion, entry_name: str) -> str | None:
    """Return why a version has no data function with this name. None if it has one."""
    path, _, name = entry_name.rpartition(":")
    entries = entries_of(version)
    named = [entry for entry in entries if entry.name == name and path in ("", entry.path)]
    if len(named) > 1:
        return (
            f"{version} has several functions {name}: use {' or '.join(f'{e.path}:{e.name}' for e in named)}"
        )
    if not named:
        available = ", ".join(f"{entry.path}:{entry.name}" for entry in entries)
        advice = "write one: load_data(split), which returns x and y of a part"
        has = f"it has {available}" if available else advice
        return f"{version} has no function {entry_name!r} that loads data; {has}"
    return f"{entry_name} cannot load data: {named[0].note}" if named[0].note else None


def jobs_of(version: CodeVersion) -> JobQuerySet:
    """Return the jobs that load data by a code version, newest first."""
    rows = Job.objects.filter(data_loads_by(version.digest), project=version.project)
    return rows.select_related("created_by").order_by("-pk")


def load_payload(version: CodeVersion, *, dataset: str, entry: str, task: str) -> CodeDataPayload:
    """Build the payload for a job that loads data, from the texts in a form or in REST.

    Raises:
        BadInput: a field is not valid.
    """
    sent = {"code": version.digest, "entry": entry, "dataset": dataset, "prediction": task or None}
    try:
        return CodeDataPayload.model_validate(sent)
    except ValidationError as error:
        field_problems = problems(error, sent)
        renamed = [
            Problem(problem.pointer.replace("/prediction", "/task"), problem.message)
            for problem in field_problems
        ]
        raise BadInput(field_problems[0].message, renamed) from error


def newest_equal_job(version: CodeVersion, payload: CodeDataPayload, *, ended: bool) -> Job | None:
    """Return the newest job with an equal request: an open one, or with `ended` an ended one.

    One whose data were deleted does not count.
    """
    equal_jobs = [job for job in jobs_of(version) if _request_of(job) == payload]
    open_job = next((job for job in equal_jobs if job.state not in FINAL), None)
    if open_job is not None or not ended:
        return open_job
    loaded = loaded_versions(equal_jobs)
    return next((job for job in equal_jobs if job.pk in loaded or _loaded_key(job) is None), None)


def _request_of(job: Job) -> CodeDataPayload:
    """Return a job's request, without what happened since."""
    return CodeDataPayload.model_validate(
        job.payload_as(CodeDataPayload).model_dump(include={"code", "entry", "dataset", "prediction"})
    )


def _loaded_key(job: Job) -> int | None:
    return job.payload_as(CodeDataPayload).made


def loaded_versions(jobs: Iterable[Job]) -> Mapping[int, DatasetVersion]:
    """Return the version that each job has loaded, by job key. Deleted versions are missing."""
    keys = {job.pk: key for job in jobs if (key := _loaded_key(job)) is not None}
    visible = DatasetVersion.objects.filter(pk__in=keys.values(), dataset__deletion=None)
    versions = visible.select_related("dataset__project").defer("profile_json").in_bulk()
    return {job: versions[key] for job, key in keys.items() if key in versions}


def newest_versions(project: Project) -> dict[str, DatasetVersion]:
    """Return the newest dataset version that each code in a project has loaded, by code digest."""
    jobs = Job.objects.filter(data_loads(), project=project).order_by("-pk")[:MOST_READ]
    loaded = loaded_versions(jobs)
    return {
        job.payload_as(CodeDataPayload).code: loaded[job.pk] for job in reversed(jobs) if job.pk in loaded
    }


class Loading(NamedTuple):
    """The code in a job that loads data, and the dataset version that it has made; None if deleted."""

    request: CodeDataPayload
    code: CodeVersion | None
    version: DatasetVersion | None


def code_data_of_job(job: Job) -> Loading:
    """Return the data that a job loads."""
    payload = job.payload_as(CodeDataPayload)
    code = CodeVersion.objects.filter(project=job.project, digest=payload.code).first()
    return Loading(payload, code, loaded_versions([job]).get(job.pk))


def newest_code_data(version: CodeVersion) -> list[CodeDataOut]:
    """Return the newest jobs that load data by a code version, as the API represents them."""
    return code_data_out(jobs_of(version)[:MOST_SHOWN])


def code_data_out(jobs: Iterable[Job]) -> list[CodeDataOut]:
    """Return jobs that load data, as the API represents them."""
    rows = list(jobs)
    loaded = loaded_versions(rows)
    return [_job_data_out(job, loaded.get(job.pk)) for job in rows]


def _job_data_out(job: Job, version: DatasetVersion | None) -> CodeDataOut:
    payload = job.payload_as(CodeDataPayload)
    is_done = job.state == JobState.COMPLETED
    return CodeDataOut(
        state=job.state,
        job=job.pk,
        entry=payload.entry,
        dataset=payload.dataset,
        version=version.number if version is not None else None,
        version_state=version.state if version is not None else None,
        rows=CodeDataResult.model_validate(job.results_json).rows if is_done else {},
        error=cause_of(job.error),
        why_waiting=job.why_waiting if job.state in WAITING else "",
        created_by=job.created_by.username if job.created_by is not None else None,
        created=job.created,
    )


def code_of(version: DatasetVersion) -> CodeVersion | None:
    """Return the code that loaded a dataset version. None for other data, or if it was deleted."""
    body = version.request.get("code")
    if body is None:
        return None
    return CodeVersion.objects.filter(project=version.dataset.project, digest=body["digest"]).first()
