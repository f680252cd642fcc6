"""The page frame's template variables: navigation, projects and theme. They are computed lazily."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from jobs import access
from jobs.models import Project, User
from jobs.queries import home
from webapp import navigation as nav
from webapp import scope
from webapp.accounts.cookie_names import named

THEMES = ("auto", "light", "dark")


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the variables for page.html."""
    theme = request.COOKIES.get(named("theme"), "")
    return {
        "theme": theme if theme in THEMES else "auto",
        "nav_collapsed": request.COOKIES.get(named("nav")) == "collapsed",
        # Lazy: parts of pages, which htmx loads often, do not show the frame and skip its queries.
        "frame": SimpleLazyObject(lambda: _build_frame(request)),
    }


class Frame(NamedTuple):
    """The navigation round a page; empty for visitors who are not logged in.

    Attributes:
        projects: the projects that the user may see.
        scope: the project that the user chose; None for all projects.
        project: that of links that need one: of the address, else the last chosen, else the first.
        other: the project of the page, if the user chose another one.
        links: the navigation.
        administration: its lower part.
    """

    projects: Sequence[Project] = ()
    scope: Project | None = None
    project: Project | None = None
    other: Project | None = None
    links: Sequence[nav.Link] = ()
    administration: Sequence[nav.Link] = ()

    @property
    def only(self) -> Project | None:
        """Return the project of a user who has only one: its rows are all that there is to see."""
        return self.projects[0] if len(self.projects) == 1 else None


def _build_frame(request: HttpRequest) -> Frame:
    user = request.user
    if not isinstance(user, User):
        return Frame()
    projects = list(access.projects_of(user).order_by("name"))
    project = current_project(request, projects)
    chosen = scope.chosen_project(request, projects)
    of_page = scope.project_of_page(request, projects) if chosen else None
    here = request.resolver_match.url_name or "" if request.resolver_match else ""
    counts = {"approvals": home.count_approvals_to_decide(user)}
    return Frame(
        projects=projects,
        scope=chosen,
        project=project,
        other=of_page if of_page != chosen else None,
        links=nav.visible_links(
            nav.ENTRIES, user=user, project=project, here=here, counts=counts, scope=chosen
        ),
        administration=nav.visible_links(nav.ADMINISTRATION, user=user, project=project, here=here),
    )


def current_project(request: HttpRequest, projects: list[Project]) -> Project | None:
    """Return the project in the address, else the last selected one, else the first."""
    match = request.resolver_match
    slug = (match.kwargs.get("project") if match else None) or request.session.get(scope.PROJECT_KEY)
    return next((project for project in projects if project.slug == slug), projects[0] if projects else None)
