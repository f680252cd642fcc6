"""Reads the packages that are recorded for code, for runs and for model versions."""

from collections.abc import Iterable
from typing import NamedTuple

from jobs.messages.environments import InstalledPackage, InstalledSet
from jobs.models import (
    Attempt,
    CodeVersion,
    Job,
    ModelVersion,
    PackageResolution,
    PackageSet,
    RecordedPackages,
)
from jobs.spec.checks.packages import digest_of


class Recorded(NamedTuple):
    """The packages that are recorded for a code version.

    Attributes:
        resolution: see `PackageResolution.token`.
        sets: one for each Python and platform.
    """

    resolution: str = ""
    sets: tuple[InstalledSet, ...] = ()


NOTHING = Recorded()


class PackageChange(NamedTuple):
    """A package that differs between two sets.

    Attributes:
        name: its name.
        before, after: its version; empty where it is missing.
        files: whether only its files differ, in the same version.
    """

    name: str
    before: str
    after: str
    files: bool


def resolution_of(version: CodeVersion) -> PackageResolution | None:
    """Return the resolution for a version's requirements. None if nothing is recorded for them."""
    packages = version.findings.packages
    if packages is None or not packages.requirements:
        return None
    rows = PackageResolution.objects.select_related("changed_by")
    digest = digest_of(packages.requirements)
    return rows.filter(project=version.project_id, requirements_digest=digest).first()


def recorded_packages(version: CodeVersion) -> Recorded:
    """Return the packages with which a version's environments are built."""
    resolution = resolution_of(version)
    if resolution is None:
        return NOTHING
    return Recorded(resolution.token, tuple(row.as_set() for row in rows_of(resolution)))


def rows_of(resolution: PackageResolution) -> list[RecordedPackages]:
    """Return a resolution's packages, for each Python and platform."""
    return list(resolution.recorded.select_related("packages").order_by("for_engine", "python", "platform"))


def packages_of_job(job: Job) -> PackageSet | None:
    """Return the packages that a job's last attempt had; None if it had none."""
    attempts = Attempt.objects.filter(job=job, packages__isnull=False).select_related("packages")
    last = attempts.order_by("-number").first()
    return None if last is None else last.packages


def packages_of_training(job: Job) -> PackageSet | None:
    """Return the packages with which a model was trained, if it is loaded with the same.

    A script's packages differ from those in the process that loads its model.
    """
    if job.revision is None or job.revision.spec.model.info.trains_itself:
        return None
    return packages_of_job(job)


def packages_of(version: ModelVersion | None) -> tuple[InstalledPackage, ...]:
    """Return the packages that a version needs to be loaded. Empty without code, or if unknown."""
    if version is None or not version.needs_code or version.packages is None:
        return ()
    return version.packages.packages


def has_known_packages(version: ModelVersion) -> bool:
    """Return whether a version's packages are known. Earlier releases recorded none."""
    return version.packages_id is not None or not (version.needs_code and version.requirements_digest)


def changes_since(before: ModelVersion | None, after: ModelVersion) -> list[PackageChange]:
    """Return the packages that differ between two versions; none where one version's are unknown."""
    if before is None or not (has_known_packages(before) and has_known_packages(after)):
        return []
    return package_changes(packages_of(before), packages_of(after))


def package_changes(
    before: Iterable[InstalledPackage], after: Iterable[InstalledPackage]
) -> list[PackageChange]:
    """Return the packages that differ between two sets, sorted by name."""
    old, new = ({package.name: package for package in packages} for packages in (before, after))
    changes = []
    for name in sorted(old.keys() | new.keys()):
        mine, theirs = new.get(name), old.get(name)
        if mine == theirs:
            continue
        versions = theirs.version if theirs else "", mine.version if mine else ""
        changes.append(PackageChange(name, *versions, files=versions[0] == versions[1]))
    return changes
