"""Lists registered models, and manages the aliases, uploads and rollback of one."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions import registration, registry, releases
from jobs.errors import BadInput, Conflict, NotFound
from jobs.models import Endpoint, RegisteredModel
from jobs.queries import gate_rules, paging, versions
from jobs.queries import registry as queries
from jobs.queries import releases as release_queries
from webapp.forms.registry import AliasForm, DownForm, ModelForm, RollbackForm, UploadForm
from webapp.pages import versions as version_pages
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render,
    writable_projects,
)
from webapp.uploads import file_on_disk

HISTORY_ROWS = 20


@page
def models(request: Request) -> HttpResponse:
    """List the models that the user may see, with their production versions."""
    rows = queries.models_for_lists(request.user)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"), order="name")
    names = versions.metric_names(m.endpoint.production for m in listed.items if m.endpoint.production)
    context = {
        "page": listed,
        "names": names,
        "rows": [(m, _production_figures(m.endpoint)) for m in listed.items],
        "may_create": writable_projects(request.user).exists(),
    }
    return render(request, "registry/list.html", context)


def _production_figures(endpoint: Endpoint) -> dict[str, float | None]:
    return versions.figures(endpoint.production) if endpoint.production else {}


@form_page
def new(request: Request) -> HttpResponse:
    """Create a model."""
    form = ModelForm(request.POST or None, projects=writable_projects(request.user))
    if form.is_valid():
        given = form.cleaned_data
        try:
            model = registry.create_model(
                given["project"], given["name"], description=given["description"], by=request.user
            )
        except (BadInput, Conflict) as error:
            form.add_error("name", error.message)
        else:
            notify(request, f"Model {model.name} is created. Add its first version.")
            return redirect("model", model.name)
    context = {"form": form, "crumbs": crumbs(("Models", reverse("models")), "New model")}
    return render(request, "registry/new.html", context, status=422 if form.errors else 200)


@page
def model(request: Request, name: str) -> HttpResponse:
    """Show one model: its production version, all versions and its history."""
    row = access.get_model(request.user, name)
    endpoint = access.get_endpoint(request.user, name)
    listed = paging.page_of(queries.versions_of(row), cursor=request.GET.get("cursor"), order="-number")
    may_write = access.can(request.user, row.project, Action.WRITE)
    context = {
        "model": row,
        "endpoint": endpoint,
        "crumbs": crumbs(("Models", reverse("models")), name),
        "page": listed,
        "rows": [(v, queries.stage_of(v, endpoint), versions.figures(v)) for v in listed.items],
        "names": versions.metric_names(listed.items),
        "live_figures": _production_figures(endpoint),
        "history": list(release_queries.of_endpoint(endpoint)[:HISTORY_ROWS]),
        "aliases": row.aliases.select_related("version").order_by("name"),
        "alias_form": AliasForm(versions=listed.items) if may_write and listed.items else None,
        "upload_form": UploadForm() if may_write else None,
        "may_write": may_write,
        "gates": gate_rules.shown(row),
        "may_edit_gates": access.can(request.user, row.project, Action.APPROVE),
        **rollback_context(request, row, endpoint),
    }
    return render(request, "registry/model.html", context)


def rollback_context(request: Request, row: RegisteredModel, endpoint: Endpoint) -> dict[str, Any]:
    """Return the context of the rollback form: the permission, the target version and the form."""
    target = release_queries.rollback_target(endpoint) if endpoint.production else None
    may_serve = access.can(request.user, row.project, Action.SERVE)
    return {
        "may_serve": may_serve,
        "target": target,
        "rollback_form": RollbackForm(),
        "down_form": DownForm(auto_id="down_%s"),
    }


@action
def upload(request: Request, name: str) -> HttpResponse:
    """Create a version from an uploaded file."""
    row = access.get_model(request.user, name, Action.WRITE)
    with file_on_disk(request, "file") as file:
        stored = registration.store_upload(file)
    version = registration.add_uploaded(row, stored, by=request.user)
    notify(request, f"Version {version.number} is being validated.")
    return redirect("version", name, version.number)


@action
def set_alias(request: Request, name: str) -> HttpResponse:
    """Point an alias at a version."""
    row = access.get_model(request.user, name, Action.WRITE)
    form = AliasForm(request.POST, versions=row.versions.all())
    if not form.is_valid():
        raise BadInput("Give the alias a name and choose a version.")
    version = row.versions.filter(number=form.cleaned_data["version"]).first()
    if version is None:
        raise NotFound(f"{name} has no such version.")
    alias = registry.set_alias(row, form.cleaned_data["alias"], version, by=request.user)
    notify(request, f"{alias.name} now points at v{version.number}.")
    return redirect("model", name)


@action
def delete_alias(request: Request, name: str, alias: str) -> HttpResponse:
    """Delete an alias."""
    row = access.get_model(request.user, name, Action.WRITE)
    registry.delete_alias(row, alias, by=request.user)
    notify(request, f"The alias {alias} is deleted.")
    return redirect("model", name)


@action
def rollback(request: Request, name: str) -> HttpResponse:
    """Roll production back to the previous version."""
    endpoint = access.get_endpoint(request.user, name)
    record = releases.rollback(endpoint, reason=request.POST.get("reason", ""), by=request.user)
    number = record.version.number if record.version else "?"
    notify(request, f"{name} is rolled back to v{number} as generation {record.generation}.")
    return redirect("endpoint", name)


@action
def take_down(request: Request, name: str) -> HttpResponse:
    """Take the endpoint down."""
    endpoint = access.get_endpoint(request.user, name)
    releases.take_down(endpoint, reason=request.POST.get("reason", ""), by=request.user)
    notify(request, f"{name} is down. Predictions are answered with 404.")
    return redirect("endpoint", name)


@action
def bring_up(request: Request, name: str) -> HttpResponse:
    """Serve the versions again that the endpoint served before."""
    releases.bring_up(access.get_endpoint(request.user, name), by=request.user)
    notify(request, f"{name} is up again.")
    return redirect("endpoint", name)


urls = [
    path("models", models, name="models"),
    path("models/new", new, name="model_new"),
    path("models/<slug:name>", model, name="model"),
    path("models/<slug:name>/upload", upload, name="model_upload"),
    path("models/<slug:name>/aliases", set_alias, name="model_alias"),
    path("models/<slug:name>/aliases/<slug:alias>/delete", delete_alias, name="model_alias_delete"),
    path("models/<slug:name>/rollback", rollback, name="model_rollback"),
    path("models/<slug:name>/down", take_down, name="model_take_down"),
    path("models/<slug:name>/up", bring_up, name="model_bring_up"),
    *version_pages.urls,
]
