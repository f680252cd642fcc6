"""Reads the environments with packages for code."""

from collections.abc import Iterable

from django.db.models import QuerySet

from jobs.answers.code.environments import (
    EnvironmentOut,
    EnvironmentsOut,
    RecordedPackagesOut,
)
from jobs.models import CodeVersion, PackageEnvironment, RecordedPackages, Worker
from jobs.queries.code import package_installs, package_sets
from jobs.spec.checks.packages import BadRequirement, digest_of, parse_requirement

MAX_ENVIRONMENTS = 20
"""How many environments are shown for a code version: one for each worker folder and Python."""
MOST_ON_WORKER = 100


def environments_of_code(version: CodeVersion) -> QuerySet[PackageEnvironment]:
    """Return the environments that were built for a version's requirements, the newest first."""
    packages = version.findings.packages
    if packages is None or not packages.requirements:
        return PackageEnvironment.objects.none()
    rows = PackageEnvironment.objects.filter(requirements_digest=digest_of(packages.requirements))
    return rows.select_related("worker").order_by("-started", "-pk")[:MAX_ENVIRONMENTS]


def requirement_problems(version: CodeVersion) -> list[str]:
    """Return why no worker can install a version's requirements."""
    findings = version.findings
    problems = []
    for line in findings.packages.requirements if findings.packages is not None else ():
        try:
            parse_requirement(line)
        except BadRequirement as error:
            problems.append(str(error))
    return problems


def environments_on_worker(worker: Worker) -> QuerySet[PackageEnvironment]:
    """Return the built environments that a worker can use, the last used first."""
    place = worker.info.get("environments")
    rows = PackageEnvironment.objects.filter(place=place if isinstance(place, str) else "")
    rows = rows.exclude(state__in=("removed", "failed")).defer("log")
    return rows.order_by("-last_used", "-pk")[:MOST_ON_WORKER]


def total_bytes(rows: Iterable[PackageEnvironment]) -> int:
    """Sum the environments' sizes."""
    return sum(row.bytes or 0 for row in rows)


def environments_out(version: CodeVersion) -> EnvironmentsOut:
    """Return the environments' API representation."""
    packages = version.findings.packages
    resolution = package_sets.resolution_of(version)
    rows = package_sets.rows_of(resolution) if resolution is not None else []
    return EnvironmentsOut(
        requirements=[] if packages is None else packages.requirements,
        recorded=[_recorded_packages(row) for row in rows],
        resolved_again=None if resolution is None else resolution.changed,
        installing=package_installs.open_installations(version).values_list("pk", flat=True).first(),
        problems=requirement_problems(version),
        items=[_environment_out(row) for row in environments_of_code(version)],
    )


def _recorded_packages(row: RecordedPackages) -> RecordedPackagesOut:
    return RecordedPackagesOut(
        digest=row.packages_id,
        python=row.python,
        platform=row.platform,
        locked=row.for_engine,
        packages=list(row.packages.packages),
    )


def _environment_out(row: PackageEnvironment) -> EnvironmentOut:
    return EnvironmentOut(
        digest=row.digest,
        state=row.state,
        error=row.error,
        packages=row.packages,
        python=row.python,
        platform=row.platform,
        locked=row.for_engine,
        installer=row.installer,
        source=row.source,
        level=row.level,
        bytes=row.bytes,
        seconds=row.seconds,
        worker=None if row.worker is None else row.worker.name,
        started=row.started,
        built=row.built,
        last_used=row.last_used,
        log=row.log,
    )
