"""Lists endpoints, shows one with its requests, replicas and history, rolls it back and takes it down."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import releases
from jobs.answers.registry.endpoints import ReplicaOut
from jobs.answers.registry.traffic import ReplicaTraffic
from jobs.messages.release import ModelProcess
from jobs.models import Endpoint, ModelVersion, RegisteredModel, ReleaseRecord
from jobs.queries import paging
from jobs.queries.paging import Page
from jobs.queries.registry import endpoints as queries
from jobs.queries.registry import releases as release_queries
from jobs.queries.registry import traffic
from jobs.queries.registry.endpoints import ReplicaCount
from webapp import prediction
from webapp.forms.registry.registry import DownForm, RollbackForm
from webapp.pages.registry import tryout
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render_page,
    valid_choice,
)
from webapp.scope import scope_of
from webapp.template_context import Context

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


@dataclass(frozen=True)
class EndpointsPage(Context):
    """The endpoints that the user may see, with their replicas and traffic."""

    page: Page[Endpoint]
    rows: list[tuple[Endpoint, ReplicaCount | None, tuple[float, float] | None]]
    live_only: bool
    address: str


@page
def endpoints(request: Request) -> HttpResponse:
    """List the endpoints that the user may see."""
    related = ("model__project", "production", "previous", "staging")
    rows = access.visible_endpoints(request.user).select_related(*related)
    rows = scope_of(request, request.user).limit(rows, "model__project")
    live_only = request.GET.get("all") != "1"
    if live_only:
        rows = rows.exclude(production=None, staging=None)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    rates, counts = traffic.recent_rates(listed.items), queries.replica_counts(listed.items)
    context = EndpointsPage(
        page=listed,
        rows=[(row, counts.get(row.pk), rates.get(row.pk)) for row in listed.items],
        live_only=live_only,
        address=prediction.address(),
    )
    return render_page(request, "registry/endpoints/list.html", context)


@page
def endpoint(request: Request, name: str) -> HttpResponse:
    """Show one endpoint; `?part=now` and `?part=first_request` are the parts that are reloaded live."""
    return _endpoint_page(request, name)


@dataclass(frozen=True)
class EndpointPage(Context):
    """An endpoint with its history and forms."""

    endpoint: Endpoint
    model: RegisteredModel
    address: str
    history: list[ReleaseRecord]
    keeps_forms: bool
    followed: str
    down_form: DownForm
    crumbs: Crumbs


def _endpoint_page(
    request: Request,
    name: str,
    *,
    status: int = 200,
    rollback_form: RollbackForm | None = None,
    down_form: DownForm | None = None,
) -> HttpResponse:
    """Show an endpoint. A refused form is shown again with its entries and errors."""
    row = access.get_endpoint(request.user, name)
    part = valid_choice(request.GET.get("part"), ("now", "first_request"), "")
    # A refused form stays with its message until the page is left.
    was_refused = rollback_form is not None or down_form is not None
    keeps_forms = was_refused or request.GET.get("keep") == "changes"
    followed = [part_name for part_name in FOLLOWED if not (keeps_forms and part_name == "changes")]
    context = EndpointPage(
        endpoint=row,
        model=row.model,
        address=prediction.address(),
        history=list(release_queries.releases_of_endpoint(row)[:HISTORY_ROWS]),
        keeps_forms=keeps_forms,
        followed=",".join(f"#endpoint-{part_name}:outerMorph" for part_name in followed),
        down_form=down_form or DownForm(),
        crumbs=crumbs(("Endpoints", reverse("endpoints")), name),
    )
    first_request = (_first_request_context(row),) if part != "now" else ()
    rollback_section = rollback_context(request, row, rollback_form)
    contexts = (context, _live_context(row), rollback_section, *first_request)
    return render_page(request, "registry/endpoints/endpoint.html", *contexts, partial=part, status=status)


@dataclass(frozen=True)
class RollbackSection(Context):
    """The form that rolls production back, and the version that it restores."""

    may_serve: bool
    target: ModelVersion | None
    rollback_form: RollbackForm


def rollback_context(
    request: Request, row: Endpoint, refused_form: RollbackForm | None = None
) -> RollbackSection:
    """Return the permission to roll back, the target version and the form, or a refused form."""
    return RollbackSection(
        may_serve=access.can(request.user, row.model.project, Action.SERVE),
        target=release_queries.rollback_target(row) if row.production else None,
        rollback_form=refused_form or RollbackForm(),
    )


@dataclass(frozen=True)
class LiveSection(Context):
    """The replicas with their processes and last minute's requests."""

    replicas: list[tuple[ReplicaOut, ReplicaTraffic | None, list[tuple[str, str, ModelProcess | None]]]]
    count: ReplicaCount | None


def _live_context(row: Endpoint) -> LiveSection:
    by_replica = {replica.name: replica for replica in traffic.traffic_by_replica(row)}
    replicas = [
        (replica, by_replica.get(replica.name), _version_processes(replica))
        for replica in queries.replicas_out(row)
    ]
    return LiveSection(replicas=replicas, count=queries.replica_counts([row]).get(row.pk))


def _version_processes(replica: ReplicaOut) -> list[tuple[str, str, ModelProcess | None]]:
    """Return version, state and process for each version that a replica has loaded."""
    processes = {str(process.version): process for process in replica.processes}
    return [
        (number, STATES.get(state, state.lower()) if replica.live else "gone", processes.get(number))
        for number, state in sorted(replica.versions.items(), key=lambda item: -int(item[0]))
    ]


@dataclass(frozen=True)
class FirstRequestSection(Context):
    """The command that sends the first request, until there was one."""

    was_asked: bool
    curl: str = ""


def _first_request_context(row: Endpoint) -> FirstRequestSection:
    if traffic.has_traffic(row):
        return FirstRequestSection(was_asked=True)
    version = row.production if not row.is_down else None
    example = tryout.example_body(version) if version is not None else ""
    return FirstRequestSection(
        was_asked=False, curl=prediction.curl_line(row.model.name, example) if example else ""
    )


@form_page
def rollback(request: Request, name: str) -> HttpResponse:
    """Roll production back to the previous version; a refused form is shown again with its reason."""
    row = access.get_endpoint(request.user, name, Action.SERVE)
    if request.method != "POST":
        return redirect("endpoint", name)
    form = RollbackForm(request.POST)
    record = form.apply(lambda values: releases.rollback(row, reason=values["reason"], by=request.user))
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
    record = form.apply(lambda values: releases.take_down(row, reason=values["reason"], by=request.user))
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
