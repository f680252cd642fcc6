"""Operations on the settings of the installation, and on those of projects about code of users."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from jobs import access
from jobs.actions.code import installation_settings
from jobs.answers.code.settings import ProjectSandboxOut, SettingsOut
from jobs.errors import StaleState
from jobs.messages.sandbox import Level
from jobs.models import Project
from jobs.queries.code import installation
from webapp.api import etags
from webapp.api.auth import actor, needs
from webapp.api.shapes import In
from webapp.http_errors import StaleEtag

router = Router()


class SettingsChange(In):
    """The settings to change."""

    sandbox_minimum: Level = Field(examples=["bubblewrap"])


class ProjectSandboxChange(In):
    """The setting of a project to change."""

    network: bool


@router.get("/settings", response=SettingsOut)
def get_settings(request: HttpRequest, response: HttpResponse) -> SettingsOut:  # noqa: ARG001
    """Return the settings of the installation. The `ETag` changes with them."""
    found = SettingsOut(sandbox_minimum=installation.sandbox_minimum())
    etags.set_etag(response, found.sandbox_minimum)
    return found


@router.patch("/settings", response=SettingsOut, auth=needs("admin"))
def change_settings(request: HttpRequest, body: SettingsChange, response: HttpResponse) -> SettingsOut:
    """Change the settings of the installation. For its administrators. Runs that have begun continue."""
    access.require_admin(actor(request))
    present = installation.sandbox_minimum()
    etags.require_match(request, present)
    seen = present if "If-Match" in request.headers else None
    _matching(
        lambda: installation_settings.change_sandbox_minimum(
            body.sandbox_minimum, seen=seen, by=actor(request)
        )
    )
    return get_settings(request, response)


@router.get("/projects/{slug}/sandbox", response=ProjectSandboxOut)
def get_project_sandbox(request: HttpRequest, slug: str, response: HttpResponse) -> ProjectSandboxOut:
    """Return how code of users runs in a project. The `ETag` changes with the setting of the project."""
    project = access.get_project(actor(request), slug)
    etags.set_etag(response, _revision(project))
    return ProjectSandboxOut(network=project.network, minimum=installation.sandbox_minimum())


@router.patch("/projects/{slug}/sandbox", response=ProjectSandboxOut, auth=needs("admin"))
def change_project_sandbox(
    request: HttpRequest, slug: str, body: ProjectSandboxChange, response: HttpResponse
) -> ProjectSandboxOut:
    """Allow code of users in a project to connect to other hosts, or not.

    For administrators of the installation. Runs that have begun continue.
    """
    project = access.get_project(actor(request), slug)
    access.require_admin(actor(request))
    etags.require_match(request, _revision(project))
    seen = project.network if "If-Match" in request.headers else None
    _matching(
        lambda: installation_settings.change_network(project, body.network, seen=seen, by=actor(request))
    )
    return get_project_sandbox(request, slug, response)


def _revision(project: Project) -> str:
    return "network" if project.network else "no-network"


def _matching(change: Callable[[], object]) -> None:
    """Make a change; one that was changed since the check of `If-Match` has the same answer as there."""
    try:
        change()
    except StaleState as error:
        raise StaleEtag(error.message) from error
