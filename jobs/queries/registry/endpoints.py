"""Reads endpoints, their replicas, and the versions that they serve."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, F, Q, QuerySet

from jobs import clock
from jobs.answers.registry.endpoints import EndpointOut, ReplicaOut
from jobs.messages.release import ReplicaReport
from jobs.models import Endpoint, RegisteredModel, Replica
from jobs.queries.people.tokens import server_credentials
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
        replicas=replicas_out(endpoint),
    )


def replicas_out(endpoint: Endpoint) -> list[ReplicaOut]:
    """Return the endpoint's replicas, the latest report first."""
    rows = list(endpoint.replicas.order_by("-seen")[:50])
    cut_off = {row.pk: since for row, since in cut_off_replicas(rows)}
    return [replica_out(row, cut_off.get(row.pk)) for row in rows]


def replica_name(server: str, instance: int) -> str:
    """Return the name of a credential's server. Further servers of one home have a number."""
    return server if instance == 1 else f"{server}/{instance}"


def cut_off_replicas(replicas: Iterable[Replica]) -> list[tuple[Replica, datetime]]:
    """Return the replicas that learn of no release, each with the time of its last news.

    These are the ones that report it, and those that report no more, unless they have stopped or their
    credential was revoked: they may still answer, with the releases that they had.
    """
    now = clock.estimate()
    found, lost = [], []
    for replica in replicas:
        silent = replica.report.get("silent_seconds")
        if replica.stopped:
            continue
        if replica.seen < now - LIVE_WITHIN:
            lost.append((replica, replica.seen))
        elif silent is not None:
            found.append((replica, replica.seen - timedelta(seconds=silent)))
    if lost:
        known = set(server_credentials().values_list("name", flat=True))
        found += [(replica, since) for replica, since in lost if replica.name.split("/")[0] in known]
    return sorted(found, key=lambda pair: pair[0].name)


def live_replicas(endpoint: Endpoint) -> QuerySet[Replica]:
    """Return the replicas that have reported within `LIVE_WITHIN` and have not stopped."""
    return endpoint.replicas.filter(_is_live())


def _is_live() -> Q:
    return Q(seen__gte=clock.estimate() - LIVE_WITHIN, stopped=False)


class ReplicaCount(NamedTuple):
    """How many replicas an endpoint has live, and how many of these serve its newest generation."""

    alive: int
    current: int


def replica_counts(endpoints: Iterable[Endpoint]) -> dict[int, ReplicaCount]:
    """Count the live replicas by endpoint key. Endpoints without one are left out."""
    live = Replica.objects.filter(_is_live(), endpoint__in=list(endpoints))
    is_current = Q(generation__gte=F("endpoint__generation"))
    counts = live.values("endpoint").annotate(alive=Count("pk"), current=Count("pk", filter=is_current))
    return {row["endpoint"]: ReplicaCount(row["alive"], row["current"]) for row in counts.order_by()}


def replica_out(replica: Replica, cut_off_since: datetime | None = None) -> ReplicaOut:
    """Return a replica's API representation: its last report, and whether it is live."""
    report = ReplicaReport.model_validate(replica.report)
    return ReplicaOut(
        name=replica.name,
        generation=replica.generation,
        live=not replica.stopped and replica.seen >= clock.estimate() - LIVE_WITHIN,
        stopped=replica.stopped,
        cut_off_since=cut_off_since,
        loading=report.loading,
        versions=report.versions,
        error=report.error,
        server=report.server,
        processes=list(report.processes),
        seen=replica.seen,
    )
