"""Lists endpoints, and shows one with its generation, replicas and history."""

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.models import Endpoint
from jobs.queries import paging, releases
from jobs.queries import registry as queries
from webapp import prediction
from webapp.pages.registry import rollback_context
from webapp.pages.shortcuts import Request, crumbs, page, render, valid_choice

HISTORY_ROWS = 10


@page
def endpoints(request: Request) -> HttpResponse:
    """List the endpoints that the user may see."""
    related = ("model__project", "production", "previous", "staging")
    rows = access.visible_endpoints(request.user).select_related(*related)
    live_only = request.GET.get("all") != "1"
    if live_only:
        rows = rows.exclude(production=None, staging=None)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    context = {
        "page": listed,
        "rows": [(row, _summary(row)) for row in listed.items],
        "live_only": live_only,
        "address": prediction.address(),
    }
    return render(request, "endpoints/list.html", context)


def _summary(row: Endpoint) -> dict[str, int]:
    """Count the replicas that are alive, and those of them that serve the newest generation."""
    alive = queries.live_replicas(row)
    return {"alive": alive.count(), "current": alive.filter(generation__gte=row.generation).count()}


@page
def endpoint(request: Request, name: str) -> HttpResponse:
    """Show one endpoint; `?part=now` is the part that is reloaded live."""
    row = access.get_endpoint(request.user, name)
    context = {
        "endpoint": row,
        "model": row.model,
        "replicas": [queries.shown_replica(replica) for replica in queries.replicas_of(row)],
        "history": list(releases.of_endpoint(row)[:HISTORY_ROWS]),
        "address": prediction.address(),
        "crumbs": crumbs(("Endpoints", reverse("endpoints")), name),
        **_summary(row),
        **rollback_context(request, row.model, row),
    }
    part = valid_choice(request.GET.get("part"), ("now",), "")
    return render(request, "endpoints/endpoint.html", context, partial=part)


urls = [
    path("endpoints", endpoints, name="endpoints"),
    path("endpoints/<slug:name>", endpoint, name="endpoint"),
]
