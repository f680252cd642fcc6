"""Operations on endpoints and the versions that they serve."""

from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.actions.registry import releases, traffic_split
from jobs.answers.registry.endpoints import EndpointOut, ServedOut
from jobs.answers.registry.traffic import TrafficOut
from jobs.queries.registry import endpoints as queries
from jobs.queries.registry import traffic
from webapp.api.auth import actor, needs
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import In, Number

router = Router()
BY_NAME = {"name": "model__name"}


@router.get("/endpoints", response=Page[EndpointOut])
def list_endpoints(request: HttpRequest, paging: Query[Paging]) -> Page[EndpointOut]:
    """List the endpoints in the caller's projects."""
    related = ("model__project", "production", "previous", "staging")
    rows = access.visible_endpoints(actor(request)).select_related(*related)
    return paginate(Page[EndpointOut], rows, paging, queries.endpoint_out, sorts=BY_NAME, default="name")


class DownIn(In):
    """The reason for taking an endpoint down."""

    reason: str = Field(min_length=1, max_length=2000, examples=["it leaks personal data"])


class UpIn(In):
    """An optional reason for bringing an endpoint up again."""

    reason: str = Field("", max_length=2000)


class TrafficIn(In):
    """The versions among which an endpoint divides its requests. Only the defaults are available yet."""

    canary: Number | None = Field(None, description="The version that answers a part of the requests.")
    shadow: Number | None = Field(None, description="The version that gets copies of the requests.")
    traffic: dict[str, int] = Field(
        traffic_split.ALL_TO_PRODUCTION, description="Percent of the requests by stage."
    )


@router.get("/endpoints/{name}", response=EndpointOut)
def get_endpoint(request: HttpRequest, name: str) -> EndpointOut:
    """Return an endpoint with its replicas."""
    return queries.endpoint_out(access.get_endpoint(actor(request), name))


@router.patch("/endpoints/{name}", response=EndpointOut, auth=needs("approve"))
def change_traffic(request: HttpRequest, name: str, body: TrafficIn) -> EndpointOut:
    """Divide an endpoint's requests among versions. Values other than the defaults are a 422."""
    endpoint = access.get_endpoint(actor(request), name)
    traffic_split.change_split(
        endpoint, canary=body.canary, shadow=body.shadow, traffic=body.traffic, by=actor(request)
    )
    return queries.endpoint_out(endpoint)


class TrafficQuery(Schema):
    """The requests' time and version."""

    range: Literal["15m", "1h", "6h", "1d", "7d", "30d"] = Field("1h", description="The time until now.")
    version: int | None = Field(None, ge=0, le=2**31 - 1, description="Only requests to this version.")


@router.get("/endpoints/{name}/traffic", response=TrafficOut)
def get_traffic(request: HttpRequest, name: str, query: Query[TrafficQuery]) -> TrafficOut:
    """Return the requests to an endpoint: rate, latency, errors and batches over time.

    Percentiles come from histograms whose buckets are 4 % wide, so they are at most 2 % from the measured
    value. Counts over 10 s are kept for an hour, over a minute for a day, and over an hour for 30 days.
    """
    endpoint = access.get_endpoint(actor(request), name)
    return traffic.traffic_of_endpoint(endpoint, query.range, version=query.version)


@router.post("/endpoints/{name}/down", response={202: ServedOut}, auth=needs("approve"))
@idempotent
def take_endpoint_down(request: HttpRequest, name: str, body: DownIn) -> Status[ServedOut]:
    """Take an endpoint down: prediction servers answer 404 for its model until it is brought up again."""
    endpoint = access.get_endpoint(actor(request), name)
    record = releases.take_down(endpoint, reason=body.reason, by=actor(request))
    return Status(202, ServedOut(generation=record.generation, down=True))


@router.post("/endpoints/{name}/up", response={202: ServedOut}, auth=needs("approve"))
@idempotent
def bring_endpoint_up(request: HttpRequest, name: str, body: UpIn | None = None) -> Status[ServedOut]:
    """Serve the versions again that an endpoint served when it was taken down."""
    endpoint = access.get_endpoint(actor(request), name)
    record = releases.bring_up(endpoint, reason=body.reason if body else "", by=actor(request))
    return Status(202, ServedOut(generation=record.generation, down=False))
