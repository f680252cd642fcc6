"""What serves now, at which generation, on which replica."""

from django.http import HttpRequest
from ninja import Query, Router, Schema

from jobs import access
from jobs.queries import registry as queries
from webapp.api.auth import actor
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Json, Time

router = Router()
BY_NAME = {"name": "model__name"}


class ReplicaOut(Schema):
    """What a prediction server last said; `live` while it has said so within the last seconds."""

    name: str
    generation: int
    live: bool
    loading: int | None
    versions: dict[str, str]
    error: str | None
    seen: Time


class EndpointOut(Schema):
    """An endpoint by version numbers; `rollback_to` is where a rollback would lead."""

    name: str
    model: str
    project: str
    production: int | None
    previous: int | None
    staging: int | None
    canary: int | None
    shadow: int | None
    generation: int
    rollback_to: int | None
    replicas: list[ReplicaOut]


@router.get("/endpoints", response=Page[EndpointOut])
def list_endpoints(request: HttpRequest, paging: Query[Paging]) -> Page[Json]:
    """List the endpoints that you may see."""
    related = ("model__project", "production", "previous", "staging")
    rows = access.visible_endpoints(actor(request)).select_related(*related)
    return cut(rows, paging, queries.shown_endpoint, sorts=BY_NAME, default="name")


@router.get("/endpoints/{name}", response=EndpointOut)
def get_endpoint(request: HttpRequest, name: str) -> Json:
    """Return one endpoint."""
    return queries.shown_endpoint(access.get_endpoint(actor(request), name))
