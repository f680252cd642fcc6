"""The storage that projects use."""

from django.http import HttpRequest
from ninja import Router

from jobs.answers.storage.storage import StorageOut
from jobs.queries.storage import storage as queries
from webapp.api.auth import actor

router = Router()


@router.get("/storage", response=StorageOut)
def get_storage(request: HttpRequest) -> StorageOut:
    """Return the bytes in the caller's projects by file kind."""
    return queries.storage_of_user(actor(request))
