"""What prediction servers ask and say. They know only this: signed releases, and bytes by digest."""

import asyncio
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.actions import releases
from jobs.contracts.release import ReplicaReport
from jobs.models import ReleaseRecord, User
from jobs.queries import history
from webapp.api.auth import actor, needs
from webapp.api.shapes import Json

router = Router()
POLL_SECONDS = 0.25


class Since(Schema):
    """`after` is the sequence of the last answer; `wait` how many seconds to hold the line."""

    after: int | None = Field(None, ge=0, le=2**63 - 1)
    wait: float = Field(0, ge=0, le=60)


class Releases(Schema):
    """The newest release of each endpoint that changed since, and the sequence to ask with next."""

    sequence: int
    releases: list[Json]


@router.get("/serving/releases", response=Releases, auth=needs("serve"))
async def list_releases(request: HttpRequest, since: Query[Since]) -> Json:
    """Wait until something newer than `after` is released, or the time is over."""
    user = actor(request)
    read = sync_to_async(_newest)
    give_up = time.monotonic() + since.wait
    while True:
        sequence, found = await read(user, since.after)
        if found or since.after is None or time.monotonic() >= give_up:
            return {"sequence": sequence, "releases": found}
        await asyncio.sleep(POLL_SECONDS)


def _newest(user: User, after: int | None) -> tuple[int, list[dict[str, Any]]]:
    sequence, records = history.newest_releases(after)
    return sequence, [record.body for record in _visible(user, records)]


def _visible(user: User, records: list[ReleaseRecord]) -> list[ReleaseRecord]:
    if user.is_service or user.is_superuser or not records:
        return records
    mine = set(access.visible_endpoints(user).values_list("pk", flat=True))
    return [record for record in records if record.endpoint_id in mine]


@router.post("/serving/reports", response={204: None}, auth=needs("serve"))
def report(request: HttpRequest, body: ReplicaReport) -> Status[Any]:
    """Say what a prediction server serves of one endpoint."""
    releases.report(body, by=actor(request))
    return Status(204, None)
