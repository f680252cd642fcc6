"""The page frame's template variables: navigation, projects and theme. They are computed lazily."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from jobs import access
from jobs.models import Project, User
from jobs.queries import home
from webapp import navigation as nav
from webapp.accounts.cookie_names import named

THEMES = ("auto", "light", "dark")
SESSION_KEY = "project"


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
    """The navigation round a page; empty for visitors who are not logged in."""

    projects: Sequence[Project] = ()
    project: Project | None = None
    links: Sequence[nav.Link] = ()
    administration: Sequence[nav.Link] = ()


def _build_frame(request: HttpRequest) -> Frame:
    user = request.user
    if not isinstance(user, User):
        return Frame()
    projects = list(access.projects_of(user).order_by("name"))
    project = current_project(request, projects)
    here = request.resolver_match.url_name or "" if request.resolver_match else ""
    counts = {"approvals": home.count_approvals_to_decide(user)}
    return Frame(
        projects=projects,
        project=project,
        links=nav.visible_links(nav.ENTRIES, user=user, project=project, here=here, counts=counts),
        administration=nav.visible_links(nav.ADMINISTRATION, user=user, project=project, here=here),
    )


def current_project(request: HttpRequest, projects: list[Project]) -> Project | None:
    """Return the project in the address, else the last selected one, else the first."""
    match = request.resolver_match
    slug = (match.kwargs.get("project") if match else None) or request.session.get(SESSION_KEY)
    return next((project for project in projects if project.slug == slug), projects[0] if projects else None)
