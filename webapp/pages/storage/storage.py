"""Shows the storage that projects use, and the deletions that can be undone."""

from django.http import HttpResponse
from django.urls import path

from jobs.queries import paging
from jobs.queries.storage import deletions
from jobs.queries.storage import storage as queries
from webapp.pages.shortcuts import Request, page, render


@page
def storage(request: Request) -> HttpResponse:
    """Show bytes by project and kind, and the deletions that the user may undo."""
    shown = queries.storage_of_user(request.user)
    deleted = paging.page_of(
        deletions.restorable_deletions(request.user), cursor=request.GET.get("cursor"), order="-pk"
    )
    context = {
        "storage": shown,
        "largest": max((row.bytes for row in shown.projects), default=0),
        "page": deleted,
    }
    return render(request, "storage/storage.html", context)


urls = [path("storage", storage, name="storage")]
