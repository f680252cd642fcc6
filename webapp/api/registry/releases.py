"""Operations for prediction servers: signed releases, callers' access, and reports."""

import asyncio
import time
from typing import Annotated, Any, cast

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.actions.people.tokens import note_use
from jobs.actions.registry import replica_reports
from jobs.answers.registry.endpoints import AccessOut, KnownAccessesOut, ReleasesOut
from jobs.messages.release import ReplicaReport, SignedRelease
from jobs.models import User
from jobs.queries.people import tokens
from jobs.queries.registry import releases as queries
from webapp.api.auth import actor, caller, needs, prediction_server
from webapp.api.shapes import In

router = Router()
POLL_SECONDS = 0.25
"""The interval at which a waiting request reads the database."""
MAX_DIGESTS = 500


class Since(Schema):
    """The long poll's query parameters."""

    after: int | None = Field(None, ge=0, le=2**63 - 1, description="The `sequence` of the last response.")
    wait: float = Field(0, ge=0, le=60, description="How many seconds to wait for a new release.")


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["0" * 64])]


class KnownTokens(In):
    """The callers that a prediction server knows, by the SHA-256 of their tokens."""

    digests: list[Digest] = Field(max_length=MAX_DIGESTS)
    used: list[Digest] = Field(
        default_factory=list,
        max_length=MAX_DIGESTS,
        description="Those that have asked since the last request.",
    )


# Asynchronous, since a synchronous long poll would occupy a thread while it waits.
@router.get("/serving/releases", response=ReleasesOut, auth=needs("serve"))
async def list_releases(request: HttpRequest, since: Query[Since]) -> ReleasesOut:
    """Return the releases after `after`. Waits up to `wait` seconds for a new one."""
    user = actor(request)
    read = sync_to_async(_newest_releases)
    deadline = time.monotonic() + since.wait
    while True:
        sequence, batch = await read(user, since.after)
        if batch or since.after is None or time.monotonic() >= deadline:
            return ReleasesOut(sequence=sequence, releases=cast(list[SignedRelease], batch))
        await asyncio.sleep(POLL_SECONDS)


def _newest_releases(user: User, after: int | None) -> tuple[int, list[dict[str, Any]]]:
    """Return the newest sequence number, and the bodies in new releases that `user` may see."""
    sequence, records = queries.newest_releases(after)
    if records:
        served = set(access.served_endpoints(user).values_list("pk", flat=True))
        records = [record for record in records if record.endpoint_id in served]
    return sequence, [record.body for record in records]


@router.get("/serving/access", response=AccessOut, auth=needs("predict", "metrics"))
def get_serving_access(request: HttpRequest) -> AccessOut:
    """Return the endpoints that the caller may ask for predictions. Prediction servers ask with its token."""
    who = caller(request)
    return tokens.serving_access(who.user, who.token)


@router.post("/serving/access", response=KnownAccessesOut, auth=needs("serve"))
def read_known_access(request: HttpRequest, body: KnownTokens) -> KnownAccessesOut:  # noqa: ARG001
    """Return the access that tokens give now, so that a revoked one ends on prediction servers."""
    note_use(body.used)
    return KnownAccessesOut(tokens=tokens.known_access(body.digests))


@router.post("/serving/reports", response={204: None}, auth=needs("serve"))
def report_replica(request: HttpRequest, body: ReplicaReport) -> Status[None]:
    """Report the versions that a prediction server serves for an endpoint.

    The server has the name of its credential, whatever `replica` is.
    """
    replica_reports.record_report(body, server=prediction_server(request))
    return Status(204, None)
