"""Finds pages of the product by their names, for the search dialog."""

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
    """

    title: str
    name: str
    also: str = ""
    needs: Action | None = None
    in_project: bool = False


PLACES = (
    Place("Find a good model", "find_model", "search automatically automl", Action.WRITE, in_project=True),
    Place("New experiment", "experiment_new", "train search", Action.WRITE, in_project=True),
    Place("Mesh designer", "mesh", "devices layout sharding parallel megatron gpu"),
    Place("Precision", "precision", "dtype policy float16 bfloat16 float8 float64", in_project=True),
    Place("Upload a data set", "dataset_upload", "dataset data csv images", Action.WRITE),
    Place("New version of code", "code_new", "upload own code script", Action.WRITE),
    Place("New model", "model_new", "register", Action.WRITE),
    Place("New project", "project_new"),
    Place("Project settings", "project_settings", "members roles quotas network", in_project=True),
    Place("New credential", "credential_new", "secret address", Action.WRITE, in_project=True),
    Place("Account", "account", "password second factor sessions"),
    Place("Help", "help", "documentation guide docs"),
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
    """A page that was found; `hint` names its project where it has one."""

    title: str
    hint: str
    url: str


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
        if not matches(text, place.title, place.also):
            continue
        if not place.in_project:
            if place.needs is None or access.projects_of(user, place.needs).exists():
                yield NamedPage(place.title, "", reverse(place.name))
        elif project is not None and access.can(user, project, place.needs or Action.VIEW):
            yield NamedPage(place.title, project.name, reverse(place.name, args=[project.slug]))
