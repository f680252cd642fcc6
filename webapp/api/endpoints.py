"""Endpoints and the versions that they serve."""

from django.http import HttpRequest
from ninja import Query, Router

from jobs import access
from jobs.contracts.answers.endpoints import EndpointOut
from jobs.queries import registry as queries
from webapp.api.auth import actor
from webapp.api.paging import Page, Paging, paginate

router = Router()
BY_NAME = {"name": "model__name"}


@router.get("/endpoints", response=Page[EndpointOut])
def list_endpoints(request: HttpRequest, paging: Query[Paging]) -> Page[EndpointOut]:
    """List the endpoints of the caller's projects."""
    related = ("model__project", "production", "previous", "staging")
    rows = access.visible_endpoints(actor(request)).select_related(*related)
    return paginate(Page[EndpointOut], rows, paging, queries.shown_endpoint, sorts=BY_NAME, default="name")


@router.get("/endpoints/{name}", response=EndpointOut)
def get_endpoint(request: HttpRequest, name: str) -> EndpointOut:
    """Return an endpoint with its replicas."""
    return queries.shown_endpoint(access.get_endpoint(actor(request), name))
