"""Changes projects' quotas. Only installation administrators may: the machines are shared."""

from collections.abc import Mapping

from django.db import transaction

from jobs import access, hints
from jobs.actions.audit import audit
from jobs.errors import BadInput, StaleState
from jobs.models import Project, User
from jobs.queries.people.quotas import HIGHEST, quota_column, quotas_revision
from jobs.spec.problems import Problem


def change_quotas(
    project: Project, quotas: Mapping[str, int | None], *, seen: str | None = None, by: User
) -> Project:
    """Set a project's quotas, all or none. Work that already exceeds one is kept.

    Args:
        project: the project; its fields are refreshed.
        quotas: new values by name; None means the installation's default. Other quotas do not change.
        seen: the revision that the caller read; None accepts any.
        by: an administrator of the installation.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
        BadInput: a quota is less than one or too large.
        StaleState: the quotas were changed since `seen`. Nothing was changed.
    """
    access.require_admin(by)
    problems = [
        Problem(f"/{name}", f"use a number from 1 to {HIGHEST[name]:,}, or none for the default")
        for name, value in quotas.items()
        if value is not None and not 1 <= value <= HIGHEST[name]
    ]
    if problems:
        raise BadInput("A quota is out of range.", problems)
    with transaction.atomic():
        current = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if seen is not None and seen != quotas_revision(current):
            raise StaleState(f"The quotas of {project} were changed meanwhile: read them again.")
        changes = {
            name: value for name, value in quotas.items() if getattr(current, quota_column(name)) != value
        }
        if changes:
            columns = {quota_column(name): value for name, value in changes.items()}
            Project.objects.filter(pk=project.pk).update(**columns)
            audit.record("project.quotas", project, by=by, project=project, **changes)
            hints.send("schedule", project=project.pk)
        project.refresh_from_db()
    return project
