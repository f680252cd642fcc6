"""Describes the code of a user that a task runs."""

from jobs.contracts.task_parts import OwnCode, OwnCodeFile
from jobs.errors import Conflict
from jobs.models import CodeVersion, Job, Project
from jobs.queries import installation
from jobs.queries.code import files_of
from jobs.store import store


def of_job(job: Job) -> OwnCode | None:
    """Return the code that the model of a job needs; None if it needs none.

    Raises:
        Conflict: see `of_version`.
    """
    digest = job.payload.code_digest()
    if digest is None and job.revision is not None:
        digest = job.revision.spec.model.code_digest
    if digest is None:
        return None
    if job.project is None:
        raise Conflict(f"job {job.pk} has no project whose code it could run")
    return of_version(job.project, digest)


def of_version(project: Project, digest: str) -> OwnCode:
    """Return a version of code of a project, with its files on this machine.

    Raises:
        Conflict: the project has no such version.
    """
    version = CodeVersion.objects.filter(project=project, digest=digest).first()
    if version is None:
        raise Conflict(f"project {project} has no code {digest[:8]}: it was deleted")
    packages = version.found.packages
    return OwnCode(
        digest=digest,
        files=tuple(
            OwnCodeFile(path=file.path, place=str(store().path(file.artifact_id)))
            for file in files_of(version)
        ),
        requirements=() if packages is None else tuple(packages.requirements),
        minimum=installation.sandbox_minimum(),
        network=project.network,
    )
