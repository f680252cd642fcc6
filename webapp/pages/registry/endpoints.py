"""Lists endpoints, shows one with its requests, replicas and history, rolls it back and takes it down."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import releases
from jobs.answers.registry.endpoints import ReplicaOut
from jobs.messages.release import ModelProcess
from jobs.models import Endpoint
from jobs.queries import paging
from jobs.queries.registry import endpoints as queries
from jobs.queries.registry import releases as release_queries
from jobs.queries.registry import traffic
from webapp import prediction
from webapp.forms.registry.registry import DownForm, RollbackForm
from webapp.pages.registry import tryout
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render,
    valid_choice,
)

HISTORY_ROWS = 10
STATES = {
    "START": "preparing",
    "LOADING": "preparing",
    "AVAILABLE": "ready",
    "UNLOADING": "stopping",
    "END": "failed",
}
"""The state of a version at a prediction server, by the name of TensorFlow Serving."""
FOLLOWED = ("badges", "actions", "address", "replicas", "history", "changes")
"""The parts of the page that are drawn again together with its figures. Typed text stays in them."""


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
    return render(request, "registry/endpoints/list.html", context)


@page
def endpoint(request: Request, name: str) -> HttpResponse:
    """Show one endpoint; `?part=now` and `?part=first_request` are the parts that are reloaded live."""
    return _endpoint_page(request, name)


def _endpoint_page(request: Request, name: str, *, status: int = 200, **instead: Any) -> HttpResponse:
    """Show an endpoint as it is now; `instead` overrides context values, such as an invalid form."""
    row = access.get_endpoint(request.user, name)
    part = valid_choice(request.GET.get("part"), ("now", "first_request"), "")
    # A refused form stays with its message until the page is left.
    keeps_forms = bool(instead) or request.GET.get("keep") == "changes"
    followed = [each for each in FOLLOWED if not (keeps_forms and each == "changes")]
    context = {
        "endpoint": row,
        "model": row.model,
        "address": prediction.address(),
        "history": list(release_queries.releases_of_endpoint(row)[:HISTORY_ROWS]),
        "keeps_forms": keeps_forms,
        "followed": ",".join(f"#endpoint-{each}:outerMorph" for each in followed),
        "down_form": DownForm(),
        **_now(row),
        **rollback_context(request, row),
    }
    if part != "now":
        context |= {"crumbs": crumbs(("Endpoints", reverse("endpoints")), name), **_first_request(row)}
    return render(request, "registry/endpoints/endpoint.html", context | instead, partial=part, status=status)


def rollback_context(request: Request, row: Endpoint) -> dict[str, Any]:
    """Return the context of the rollback form: the permission, the target version and the form."""
    return {
        "may_serve": access.can(request.user, row.model.project, Action.SERVE),
        "target": release_queries.rollback_target(row) if row.production else None,
        "rollback_form": RollbackForm(),
    }


def _now(row: Endpoint) -> dict[str, Any]:
    """Return the replicas with their processes and requests of the last minute."""
    asked = {replica.name: replica for replica in traffic.traffic_by_replica(row)}
    shown = [queries.replica_out(replica) for replica in queries.replicas_of(row)]
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
    if traffic.has_traffic(row):
        return {"was_asked": True}
    version = row.production if not row.is_down else None
    example = tryout.example_body(version) if version is not None else ""
    return {"was_asked": False, "curl": prediction.curl_line(row.model.name, example) if example else ""}


@form_page
def rollback(request: Request, name: str) -> HttpResponse:
    """Roll production back to the previous version; a refused form is shown again with its reason."""
    row = access.get_endpoint(request.user, name, Action.SERVE)
    if request.method != "POST":
        return redirect("endpoint", name)
    form = RollbackForm(request.POST)
    record = form.apply(lambda given: releases.rollback(row, reason=given["reason"], by=request.user))
    if record is None:
        return _endpoint_page(request, name, status=form.status, rollback_form=form)
    number = record.version.number if record.version else "?"
    notify(request, f"{name} is rolled back to v{number} as generation {record.generation}.")
    return redirect("endpoint", name)


@form_page
def take_down(request: Request, name: str) -> HttpResponse:
    """Take the endpoint down; a refused form is shown again with its reason."""
    row = access.get_endpoint(request.user, name, Action.SERVE)
    if request.method != "POST":
        return redirect("endpoint", name)
    form = DownForm(request.POST)
    record = form.apply(lambda given: releases.take_down(row, reason=given["reason"], by=request.user))
    if record is None:
        return _endpoint_page(request, name, status=form.status, down_form=form)
    notify(request, f"{name} is down. Predictions are answered with 404.")
    return redirect("endpoint", name)


@action
def bring_up(request: Request, name: str) -> HttpResponse:
    """Serve the versions again that the endpoint served before."""
    releases.bring_up(access.get_endpoint(request.user, name), by=request.user)
    notify(request, f"{name} is up again.")
    return redirect("endpoint", name)


urls = [
    path("endpoints", endpoints, name="endpoints"),
    path("endpoints/<slug:name>", endpoint, name="endpoint"),
    path("models/<slug:name>/rollback", rollback, name="model_rollback"),
    path("models/<slug:name>/down", take_down, name="model_take_down"),
    path("models/<slug:name>/up", bring_up, name="model_bring_up"),
]
