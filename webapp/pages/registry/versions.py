"""Shows a model version in tabs, sends it predictions, edits its card and requests its promotion."""

import json
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import NoReverseMatch, path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import promotions, registration, registry
from jobs.errors import NotFound
from jobs.messages.reports.model_summary import ModelSummary
from jobs.models import Endpoint, ModelVersion, PromotionRequest, User
from jobs.queries.data import datasets
from jobs.queries.experiments import base_versions
from jobs.queries.registry import registry as queries
from jobs.queries.registry import versions
from jobs.queries.runs import model_reports
from jobs.spec.signature import Signature
from webapp import prediction
from webapp.forms.registry.registry import CardForm, PromotionForm
from webapp.pages.registry import tryout
from webapp.pages.shortcuts import (
    Request,
    action,
    crumbs,
    form_page,
    is_partial,
    notify,
    page,
    redirect,
    render,
    url,
    valid_choice,
)
from webapp.report_figures import architecture

TABS = {
    "overview": "Overview",
    "report": "Report",
    "evaluation": "Evaluation",
    "model": "Layers",
    "try": "Try it",
    "use": "Use it",
    "card": "Card",
    "files": "Files",
}
# Stages whose versions the prediction server keeps loaded: the previous one for an instant rollback.
LOADED = ("production", "staging", "previous")
MAX_FINE_TUNED = 20
"""How many versions that were trained further a page lists."""


@page
def version(request: Request, name: str, number: int) -> HttpResponse:
    """Show one tab of a version (`?tab=`). While it is validated, the page asks for `?part=state`."""
    if request.GET.get("part") == "state":
        return _reload_once_validated(access.get_version(request.user, name, number))
    return _version_page(request, name, number, valid_choice(request.GET.get("tab"), list(TABS), "overview"))


def _reload_once_validated(row: ModelVersion) -> HttpResponse:
    """Return an answer with which htmx reloads the page as soon as a version is no longer validated."""
    response = HttpResponse(status=HTTPStatus.NO_CONTENT)
    if row.state != ModelVersion.State.VALIDATING:
        response["HX-Refresh"] = "true"
    return response


def _version_page(
    request: Request, name: str, number: int, tab: str, *, status: int = 200, **instead: Any
) -> HttpResponse:
    """Show a tab of a version as it is now; `instead` overrides context values, such as an invalid form."""
    row = access.get_version(request.user, name, number)
    endpoint = access.get_endpoint(request.user, row.model.name)
    context = (
        _head(request, row, endpoint) | {"tab": tab} | _TAB_CONTEXT[tab](request, row, endpoint) | instead
    )
    return render(request, "registry/version.html", context, status=status)


def _head(request: Request, row: ModelVersion, endpoint: Endpoint) -> dict[str, Any]:
    name, number = row.model.name, row.number
    return {
        "version": row,
        "model": row.model,
        "endpoint": endpoint,
        "stage": queries.stage_of(row, endpoint),
        "single_person": queries.was_approved_by_single_person(row),
        "may_write": access.can(request.user, row.model.project, Action.WRITE),
        "fine_tune_url": _fine_tune_url(request, row),
        "tabs": [
            (tab, label, url("version", name, number, tab="" if tab == "overview" else tab))
            for tab, label in TABS.items()
            # Only ensembles and quantizations have one.
            if tab != "report" or model_reports.reports_of_version(row, ("report",))
        ],
        "crumbs": crumbs(("Models", reverse("models")), (name, reverse("model", args=[name])), f"v{number}"),
    }


def _fine_tune_url(request: Request, row: ModelVersion) -> str:
    """Return the address of a new experiment that trains the version further; empty if there can be none."""
    is_usable = row.state == ModelVersion.State.CANDIDATE and not row.needs_code
    if not is_usable or not access.can(request.user, row.model.project, Action.WRITE):
        return ""
    place = reverse("experiment_new", args=[row.model.project.slug])
    return f"{place}?{urlencode({'base': f'{row.model.name}/{row.number}'})}#model"


def _overview(request: Request, row: ModelVersion, endpoint: Endpoint) -> dict[str, Any]:
    stage = queries.stage_of(row, endpoint)
    has_request = row.promotions.filter(state__in=PromotionRequest.OPEN, stage="production").exists()
    is_candidate = row.state == ModelVersion.State.CANDIDATE
    may_request = is_candidate and not has_request and endpoint.production_id != row.pk
    stages = [stage] if stage else []
    may_run = not row.needs_code or access.can(request.user, row.model.project, Action.RUN_CODE)
    return {
        "test": versions.metric_values(row),
        "by_code": versions.measured_by_code(row.source_job),
        "validation": versions.validation_metric_values(row),
        "weighted_by": datasets.weight_column(row.source_job) if row.source_job is not None else "",
        "links": [(link, _address(link, row, request.user)) for link in versions.lineage_chain(row, stages)],
        "requests": row.promotions.select_related("requested_by").order_by("-pk")[:10],
        "promotion_form": PromotionForm() if may_request and may_run else None,
        "may_run": may_run,
        "about_variant": versions.describe_variant(row),
        "checked": versions.validation_result(row),
        "findings": model_reports.report_findings(
            model_reports.reports_of_version(row, ("report", "evaluation"))
        ),
        "fine_tuned": base_versions.versions_trained_from(row, request.user)[:MAX_FINE_TUNED],
        **tryout.positions_context(row),
    }


def _address(link: versions.Link, row: ModelVersion, user: User) -> str:
    """Return the address of a link of the lineage; empty if it has no page, or none for `user`."""
    project = row.source_job.project if row.source_job else None
    try:
        if link.kind == "experiment" and project is not None:
            return reverse("experiment", args=[project.slug, link.key])
        if link.kind == "fine-tuned from":
            name, number = link.key
            seen = access.visible_versions(user).filter(model__name=name, number=number)
            return reverse("version", args=link.key) if seen.exists() else ""
        if link.kind == "dataset":
            return reverse("dataset_version", args=link.key)
        if link.kind == "code":
            # A version that names its code has it in its own project; a script's is in that of its job.
            home = row.model.project if row.code_id is not None or project is None else project
            return url("code_version", link.key, project=home.slug)
        if link.kind in ("job", "endpoint"):
            return reverse(link.kind, args=[link.key])
    except NoReverseMatch:
        return ""
    return f"/api/v1/artifacts/{link.key}" if link.kind == "artifact" else ""


def _report(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> dict[str, Any]:
    return _newest_report(row, "report")


def _evaluation(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> dict[str, Any]:
    return _newest_report(row, "evaluation")


def _newest_report(row: ModelVersion, role: str) -> dict[str, Any]:
    for stored in model_reports.reports_of_version(row, (role,)):
        return {
            "report": model_reports.read_report(stored),
            "members": model_reports.members_of_report(stored),
            "by_code": versions.measured_by_code(stored.job),
        }
    return {"report": None}


def _model(request: Request, row: ModelVersion, _endpoint: Endpoint) -> dict[str, Any]:
    summary = _newest_report(row, "summary")["report"]
    needed = Action.WRITE if row.code_id is None else Action.RUN_CODE
    may_describe = row.state == ModelVersion.State.CANDIDATE and access.can(
        request.user, row.model.project, needed
    )
    return {
        "describe_url": reverse("version_describe", args=[row.model.name, row.number])
        if may_describe
        else "",
        "remedy": "A worker can read them from the file." if may_describe else "",
        **(architecture.context(summary, request.GET) if isinstance(summary, ModelSummary) else {}),
    }


def _try(_request: Request, row: ModelVersion, endpoint: Endpoint) -> dict[str, Any]:
    return {"loaded": queries.stage_of(row, endpoint) in LOADED, **tryout.form_context(row)}


def _use(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> dict[str, Any]:
    example = tryout.example_body(row)
    signature = Signature.model_validate(row.signature) if row.signature else None
    columns = signature.columns if signature is not None else ()
    image = next((column.name for column in columns if column.type == "image"), None)
    name = row.model.name
    curl = prediction.curl_line(name, example) if image is None else prediction.curl_image(name, image)
    return {
        "address": prediction.address(),
        "example": example,
        "curl": curl,
        "image_file": None if image is None else prediction.IMAGE_FILE,
        "image_column": repr(image),
        # Python writes None, True and False where JSON has null, true and false.
        "example_python": repr(json.loads(example)) if example else "",
        "signature": signature,
        **tryout.positions_context(row),
    }


def _card(request: Request, row: ModelVersion, _endpoint: Endpoint) -> dict[str, Any]:
    base = next((link for link in versions.lineage_chain(row) if link.kind == "fine-tuned from"), None)
    return {
        "card_form": CardForm(initial={"card": row.card, "seen": row.card_digest}),
        "base": base,
        "base_url": "" if base is None else _address(base, row, request.user),
    }


def _files(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> dict[str, Any]:
    return {"files": versions.source_artifacts(row)}


_TAB_CONTEXT = {
    "overview": _overview,
    "report": _report,
    "evaluation": _evaluation,
    "model": _model,
    "try": _try,
    "use": _use,
    "card": _card,
    "files": _files,
}


@form_page
def promote(request: Request, name: str, number: int) -> HttpResponse:
    """Request the promotion of a version; a refused form is shown again with its entries."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    if request.method != "POST":
        return redirect("version", name, number)
    form = PromotionForm(request.POST)
    made = form.apply(lambda given: promotions.request(row, **given, by=request.user))
    if made is None:
        return _version_page(request, name, number, "overview", status=form.status, promotion_form=form)
    notify(request, "Promotion requested. The gates are being evaluated.")
    return redirect("approval", made.pk)


@form_page
def write_card(request: Request, name: str, number: int) -> HttpResponse:
    """Save the card of a version; a refused form is shown again with its text."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    here = url("version", name, number, tab="card")
    if request.method != "POST":
        return redirect(here)
    form = CardForm(request.POST)
    saved = form.apply(
        lambda given: registry.write_card(row, given["card"], seen=given["seen"] or None, by=request.user)
    )
    if saved is None:
        row.refresh_from_db(fields=["card"])
        stale = form.is_stale(row.card_digest)
        return _version_page(request, name, number, "card", status=form.status, card_form=form, stale=stale)
    notify(request, "The card is saved.")
    return redirect(here)


@action
def describe(request: Request, name: str, number: int) -> HttpResponse:
    """Queue the job that reads the layers of a version from its file again."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    job = registration.queue_description(row, by=request.user)
    notify(request, f"Job {job.pk} reads the layers. Reload this page when it is done.")
    return redirect(url("version", name, number, tab="model"))


@action
def predict(request: Request, name: str, number: int) -> HttpResponse:
    """Send the form's input to the prediction server and show its answer."""
    row = access.get_version(request.user, name, number)
    endpoint = access.get_endpoint(request.user, name)
    if queries.stage_of(row, endpoint) not in LOADED:
        raise NotFound(f"v{number} is not served: promote it first.")
    context = _head(request, row, endpoint) | _try(request, row, endpoint) | {"tab": "try"}
    template = "registry/answer.html" if is_partial(request) else "registry/version.html"
    return render(request, template, context | tryout.answer(request.POST, row, request.FILES))


urls = [
    path("models/<slug:name>/versions/<int:number>", version, name="version"),
    path("models/<slug:name>/versions/<int:number>/promote", promote, name="version_promote"),
    path("models/<slug:name>/versions/<int:number>/card", write_card, name="version_card"),
    path("models/<slug:name>/versions/<int:number>/describe", describe, name="version_describe"),
    path("models/<slug:name>/versions/<int:number>/predict", predict, name="version_predict"),
]
