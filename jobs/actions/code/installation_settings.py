"""Changes how user code may run. Only installation administrators may: the machines are shared."""

from django.db import transaction

from jobs import access, hints
from jobs.actions.audit import audit
from jobs.errors import StaleState
from jobs.messages.sandbox import Level, present_level
from jobs.models import InstallationSettings, Project, User
from jobs.queries.code.installation import KEY


def change_sandbox_minimum(level: Level, *, seen: Level | None = None, by: User) -> InstallationSettings:
    """Set the weakest sandbox in which user code may run. Runs that have begun continue.

    Args:
        level: the weakest one.
        seen: the one that the caller read; None accepts any.
        by: an administrator of the installation.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
        StaleState: it was changed since `seen`.
    """
    access.require_admin(by)
    with transaction.atomic():
        InstallationSettings.objects.get_or_create(pk=KEY)
        current = InstallationSettings.objects.select_for_update(no_key=True).get(pk=KEY)
        present = present_level(current.sandbox_minimum)
        if seen is not None and seen != present:
            raise StaleState(f"The sandbox minimum was changed to {present} meanwhile.")
        if current.sandbox_minimum != level:
            was, current.sandbox_minimum = current.sandbox_minimum, str(level)
            current.save(update_fields=["sandbox_minimum"])
            audit.record("settings.sandbox_minimum", "installation", by=by, to=str(level), was=was)
            hints.send("schedule")
    return current


def change_network(project: Project, allowed: bool, *, seen: bool | None = None, by: User) -> Project:
    """Allow user code in a project to connect to other hosts, or not. Runs that have begun continue.

    Args:
        project: the project; its fields are refreshed.
        allowed: whether it may.
        seen: the setting that the caller read; None accepts any.
        by: an administrator of the installation.

    Raises:
        Forbidden: `by` is not an administrator of the installation.
        StaleState: it was changed since `seen`.
    """
    access.require_admin(by)
    with transaction.atomic():
        current = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if seen is not None and seen != current.network:
            raise StaleState(f"The network of {project} was changed meanwhile: read it again.")
        if current.network != allowed:
            Project.objects.filter(pk=project.pk).update(network=allowed)
            audit.record("project.network", project, by=by, project=project, allowed=allowed)
        project.refresh_from_db()
    return project
