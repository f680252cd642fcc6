"""Decides who may run user code, and describes the code that a task runs."""

from jobs import access
from jobs.errors import BadSpec, Conflict, Forbidden
from jobs.messages.task import OwnCode, OwnCodeFile
from jobs.models import CodeVersion, Job, PackageSet, Project, Revision, User
from jobs.queries.code import code_checks, installation, package_sets, sandboxes
from jobs.queries.code.code import files_of
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.store import store


def require_right(by: User, project: Project | None, revision: Revision | None) -> None:
    """Check that `by` may run a revision's jobs, also if they run user code.

    Raises:
        NotFound: `by` may not see the project.
        Forbidden: the role of `by` is not enough; the message names those that are.
    """
    access.require(by, project, access.Action.WRITE)
    if revision is None or revision.spec.model.code_digest is None:
        return
    _require_right_to_code(by, project)


def _require_right_to_code(by: User, project: Project | None) -> None:
    if not access.can(by, project, access.Action.RUN_CODE):
        needed = ", ".join(access.roles_allowing(access.Action.RUN_CODE))
        raise Forbidden(f"This runs code of users in {project}, which takes one of these roles: {needed}.")


def require_right_to_job(by: User, job: Job) -> None:
    """Check that `by` may run a job again, also if it runs user code; see `require_right`."""
    access.require(by, job.project, access.Action.WRITE)
    if sandboxes.needs_sandbox(job):
        _require_right_to_code(by, job.project)


def require_present(project: Project, spec: ExperimentSpec) -> None:
    """Refuse a spec whose code the project does not have, such as one copied from another project.

    Raises:
        BadSpec: it does not have it.
    """
    if problems := code_checks.code_problems(project, spec):
        raise BadSpec(
            problems[0].message, [Problem(f"/spec{problem.pointer}", problem.message) for problem in problems]
        )


def code_of_job(job: Job) -> OwnCode | None:
    """Return the code that a job's model needs, or None if it needs none.

    Raises:
        Conflict: see `code_of_version`.
    """
    digest = job.payload.code_digest()
    if digest is None and job.revision is not None and not job.payload.names_all_code:
        digest = job.revision.spec.model.code_digest
    if digest is None:
        return None
    if job.project is None:
        raise Conflict(f"job {job.pk} has no project whose code it could run")
    passes = (job.parent or job).payload.passes_batch_size
    return code_of_version(job.project, digest).model_copy(update={"passes_batch_size": passes})


def code_of_version(project: Project, digest: str) -> OwnCode:
    """Return a project's code version, with its files on this machine.

    Raises:
        Conflict: the project has no such version.
    """
    version = CodeVersion.objects.select_related("project").filter(project=project, digest=digest).first()
    if version is None:
        raise Conflict(f"project {project} has no code {digest[:8]}: it was deleted")
    return code_of_row(version)


def code_of_row(version: CodeVersion, exact: PackageSet | None = None) -> OwnCode:
    """Return a code version, with its files on this machine.

    Args:
        version: the row.
        exact: the packages that the task must have; by default those that are recorded for the code.
    """
    packages = version.findings.packages
    requirements = () if packages is None else tuple(packages.requirements)
    recorded = package_sets.NOTHING
    if requirements and exact is None:
        recorded = package_sets.recorded_packages(version)
    return OwnCode(
        digest=version.digest,
        files=tuple(
            OwnCodeFile(path=file.path, place=str(store().path(file.artifact_id)))
            for file in files_of(version)
        ),
        requirements=requirements,
        sets=recorded.sets,
        packages=None if exact is None else exact.packages,
        resolution=recorded.resolution,
        requires_python=(packages.python or "") if packages is not None else "",
        minimum=installation.sandbox_minimum(),
        network=version.project.network,
    )
