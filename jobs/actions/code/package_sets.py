"""Records the packages that runs had, and has their versions chosen again."""

import secrets
from typing import Any

from django.db import transaction

from jobs import access, clock
from jobs.actions.audit import audit
from jobs.errors import Conflict, StaleFence
from jobs.messages.environments import InstalledSet, PackageChoice
from jobs.models import Attempt, CodeVersion, PackageResolution, PackageSet, RecordedPackages, User
from jobs.spec.checks.packages import digest_of
from jobs.states import AttemptState


def record_packages(attempt_id: int, installed: InstalledSet, choice: PackageChoice | None) -> None:
    """Store an attempt's packages. Later runs with its code get the same ones.

    Args:
        attempt_id: the attempt.
        installed: its packages.
        choice: the code; None if later runs do not depend on this attempt.

    Raises:
        StaleFence: the attempt is no longer running; nothing was written.
    """
    with transaction.atomic():
        row, _ = PackageSet.objects.get_or_create(
            digest=installed.digest,
            defaults={"packages_json": [package.model_dump() for package in installed.packages]},
        )
        if not Attempt.objects.filter(pk=attempt_id, state=AttemptState.RUNNING).update(packages=row):
            raise StaleFence(f"attempt {attempt_id} is no longer running")
        project = Attempt.objects.values_list("job__project", flat=True).get(pk=attempt_id)
        if choice is not None and project is not None:
            _keep_for_later_runs(project, installed, row, choice)


def _keep_for_later_runs(
    project: int, installed: InstalledSet, row: PackageSet, choice: PackageChoice
) -> None:
    """Record packages for later runs, unless there are some or the versions are being chosen again."""
    key: dict[str, Any] = {"project_id": project, "requirements_digest": choice.requirements}
    PackageResolution.objects.get_or_create(**key)
    # Locked, so that a person who has the versions chosen again at this moment gets others.
    resolution = PackageResolution.objects.select_for_update().get(**key)
    if resolution.token == choice.resolution:
        RecordedPackages.objects.get_or_create(
            resolution=resolution,
            python=installed.python,
            platform=installed.platform,
            for_engine=installed.for_engine,
            defaults={"packages": row},
        )


def resolve_again(version: CodeVersion, *, by: User) -> None:
    """Let the code's next run choose its package versions again.

    This is for all code in the project with the same requirements. Model versions keep their packages.

    Raises:
        Forbidden: `by` may not run code in the project.
        Conflict: the code asks for no packages.
    """
    access.require(by, version.project, access.Action.RUN_CODE)
    packages = version.findings.packages
    if packages is None or not packages.requirements:
        raise Conflict(f"{version} asks for no packages.", code="no_packages")
    key: dict[str, Any] = {
        "project": version.project,
        "requirements_digest": digest_of(packages.requirements),
    }
    with transaction.atomic():
        PackageResolution.objects.get_or_create(**key)
        resolution = PackageResolution.objects.select_for_update().get(**key)
        resolution.token = secrets.token_hex(8)
        resolution.changed, resolution.changed_by = clock.now(), by
        resolution.save(update_fields=["token", "changed", "changed_by"])
        resolution.recorded.all().delete()
        audit.record("code.resolve", f"code:{version.digest}", by=by, project=version.project)
