"""Finds pages, settings and forms that begin something by their names, for the search dialog."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.http import HttpRequest
from django.urls import reverse

from jobs import access
from jobs.access import Action
from jobs.models import Project, User
from webapp import navigation
from webapp.context import current_project
from webapp.pages.matching import matches


@dataclass(frozen=True)
class Place:
    """A page that the navigation does not list.

    Attributes:
        title: its heading.
        name: its URL name.
        also: other words for it.
        needs: the permission that its visitors need in the project; in any project if it belongs to none.
        in_project: whether its address names the project.
        kind: `page`, `action` for a form that begins something, or `setting`.
        anchor: the part of the page that it means; empty for the whole page.
        admin_only: whether only administrators of the installation find it.
    """

    title: str
    name: str
    also: str = ""
    needs: Action | None = None
    in_project: bool = False
    kind: str = "page"
    anchor: str = ""
    admin_only: bool = False


WRITE, MANAGE = Action.WRITE, Action.MANAGE
PLACES = (
    Place("New experiment", "experiment_new", "create train search", WRITE, True, "action"),
    Place("Find a good model", "find_model", "search automatically automl", WRITE, True, "action"),
    Place("Upload a data set", "dataset_upload", "new dataset data csv images", WRITE, kind="action"),
    Place("New version of code", "code_new", "upload own code script", WRITE, kind="action"),
    Place("New model", "model_new", "create register", WRITE, kind="action"),
    Place("New project", "project_new", "create", kind="action"),
    Place("New credential", "credential_new", "secret address", WRITE, True, "action"),
    Place("Mesh designer", "mesh", "devices layout sharding parallel megatron gpu"),
    Place("Precision", "precision", "dtype policy float16 bfloat16 float8 float64", in_project=True),
    Place("Account", "account", "password second factor sessions"),
    Place("Help", "help", "documentation guide docs"),
    Place("For developers", "help_developers", "decision records tutorials measurements benchmarks"),
    Place(
        "Project settings", "project_settings", "members roles quotas network invite", None, True, "setting"
    ),
    Place("Members and roles", "project_settings", "invite", MANAGE, True, "setting"),
    Place("Quotas", "project_settings", "limits of a project slots storage", MANAGE, True, "setting"),
    Place("Approval rule", "project_settings", "single person second", MANAGE, True, "setting"),
    Place("Password", "account", "change login", kind="setting", anchor="in"),
    Place("Second factor", "account", "two totp authenticator login", kind="setting", anchor="in"),
    Place("Sessions", "account", "log out everywhere", kind="setting", anchor="sessions"),
    Place(
        "Sandbox for code of users",
        "settings",
        "minimum isolation bubblewrap",
        kind="setting",
        anchor="sandbox",
        admin_only=True,
    ),
    Place(
        "Network of projects",
        "settings",
        "internet code",
        kind="setting",
        anchor="network",
        admin_only=True,
    ),
    Place(
        "Allowed addresses of data",
        "settings",
        "url s3 https",
        kind="setting",
        anchor="addresses",
        admin_only=True,
    ),
)
ALSO = {
    "Home": "needs you start",
    "Datasets": "data sets",
    "Tokens": "api",
    "Workers": "machines gpus devices",
    "Audit": "log history",
}
"""Other words for pages of the navigation."""


class NamedPage(NamedTuple):
    """A page, an action or a setting that was found; `hint` names its project where it has one."""

    title: str
    hint: str
    url: str
    kind: str = "page"


def find_pages(request: HttpRequest, user: User, text: str) -> list[NamedPage]:
    """Return the pages whose names match `text` and that `user` may open."""
    projects = list(access.projects_of(user).order_by("name"))
    project = current_project(request, projects)
    return [*_of_navigation(user, project, text), *_other_places(user, project, text)]


def _of_navigation(user: User, project: Project | None, text: str) -> Iterator[NamedPage]:
    for entries in (navigation.ENTRIES, navigation.ADMINISTRATION):
        for link in navigation.visible_links(entries, user=user, project=project, here=""):
            if matches(text, link.label, ALSO.get(link.label, "")):
                yield NamedPage(link.label, "", link.url)


def _other_places(user: User, project: Project | None, text: str) -> Iterator[NamedPage]:
    for place in PLACES:
        if not matches(text, place.title, place.also) or (place.admin_only and not user.is_superuser):
            continue
        anchor = f"#{place.anchor}" if place.anchor else ""
        if not place.in_project:
            if place.needs is None or access.projects_of(user, place.needs).exists():
                yield NamedPage(place.title, "", reverse(place.name) + anchor, place.kind)
        elif project is not None and access.can(user, project, place.needs or Action.VIEW):
            address = reverse(place.name, args=[project.slug]) + anchor
            yield NamedPage(place.title, project.name, address, place.kind)
