"""Shows the home page."""

from django.http import HttpResponse
from django.urls import path

from jobs.queries import home as query
from jobs.queries.runs import workers
from webapp.pages.shortcuts import Request, page, render


@page
def home(request: Request) -> HttpResponse:
    """Show pending approvals, running and finished jobs, and the load of the workers."""
    context = {"home": query.home_page(request.user), "pools": workers.pools_with_workers(request.user)}
    return render(request, "home.html", context, partial="live")


urls = [path("", home, name="home")]
