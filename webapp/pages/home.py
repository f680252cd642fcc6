"""Shows the home page."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.people import dismissals
from jobs.queries import home as query
from jobs.queries.dismissals import Need
from jobs.queries.home import Home
from jobs.queries.runs import workers
from jobs.queries.runs.workers import Pool
from webapp.context import current_project
from webapp.forms.people.dismissals import DismissForm
from webapp.pages.shortcuts import Request, action, page, redirect, render_page
from webapp.scope import scope_of
from webapp.template_context import Context


@dataclass(frozen=True)
class HomePage(Context):
    """Approvals, jobs and the workers' load.

    `find_in` is the slug of the project in which a good model can be searched; empty without the right.
    """

    home: Home
    pools: list[Pool]
    find_in: str


@page
def home(request: Request) -> HttpResponse:
    """Show pending approvals, running and finished jobs, and the workers' load."""
    project = current_project(request, list(access.projects_of(request.user).order_by("name")))
    may_write = project is not None and access.can(request.user, project, Action.WRITE)
    context = HomePage(
        home=query.home_page(request.user, scope_of(request, request.user).project),
        pools=workers.pools_with_workers(request.user),
        find_in=project.slug if project is not None and may_write else "",
    )
    return render_page(request, "home.html", context, partial="live")


@action
def dismiss_need(request: Request) -> HttpResponse:
    """Hide a thing from the user's list, until something new happens to it."""
    values = DismissForm.read(request.POST)
    dismissals.dismiss(Need(values.kind, values.row, values.state), by=request.user)
    return redirect("home")


@action
def restore_needs(request: Request) -> HttpResponse:
    """Show everything again that the user has dismissed."""
    dismissals.restore_dismissed(by=request.user)
    return redirect("home")


urls = [
    path("", home, name="home"),
    path("needs/dismiss", dismiss_need, name="need_dismiss"),
    path("needs/restore", restore_needs, name="needs_restore"),
]
