"""Reads the data that own code has loaded, and checks the functions that load them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobs.answers.code.code import CodeDataOut
from jobs.kinds.code_data.payload import CodeDataPayload, CodeDataResult
from jobs.kinds.code_data.rows import data_loads, data_loads_by
from jobs.messages.code import CodeEntry
from jobs.models import CodeVersion, DatasetVersion, Job, Project
from jobs.models.job import JobQuerySet
from jobs.queries.data.causes import cause_of
from jobs.states import FINAL, WAITING, JobState

MOST_SHOWN = 20
MOST_READ = 500
"""Jobs of a project among which the newest of each code are found."""
LOADS_DATA = "load_data"
"""The kind of entries that load data."""


def entries_of(version: CodeVersion) -> list[CodeEntry]:
    """Return the functions of a version that load data."""
    return [entry for entry in version.found.entries if entry.kind == LOADS_DATA]


def entry_names(version: CodeVersion) -> list[str]:
    """Return the names of the functions that load data, with their paths if several have one name."""
    entries = [entry for entry in entries_of(version) if not entry.note]
    names = [entry.name for entry in entries]
    return [entry.name if names.count(entry.name) == 1 else f"{entry.path}:{entry.name}" for entry in entries]


def problem_of_entry(version: CodeVersion, wanted: str) -> str | None:
    """Return why a version has no function to load data of this name; None if it has one."""
    path, _, name = wanted.rpartition(":")
    entries = entries_of(version)
    named = [entry for entry in entries if entry.name == name and path in ("", entry.path)]
    if len(named) > 1:
        return (
            f"{version} has several functions {name}: use {' or '.join(f'{e.path}:{e.name}' for e in named)}"
        )
    if not named:
        known = ", ".join(f"{entry.path}:{entry.name}" for entry in entries)
        has = f"it has {known}" if known else "write one: load_data(split), which returns x and y of a part"
        return f"{version} has no function {wanted!r} that loads data; {has}"
    return f"{wanted} cannot load data: {named[0].note}" if named[0].note else None


def jobs_of(version: CodeVersion) -> JobQuerySet:
    """Return the jobs that load data by a version of code, newest first."""
    rows = Job.objects.filter(data_loads_by(version.digest), project=version.project)
    return rows.select_related("created_by").order_by("-pk")


def known(version: CodeVersion, payload: CodeDataPayload, *, ended: bool) -> Job | None:
    """Return the newest job that loads the same: an open one, or with `ended` one that has ended.

    One whose data were deleted does not count.
    """
    same = [job for job in jobs_of(version) if _asked(job) == payload]
    if (is_open := next((job for job in same if job.state not in FINAL), None)) is not None or not ended:
        return is_open
    made = made_by(same)
    return next((job for job in same if job.pk in made or _made(job) is None), None)


def _asked(job: Job) -> CodeDataPayload:
    """Return the request of a job, without what happened since."""
    return CodeDataPayload.model_validate(
        job.payload_as(CodeDataPayload).model_dump(include={"code", "entry", "dataset", "prediction"})
    )


def _made(job: Job) -> int | None:
    return job.payload_as(CodeDataPayload).made


def made_by(jobs: Iterable[Job]) -> Mapping[int, DatasetVersion]:
    """Return the version that each job has made, by the job's key; those that were deleted are missing."""
    keys = {job.pk: made for job in jobs if (made := _made(job)) is not None}
    found = DatasetVersion.objects.filter(pk__in=keys.values(), dataset__deletion=None)
    versions = found.select_related("dataset__project").defer("profile_json").in_bulk()
    return {job: versions[made] for job, made in keys.items() if made in versions}


def newest_versions(project: Project) -> dict[str, DatasetVersion]:
    """Return the newest version of a data set that each code of a project has loaded, by its digest."""
    jobs = Job.objects.filter(data_loads(), project=project).order_by("-pk")[:MOST_READ]
    made = made_by(jobs)
    return {job.payload_as(CodeDataPayload).code: made[job.pk] for job in reversed(jobs) if job.pk in made}


class Loading(NamedTuple):
    """The code of a job that loads data, and the version of a data set that it has made; None if deleted."""

    request: CodeDataPayload
    code: CodeVersion | None
    version: DatasetVersion | None


def of_job(job: Job) -> Loading | None:
    """Return the data that a job loads; None for jobs of other kinds."""
    if not isinstance(payload := job.payload, CodeDataPayload):
        return None
    code = CodeVersion.objects.filter(project=job.project, digest=payload.code).first()
    return Loading(payload, code, made_by([job]).get(job.pk))


def newest(version: CodeVersion) -> list[CodeDataOut]:
    """Return the newest jobs that load data by a version of code in the form of the API."""
    return shown(jobs_of(version)[:MOST_SHOWN])


def shown(jobs: Iterable[Job]) -> list[CodeDataOut]:
    """Return jobs that load data in the form of the API."""
    rows = list(jobs)
    made = made_by(rows)
    return [_shown(job, made.get(job.pk)) for job in rows]


def _shown(job: Job, version: DatasetVersion | None) -> CodeDataOut:
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
    """Return the code that has made a version of a data set; None for all others, or if it was deleted."""
    body = version.request.get("code")
    if body is None:
        return None
    return CodeVersion.objects.filter(project=version.dataset.project, digest=body["digest"]).first()
