"""Reads package installations that were requested ahead of runs, and the runs that wait for them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from jobs.kinds.install.payload import InstallPayload
from jobs.kinds.install.rows import all_installations, installations_of
from jobs.models import CodeVersion, Job
from jobs.models.job import JobQuerySet
from jobs.queries.code import sandboxes
from jobs.spec.checks.packages import digest_of
from jobs.spec.sections.code_model import CODE_ENTRIES
from jobs.states import JobState

_WORKING = (JobState.STARTING, JobState.RUNNING)


class Installing(NamedTuple):
    """Packages that a worker installs. Runs in the same pool that need the same wait for it."""

    pool: str
    project: int | None
    requirements: str
    for_engine: bool


class Installation(NamedTuple):
    """The packages that a job installs.

    Attributes:
        request: its payload.
        code: the code version that asks for the packages; None if it was deleted.
    """

    request: InstallPayload
    code: CodeVersion | None


type ByPackages = Mapping[Installing, int]
"""The jobs that install packages now."""


def install_of_job(job: Job) -> Installation:
    """Return the packages that a job installs."""
    payload = job.payload_as(InstallPayload)
    return Installation(payload, CodeVersion.objects.filter(project=job.project, digest=payload.code).first())


def uses_of(version: CodeVersion) -> tuple[str, ...]:
    """Return who uses a version's packages: `models`, `scripts` or both, the likelier first."""
    kinds = {entry.kind for entry in version.findings.entries}
    uses = ("models",) if kinds & set(CODE_ENTRIES) else ()
    return (*uses, "scripts") if "script" in kinds else uses or ("models",)


def install_payload(version: CodeVersion, *, for_engine: bool) -> InstallPayload:
    """Build the payload for a job that installs the packages that a version asks for."""
    return InstallPayload(
        code=version.digest, requirements=_digest_of_packages(version), for_engine=for_engine
    )


def open_installations(version: CodeVersion, **fields: bool) -> JobQuerySet:
    """Return the unfinished jobs that install the packages that a version asks for.

    Args:
        version: the code.
        fields: payload values, such as `for_engine`.
    """
    installations = installations_of(_digest_of_packages(version), **fields)
    return Job.objects.filter(installations, project=version.project_id).unfinished()


def _digest_of_packages(version: CodeVersion) -> str:
    packages = version.findings.packages
    return digest_of(packages.requirements if packages is not None else ())


def running_installations() -> ByPackages:
    """Return the packages that workers install now."""
    jobs = {}
    for job in Job.objects.filter(all_installations(), state__in=_WORKING):
        payload = job.payload_as(InstallPayload)
        jobs[Installing(job.pool, job.project_id, payload.requirements, payload.for_engine)] = job.pk
    return jobs


def describe_wait(job: Job, installing: Callable[[], ByPackages] = running_installations) -> str | None:
    """Return a sentence if a job waits until its packages are installed, else None.

    Args:
        job: a job, whatever its kind.
        installing: returns the packages that workers install; asked only for jobs with code.
    """
    if not sandboxes.needs_sandbox(job) or not (jobs := installing()):
        return None
    if all((key.pool, key.project) != (job.pool, job.project_id) for key in jobs):
        return None
    requirements = _requirements_of(job)
    if requirements is None:
        return None
    other = jobs.get(Installing(job.pool, job.project_id, requirements, _needs_engine(job)))
    return None if other in (None, job.pk) else f"Its packages are being installed by job {other}."


def _needs_engine(job: Job) -> bool:
    return job.revision is None or not job.revision.spec.model.info.trains_itself


def _requirements_of(job: Job) -> str | None:
    digest = job.payload.code_digest()
    if digest is None and job.revision is not None:
        digest = job.revision.spec.model.code_digest
    version = CodeVersion.objects.filter(project=job.project_id, digest=digest or "").first()
    packages = version.findings.packages if version is not None else None
    return digest_of(packages.requirements) if packages is not None and packages.requirements else None
