"""Lists endpoints, and shows one with its requests, replicas and history."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.contracts.answers.endpoints import ReplicaOut
from jobs.contracts.release import ModelProcess
from jobs.models import Endpoint
from jobs.queries import paging, releases, traffic
from jobs.queries import registry as queries
from webapp import prediction
from webapp.pages import tryout
from webapp.pages.registry import rollback_context
from webapp.pages.shortcuts import Request, crumbs, page, render, valid_choice

HISTORY_ROWS = 10
STATES = {
    "START": "preparing",
    "LOADING": "preparing",
    "AVAILABLE": "ready",
    "UNLOADING": "stopping",
    "END": "failed",
}
"""The state of a version at a prediction server, by the name of TensorFlow Serving."""


@page
def endpoints(request: Request) -> HttpResponse:
    """List the endpoints that the user may see."""
    related = ("model__project", "production", "previous", "staging")
    rows = access.visible_endpoints(request.user).select_related(*related)
    live_only = request.GET.get("all") != "1"
    if live_only:
        rows = rows.exclude(production=None, staging=None)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    rates, counts = traffic.recent_rates(listed.items), queries.replica_counts(listed.items)
    context = {
        "page": listed,
        "rows": [(row, counts.get(row.pk), rates.get(row.pk)) for row in listed.items],
        "live_only": live_only,
        "address": prediction.address(),
    }
    return render(request, "endpoints/list.html", context)


@page
def endpoint(request: Request, name: str) -> HttpResponse:
    """Show one endpoint; `?part=now` is the part that is reloaded live."""
    row = access.get_endpoint(request.user, name)
    part = valid_choice(request.GET.get("part"), ("now",), "")
    context = {"endpoint": row, "model": row.model, **_now(row)}
    if not part:
        context |= {
            "history": list(releases.of_endpoint(row)[:HISTORY_ROWS]),
            "address": prediction.address(),
            "crumbs": crumbs(("Endpoints", reverse("endpoints")), name),
            **_first_request(row),
            **rollback_context(request, row.model, row),
        }
    return render(request, "endpoints/endpoint.html", context, partial=part)


def _now(row: Endpoint) -> dict[str, Any]:
    """Return the replicas with their processes and requests of the last minute."""
    asked = {replica.name: replica for replica in traffic.by_replica(row)}
    shown = [queries.shown_replica(replica) for replica in queries.replicas_of(row)]
    replicas = [(replica, asked.get(replica.name), _processes(replica)) for replica in shown]
    return {"replicas": replicas, "count": queries.replica_counts([row]).get(row.pk)}


def _processes(replica: ReplicaOut) -> list[tuple[str, str, ModelProcess | None]]:
    """Return the version, state and process of each loaded version of a replica."""
    processes = {str(process.version): process for process in replica.processes}
    return [
        (number, STATES.get(state, state.lower()) if replica.live else "gone", processes.get(number))
        for number, state in sorted(replica.versions.items(), key=lambda item: -int(item[0]))
    ]


def _first_request(row: Endpoint) -> dict[str, Any]:
    """Return how to send the first request, until there was one."""
    if traffic.was_asked(row):
        return {"was_asked": True}
    version = row.production if not row.is_down else None
    example = tryout.example_body(version) if version is not None else ""
    return {"was_asked": False, "curl": prediction.curl_line(row.model.name, example) if example else ""}


urls = [
    path("endpoints", endpoints, name="endpoints"),
    path("endpoints/<slug:name>", endpoint, name="endpoint"),
]
