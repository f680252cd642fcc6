"""Operations on projects' quotas."""

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from jobs import access
from jobs.actions.people import quota_changes
from jobs.answers.people.quotas import QuotasOut
from jobs.errors import StaleState
from jobs.queries.people import quotas as queries
from webapp.api import etags
from webapp.api.auth import actor, needs
from webapp.api.shapes import In
from webapp.http_errors import StaleEtag

router = Router()
HIGHEST = queries.HIGHEST


class QuotasChange(In):
    """The quotas to change; null means the installation's default."""

    slots: int | None = Field(None, ge=1, le=HIGHEST["slots"], examples=[8])
    bytes: int | None = Field(None, ge=1, le=HIGHEST["bytes"], examples=[50_000_000_000])
    jobs: int | None = Field(None, ge=1, le=HIGHEST["jobs"], examples=[200])
    uploads: int | None = Field(None, ge=1, le=HIGHEST["uploads"], examples=[20])
    events: int | None = Field(None, ge=1, le=HIGHEST["events"], examples=[50_000])


@router.get("/projects/{slug}/quotas", response=QuotasOut)
def get_quotas(request: HttpRequest, slug: str, response: HttpResponse) -> QuotasOut:
    """Return a project's quotas and their use. The `ETag` changes with the quotas, not with the use."""
    project = access.get_project(actor(request), slug)
    etags.set_etag(response, queries.quotas_revision(project))
    return queries.quotas_out(project)


@router.patch("/projects/{slug}/quotas", response=QuotasOut, auth=needs("admin"))
def change_quotas(request: HttpRequest, slug: str, body: QuotasChange, response: HttpResponse) -> QuotasOut:
    """Change a project's quotas. Fields that are left out stay as they are.

    For the installation's administrators. What already exceeds a quota is kept.
    """
    project = access.get_project(actor(request), slug)
    access.require_admin(actor(request))
    revision = queries.quotas_revision(project)
    etags.require_match(request, revision)
    seen = revision if "If-Match" in request.headers else None
    try:
        quota_changes.change_quotas(project, body.dict(exclude_unset=True), seen=seen, by=actor(request))
    except StaleState as error:  # changed since the check above
        raise StaleEtag(error.message) from error
    etags.set_etag(response, queries.quotas_revision(project))
    return queries.quotas_out(project)
