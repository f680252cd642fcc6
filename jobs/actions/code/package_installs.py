"""Requests that workers install the packages for code, before a run needs them."""

import re

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.errors import BadInput, Conflict
from jobs.models import CodeVersion, Job, User
from jobs.queries.code import environments, package_installs
from jobs.spec.problems import Problem
from jobs.spec.sections.resources import POOL

PRIORITY = 60
"""Installations come before most runs, since some runs may wait for them."""


def request_installation(version: CodeVersion, *, by: User, use: str = "", pool: str = "default") -> Job:
    """Queue a job that installs a version's packages. An open job is returned instead.

    A worker that has the packages already installs nothing.

    Args:
        version: the code.
        by: the acting user.
        use: `models` or `scripts`; by default the code's.
        pool: the pool whose workers get the packages.

    Raises:
        Forbidden: `by` may not run code in the project.
        Conflict: the code asks for no packages.
        BadInput: no worker can install them, or a field is invalid.
        QuotaReached: the project has too many unfinished jobs.
    """
    project = version.project
    access.require(by, project, access.Action.RUN_CODE)
    packages = version.findings.packages
    if packages is None or not packages.requirements:
        raise Conflict(f"{version} asks for no packages.", code="no_packages")
    for_engine = _use_of(version, use) == "models"
    _check_pool(pool)
    if problems := environments.requirement_problems(version):
        raise BadInput(problems[0], [Problem("/code", problem) for problem in problems])
    with transaction.atomic():
        # Locked, so that the second of two simultaneous requests finds the first one's job.
        quotas.lock_project(project)
        rows = package_installs.open_installations(version, for_engine=for_engine).filter(pool=pool)
        if (job := rows.first()) is not None:
            return job
        quotas.require_room_for_job(project)
        job = submit.queue(
            package_installs.install_payload(version, for_engine=for_engine),
            project=project,
            title=f"Packages of {version}",
            pool=pool,
            priority=PRIORITY,
            max_restarts=1,
            created_by=by,
        )
        audit.record("code.install", f"job:{job.pk}", by=by, project=project, code=version.digest)
    return job


def _use_of(version: CodeVersion, use: str) -> str:
    uses = package_installs.uses_of(version)
    if not use:
        return uses[0]
    if use not in ("models", "scripts"):
        raise _bad("/use", f"{use[:40]!r} is no use of packages; choose models or scripts")
    return use


def _check_pool(pool: str) -> None:
    if not re.fullmatch(POOL, pool):
        raise _bad("/pool", f"{pool[:40]!r} cannot be the name of a pool")


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, [Problem(pointer, message)])
