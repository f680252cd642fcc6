from django.http import HttpResponse
from django.urls import path

from webapp.pages.shortcuts import Request, page, render


@page
def show(request: Request, **_: str) -> HttpResponse:
    """Show the page."""
    return render(request, "home.html")


urls = [path("audit", show, name="audit")]
