"""Shows a model version in tabs, sends it predictions, edits its card and requests its promotion."""

from typing import Any

from django.http import HttpResponse
from django.urls import NoReverseMatch, path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions import promotions, registry
from jobs.errors import BadInput, NotFound
from jobs.models import Endpoint, ModelVersion
from jobs.queries import registry as queries
from jobs.queries import versions
from jobs.queries.promotions import OPEN
from webapp import prediction
from webapp.forms.registry import CardForm, PromotionForm
from webapp.pages import tryout
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    is_partial,
    notify,
    page,
    redirect,
    render,
    url,
    valid_choice,
)

TABS = {
    "overview": "Overview",
    "evaluation": "Evaluation",
    "model": "Layers",
    "try": "Try it",
    "use": "Use it",
    "card": "Card",
    "files": "Files",
}
LOADED = ("production", "staging", "previous")


@page
def version(request: Request, name: str, number: int) -> HttpResponse:
    """Show one tab of a version (`?tab=`)."""
    row = access.get_version(request.user, name, number)
    tab = valid_choice(request.GET.get("tab"), list(TABS), "overview")
    context = _head(request, row) | {"tab": tab} | _TAB_CONTEXT[tab](request, row)
    return render(request, "registry/version.html", context)


def _head(request: Request, row: ModelVersion) -> dict[str, Any]:
    endpoint = access.get_endpoint(request.user, row.model.name)
    name, number = row.model.name, row.number
    return {
        "version": row,
        "model": row.model,
        "endpoint": endpoint,
        "stage": queries.stage_of(row, endpoint),
        "may": access.can(request.user, row.model.project, Action.WRITE),
        "tabs": [
            (tab, label, url("version", name, number, tab="" if tab == "overview" else tab))
            for tab, label in TABS.items()
        ],
        "crumbs": crumbs(("Models", reverse("models")), (name, reverse("model", args=[name])), f"v{number}"),
    }


def _overview(request: Request, row: ModelVersion) -> dict[str, Any]:
    endpoint = access.get_endpoint(request.user, row.model.name)
    stage = queries.stage_of(row, endpoint)
    return {
        "test": versions.figures(row),
        "validation": versions.figures(row, "validation"),
        "links": [(link, _address(link, row)) for link in versions.chain(row, [stage] if stage else [])],
        "requests": row.promotions.select_related("requested_by").order_by("-pk")[:10],
        "promotion_form": PromotionForm() if _may_request(row, endpoint) else None,
        "compared": versions.report(row, "report"),
        **tryout.positions_context(row),
    }


def _may_request(row: ModelVersion, endpoint: Endpoint) -> bool:
    is_ready = row.state == ModelVersion.State.CANDIDATE
    has_request = row.promotions.filter(state__in=OPEN, stage="production").exists()
    return is_ready and not has_request and endpoint.production_id != row.pk


def _address(link: versions.Link, row: ModelVersion) -> str:
    """Return the address of a link of the lineage; empty if it has no page."""
    project = row.source_job.project if row.source_job else None
    try:
        if link.kind == "experiment" and project is not None:
            return reverse("experiment", args=[project.slug, link.key])
        if link.kind == "dataset":
            return reverse("dataset_version", args=link.key)
        if link.kind in ("job", "endpoint"):
            return reverse(link.kind, args=[link.key])
    except NoReverseMatch:
        return ""
    return f"/api/v1/artifacts/{link.key}" if link.kind == "artifact" else ""


def _evaluation(request: Request, row: ModelVersion) -> dict[str, Any]:
    del request
    return {"report": versions.report(row, "evaluation")}


def _model(request: Request, row: ModelVersion) -> dict[str, Any]:
    del request
    return {"summary": versions.report(row, "summary")}


def _try(request: Request, row: ModelVersion) -> dict[str, Any]:
    stage = queries.stage_of(row, access.get_endpoint(request.user, row.model.name))
    return {"loaded": stage in LOADED, **tryout.form_context(row)}


def _use(request: Request, row: ModelVersion) -> dict[str, Any]:
    del request
    example = tryout.example_body(row)
    return {"address": prediction.address(), "example": example, **tryout.positions_context(row)}


def _card(request: Request, row: ModelVersion) -> dict[str, Any]:
    del request
    return {"card_form": CardForm(initial={"card": row.card})}


def _files(request: Request, row: ModelVersion) -> dict[str, Any]:
    del request
    return {"files": versions.files(row)}


_TAB_CONTEXT = {
    "overview": _overview,
    "evaluation": _evaluation,
    "model": _model,
    "try": _try,
    "use": _use,
    "card": _card,
    "files": _files,
}


@action
def promote(request: Request, name: str, number: int) -> HttpResponse:
    """Request the promotion of a version."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    form = PromotionForm(request.POST)
    if not form.is_valid():
        raise BadInput("Choose production or staging.")
    made = promotions.request(row, **form.cleaned_data, by=request.user)
    notify(request, "Promotion requested. The gates are being evaluated.")
    return redirect("approval", made.pk)


@action
def write_card(request: Request, name: str, number: int) -> HttpResponse:
    """Save the card of a version."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    form = CardForm(request.POST)
    if not form.is_valid():
        raise BadInput("The card is too long.")
    registry.write_card(row, form.cleaned_data["card"], by=request.user)
    notify(request, "The card is saved.")
    return redirect(url("version", name, number, tab="card"))


@action
def predict(request: Request, name: str, number: int) -> HttpResponse:
    """Send the form's input to the prediction server and show its answer."""
    row = access.get_version(request.user, name, number)
    stage = queries.stage_of(row, access.get_endpoint(request.user, name))
    if stage not in LOADED:
        raise NotFound(f"v{number} is not served: promote it first.")
    context = _head(request, row) | _try(request, row) | {"tab": "try"} | tryout.answer(request.POST, row)
    return render(
        request, "registry/answer.html" if is_partial(request) else "registry/version.html", context
    )


urls = [
    path("models/<slug:name>/versions/<int:number>", version, name="version"),
    path("models/<slug:name>/versions/<int:number>/promote", promote, name="version_promote"),
    path("models/<slug:name>/versions/<int:number>/card", write_card, name="version_card"),
    path("models/<slug:name>/versions/<int:number>/predict", predict, name="version_predict"),
]
