"""Reads endpoints, their replicas, and the versions that they serve."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, F, Q, QuerySet

from jobs import clock
from jobs.answers.registry.endpoints import EndpointOut, ReplicaOut
from jobs.messages.release import ReplicaReport
from jobs.models import Endpoint, RegisteredModel, Replica
from jobs.queries.registry import releases
from jobs.queries.registry.versions import version_number

LIVE_WITHIN = timedelta(seconds=15)
"""A replica is live if its last report is not older."""


def endpoint_of(model: RegisteredModel) -> Endpoint:
    """Return a model's endpoint with its production, staging and previous versions."""
    return Endpoint.objects.select_related("production", "staging", "previous").get(model=model)


def endpoint_out(endpoint: Endpoint) -> EndpointOut:
    """Return an endpoint's API representation, with its replicas."""
    target = releases.rollback_target(endpoint)
    return EndpointOut(
        name=endpoint.model.name,
        model=endpoint.model.name,
        project=endpoint.model.project.slug,
        production=version_number(endpoint.production),
        previous=version_number(endpoint.previous),
        staging=version_number(endpoint.staging),
        canary=None,
        shadow=None,
        down=endpoint.is_down,
        generation=endpoint.generation,
        rollback_to=version_number(target) if endpoint.production_id else None,
        replicas=[replica_out(replica) for replica in replicas_of(endpoint)],
    )


def replicas_of(endpoint: Endpoint) -> list[Replica]:
    """Return the endpoint's replicas, the latest report first."""
    return list(endpoint.replicas.order_by("-seen")[:50])


def live_replicas(endpoint: Endpoint) -> QuerySet[Replica]:
    """Return the replicas whose last report is not older than `LIVE_WITHIN`."""
    return endpoint.replicas.filter(seen__gte=clock.estimate() - LIVE_WITHIN)


class ReplicaCount(NamedTuple):
    """How many replicas an endpoint has live, and how many of these serve its newest generation."""

    alive: int
    current: int


def replica_counts(endpoints: Iterable[Endpoint]) -> dict[int, ReplicaCount]:
    """Count the live replicas by endpoint key. Endpoints without one are left out."""
    live = Replica.objects.filter(endpoint__in=list(endpoints), seen__gte=clock.estimate() - LIVE_WITHIN)
    is_current = Q(generation__gte=F("endpoint__generation"))
    counts = live.values("endpoint").annotate(alive=Count("pk"), current=Count("pk", filter=is_current))
    return {row["endpoint"]: ReplicaCount(row["alive"], row["current"]) for row in counts.order_by()}


def replica_out(replica: Replica, now: datetime | None = None) -> ReplicaOut:
    """Return a replica's API representation: its last report, and whether it is live."""
    report = ReplicaReport.model_validate(replica.report)
    return ReplicaOut(
        name=replica.name,
        generation=replica.generation,
        live=replica.seen >= (now or clock.estimate()) - LIVE_WITHIN,
        loading=report.loading,
        versions=report.versions,
        error=report.error,
        server=report.server,
        processes=list(report.processes),
        seen=replica.seen,
    )
