"""Lists registered models, shows one, and manages its aliases and uploads."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import registration, registry
from jobs.answers.registry.gates import GatesOut
from jobs.errors import BadInput, Conflict
from jobs.models import Alias, CodeVersion, Endpoint, ModelVersion, RegisteredModel, ReleaseRecord
from jobs.queries import paging
from jobs.queries.code import code as code_queries
from jobs.queries.paging import Page
from jobs.queries.registry import gate_rules, versions
from jobs.queries.registry import registry as queries
from jobs.queries.registry import releases as release_queries
from webapp.forms.registry.registry import AliasForm, ModelForm, UploadForm
from webapp.pages.registry import versions as version_pages
from webapp.pages.registry.endpoints import rollback_context
from webapp.pages.registry.registration import registration_message
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
    writable_projects,
)
from webapp.scope import scope_of
from webapp.template_context import Context
from webapp.uploads import model_on_disk

HISTORY_ROWS = 20
MAX_CODE = 100
"""Versions of code that the form for uploads lists, the newest first."""


@dataclass(frozen=True)
class ModelsPage(Context):
    """The models that the user may see, with their production versions' metrics."""

    page: Page[RegisteredModel]
    names: list[str]
    rows: list[tuple[RegisteredModel, dict[str, float | None]]]
    may_create: bool


@page
def models(request: Request) -> HttpResponse:
    """List the models that the user may see, with their production versions."""
    rows = scope_of(request, request.user).limit(queries.models_for_lists(request.user))
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"), order="name")
    names = versions.metric_names(m.endpoint.production for m in listed.items if m.endpoint.production)
    context = ModelsPage(
        page=listed,
        names=names,
        rows=[(m, _production_figures(m.endpoint)) for m in listed.items],
        may_create=writable_projects(request.user).exists(),
    )
    return render_page(request, "registry/list.html", context)


def _production_figures(endpoint: Endpoint) -> dict[str, float | None]:
    return versions.metric_values(endpoint.production) if endpoint.production else {}


@dataclass(frozen=True)
class NewModelPage(Context):
    """The form for a new model."""

    form: ModelForm
    crumbs: Crumbs


@form_page
def new(request: Request) -> HttpResponse:
    """Create a model."""
    form = ModelForm(request.POST or None, projects=writable_projects(request.user))
    if form.is_valid():
        entries = form.cleaned_data
        try:
            model = registry.create_model(
                entries["project"], entries["name"], description=entries["description"], by=request.user
            )
        except (BadInput, Conflict) as error:
            form.add_error("name", error.message)
        else:
            notify(request, f"Model {model.name} is created. Add its first version.")
            return redirect("model", model.name)
    context = NewModelPage(form=form, crumbs=crumbs(("Models", reverse("models")), "New model"))
    return render_page(request, "registry/new.html", context, status=422 if form.errors else 200)


@page
def model(request: Request, name: str) -> HttpResponse:
    """Show one model: its production version, all versions and its history."""
    return _model_page(request, name)


@dataclass(frozen=True)
class ModelPage(Context):
    """A model: its versions, aliases, gates and history."""

    model: RegisteredModel
    endpoint: Endpoint
    crumbs: Crumbs
    page: Page[ModelVersion]
    rows: list[tuple[ModelVersion, str | None, dict[str, float | None]]]
    names: list[str]
    live_figures: dict[str, float | None]
    history: list[ReleaseRecord]
    aliases: list[Alias]
    max_aliases: int
    alias_form: AliasForm | None
    upload_form: UploadForm | None
    may_write: bool
    gates: GatesOut
    may_edit_gates: bool


def _model_page(
    request: Request, name: str, *, status: int = 200, refused_alias: AliasForm | None = None
) -> HttpResponse:
    """Show a model. A refused alias form is shown again with its entries and errors."""
    row = access.get_model(request.user, name)
    endpoint = access.get_endpoint(request.user, name)
    listed = paging.page_of(queries.versions_of(row), cursor=request.GET.get("cursor"), order="-number")
    may_write = access.can(request.user, row.project, Action.WRITE)
    context = ModelPage(
        model=row,
        endpoint=endpoint,
        crumbs=crumbs(("Models", reverse("models")), name),
        page=listed,
        rows=[(v, queries.stage_of(v, endpoint), versions.metric_values(v)) for v in listed.items],
        names=versions.metric_names(listed.items),
        live_figures=_production_figures(endpoint),
        history=list(release_queries.releases_of_endpoint(endpoint)[:HISTORY_ROWS]),
        aliases=list(row.aliases.select_related("version").order_by("name")),
        max_aliases=registry.MAX_ALIASES,
        alias_form=refused_alias
        or (AliasForm(versions=listed.items) if may_write and listed.items else None),
        upload_form=UploadForm(code=_offered_code(request, row)) if may_write else None,
        may_write=may_write,
        gates=gate_rules.gates_out(row),
        may_edit_gates=access.can(request.user, row.project, Action.APPROVE),
    )
    rollback_section = rollback_context(request, endpoint)
    return render_page(request, "registry/model.html", context, rollback_section, status=status)


def _offered_code(request: Request, row: RegisteredModel) -> list[CodeVersion]:
    """Return the project's newest code; empty for users who may not run code."""
    if not access.can(request.user, row.project, Action.RUN_CODE):
        return []
    return list(code_queries.versions_with_file_counts(request.user, row.project).order_by("-pk")[:MAX_CODE])


@action
def upload(request: Request, name: str) -> HttpResponse:
    """Create a version from an uploaded file."""
    row = access.get_model(request.user, name, Action.WRITE)
    code = registration.code_for_upload(row, request.POST.get("code", ""), by=request.user)
    with model_on_disk(request, row.project) as (file, rows):
        stored = registration.store_upload(file, row.project)
        sample = None if rows is None else registration.store_sample(rows, row.project)
    made = registration.add_uploaded(row, stored, code=code, sample=sample, by=request.user)
    notify(request, registration_message(made))
    return redirect("version", name, made.version.number)


@form_page
def set_alias(request: Request, name: str) -> HttpResponse:
    """Point an alias at a version; a refused form is shown again with its entries."""
    row = access.get_model(request.user, name, Action.WRITE)
    if request.method != "POST":
        return redirect("model", name)
    form = AliasForm(request.POST, versions=row.versions.order_by("-number"))
    alias = form.apply(
        lambda values: registry.set_alias(
            row, values["alias"], row.versions.get(number=values["version"]), by=request.user
        )
    )
    if alias is None:
        return _model_page(request, name, status=form.status, refused_alias=form)
    notify(request, f"{alias.name} now points at v{alias.version.number}.")
    return redirect("model", name)


@action
def delete_alias(request: Request, name: str, alias: str) -> HttpResponse:
    """Delete an alias."""
    row = access.get_model(request.user, name, Action.WRITE)
    registry.delete_alias(row, alias, by=request.user)
    notify(request, f"The alias {alias} is deleted.")
    return redirect("model", name)


urls = [
    path("models", models, name="models"),
    path("models/new", new, name="model_new"),
    path("models/<slug:name>", model, name="model"),
    path("models/<slug:name>/upload", upload, name="model_upload"),
    path("models/<slug:name>/aliases", set_alias, name="model_alias"),
    path("models/<slug:name>/aliases/<slug:alias>/delete", delete_alias, name="model_alias_delete"),
    *version_pages.urls,
]
