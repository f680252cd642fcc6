"""Chooses the project whose rows lists show, from the switcher in the navigation."""

from urllib.parse import urlencode, urlsplit

from django.http import HttpResponse, QueryDict
from django.urls import Resolver404, get_script_prefix, path, resolve, reverse

from jobs import access
from jobs.models import Project
from webapp import navigation, scope
from webapp.pages.shortcuts import Request, action, redirect, referrer

NOT_KEPT = ("project", "cursor")
"""Parameters of a list's address that belong to the former scope."""


@action
def choose(request: Request) -> HttpResponse:
    """Make a project, or with an empty `project` all projects, the scope of lists.

    From the page of one thing this leads to the list in which it is; with `stay` it returns to the same page.
    """
    slug = request.POST.get("project", "")
    chosen = access.get_project(request.user, slug) if slug else None
    scope.choose(request, chosen)
    back = referrer(request) or reverse("home")
    return redirect(back if request.POST.get("stay") else _list_of_page(request, back, chosen))


def _list_of_page(request: Request, page: str, chosen: Project | None) -> str:
    """Return the address of the list, in the new scope, to which a page belongs; a list keeps its filters."""
    parts = urlsplit(page)
    try:
        match = resolve(f"/{parts.path.removeprefix(get_script_prefix())}")
    except Resolver404:
        return reverse("home")
    project = chosen or access.projects_of(request.user).filter(slug=match.kwargs.get("project")).first()
    entries = (*navigation.ENTRIES, *navigation.ADMINISTRATION)
    links = navigation.visible_links(entries, user=request.user, project=project, here=match.url_name or "")
    address = next((link.url for link in links if link.current), reverse("home"))
    if address != parts.path:
        return address
    kept = [
        (name, value)
        for name, values in QueryDict(parts.query).lists()
        for value in values
        if name not in NOT_KEPT
    ]
    return f"{address}?{urlencode(kept)}" if kept else address


urls = [path("projects/choose", choose, name="project_choose")]
