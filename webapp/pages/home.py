"""Shows the home page."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs.queries import home as query
from jobs.queries.home import Home
from jobs.queries.runs import workers
from jobs.queries.runs.workers import Pool
from webapp.pages.shortcuts import Request, page, render_page
from webapp.scope import scope_of
from webapp.template_context import Context


@dataclass(frozen=True)
class HomePage(Context):
    """Approvals, jobs and the workers' load."""

    home: Home
    pools: list[Pool]


@page
def home(request: Request) -> HttpResponse:
    """Show pending approvals, running and finished jobs, and the workers' load."""
    context = HomePage(
        home=query.home_page(request.user, scope_of(request, request.user).project),
        pools=workers.pools_with_workers(request.user),
    )
    return render_page(request, "home.html", context, partial="live")


urls = [path("", home, name="home")]
