from django.http import HttpResponse
from django.urls import path

from jobs.queries import home as query
from jobs.queries import workers
from webapp.pages.shortcuts import Request, page, render


@page
def home(request: Request) -> HttpResponse:
    """Show what needs the person, what runs, what finished and how full the workers are."""
    context = {"home": query.home(request.user), "pools": workers.pools(request.user)}
    return render(request, "home.html", context, partial="live")


urls = [path("", home, name="home")]
