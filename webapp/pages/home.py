from django.http import HttpResponse
from django.urls import path

from webapp.pages.shortcuts import Request, page, render


@page
def home(request: Request) -> HttpResponse:
    """Show what needs the person, what runs, what finished and how full the workers are."""
    return render(request, "home.html", {})


urls = [path("", home, name="home")]
