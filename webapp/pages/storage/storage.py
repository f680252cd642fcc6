"""Shows the storage that projects use, and the deletions that can be undone."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs.answers.storage.storage import StorageOut
from jobs.models import Deletion
from jobs.queries import paging
from jobs.queries.paging import Page
from jobs.queries.storage import deletions
from jobs.queries.storage import storage as queries
from webapp.pages.shortcuts import Request, page, render_page
from webapp.template_context import Context


@dataclass(frozen=True)
class StoragePage(Context):
    """The bytes that projects use, and the deletions that can be undone."""

    storage: StorageOut
    largest: int
    page: Page[Deletion]


@page
def storage(request: Request) -> HttpResponse:
    """Show bytes by project and kind, and the deletions that the user may undo."""
    usage = queries.storage_of_user(request.user)
    deleted = paging.page_of(
        deletions.restorable_deletions(request.user), cursor=request.GET.get("cursor"), order="-pk"
    )
    context = StoragePage(
        storage=usage,
        largest=max((row.bytes for row in usage.projects), default=0),
        page=deleted,
    )
    return render_page(request, "storage/storage.html", context)


urls = [path("storage", storage, name="storage")]
