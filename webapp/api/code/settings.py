"""Operations on the installation's settings, and on projects' settings for users' code."""

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
    """The project setting to change."""

    network: bool


@router.get("/settings", response=SettingsOut)
def get_settings(request: HttpRequest, response: HttpResponse) -> SettingsOut:  # noqa: ARG001
    """Return the installation's settings. The `ETag` changes with them."""
    present = SettingsOut(sandbox_minimum=installation.sandbox_minimum())
    etags.set_etag(response, present.sandbox_minimum)
    return present


@router.patch("/settings", response=SettingsOut, auth=needs("admin"))
def change_settings(request: HttpRequest, body: SettingsChange, response: HttpResponse) -> SettingsOut:
    """Change the installation's settings. For its administrators. Runs that have begun continue."""
    access.require_admin(actor(request))
    present = installation.sandbox_minimum()
    etags.require_match(request, present)
    seen = present if "If-Match" in request.headers else None
    _apply_matching(
        lambda: installation_settings.change_sandbox_minimum(
            body.sandbox_minimum, seen=seen, by=actor(request)
        )
    )
    return get_settings(request, response)


@router.get("/projects/{slug}/sandbox", response=ProjectSandboxOut)
def get_project_sandbox(request: HttpRequest, slug: str, response: HttpResponse) -> ProjectSandboxOut:
    """Return how users' code runs in a project. The `ETag` changes with the project's setting."""
    project = access.get_project(actor(request), slug)
    etags.set_etag(response, _network_tag(project))
    return ProjectSandboxOut(network=project.network, minimum=installation.sandbox_minimum())


@router.patch("/projects/{slug}/sandbox", response=ProjectSandboxOut, auth=needs("admin"))
def change_project_sandbox(
    request: HttpRequest, slug: str, body: ProjectSandboxChange, response: HttpResponse
) -> ProjectSandboxOut:
    """Allow or forbid connections to other hosts for users' code in a project.

    For the installation's administrators. Runs that have begun continue.
    """
    project = access.get_project(actor(request), slug)
    access.require_admin(actor(request))
    etags.require_match(request, _network_tag(project))
    seen = project.network if "If-Match" in request.headers else None
    _apply_matching(
        lambda: installation_settings.change_network(project, body.network, seen=seen, by=actor(request))
    )
    return get_project_sandbox(request, slug, response)


def _network_tag(project: Project) -> str:
    return "network" if project.network else "no-network"


def _apply_matching(change: Callable[[], object]) -> None:
    """Make a change; a change since the `If-Match` check has the same answer as that check."""
    try:
        change()
    except StaleState as error:
        raise StaleEtag(error.message) from error
