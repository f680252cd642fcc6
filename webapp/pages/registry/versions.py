"""Shows a model version in tabs, and handles its forms and buttons."""

from dataclasses import replace
from http import HTTPStatus

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.registry import promotions, registration, registry
from jobs.actions.registry.smaller_versions import make_smaller, require_smaller_format
from jobs.errors import NotFound
from jobs.models import ModelVersion
from jobs.queries.registry.smaller_versions import usual_seconds_of_smaller
from webapp.forms.registry.registry import CardForm, PromotionForm
from webapp.pages.registry import tryout
from webapp.pages.registry.tryout_answer import answer_context
from webapp.pages.registry.version_head import TABS, head_context
from webapp.pages.registry.version_overview import overview_contexts
from webapp.pages.registry.version_tabs import TryTab, card_context, is_loaded, tab_contexts
from webapp.pages.shortcuts import (
    Request,
    action,
    form_page,
    is_partial,
    notify,
    page,
    redirect,
    render_page,
    start_page,
    url,
    valid_choice,
)
from webapp.pages.starts import Start, show_start
from webapp.template_context import Context
from webapp.templatetags.value_filters import duration


@page
def version(request: Request, name: str, number: int) -> HttpResponse:
    """Show one version tab (`?tab=`). While the version is validated, the page asks for `?part=state`."""
    row = access.get_version(request.user, name, number)
    if request.GET.get("part") == "state":
        return _reload_once_validated(row)
    return _show_version(request, row, valid_choice(request.GET.get("tab"), list(TABS), "overview"))


def _reload_once_validated(row: ModelVersion) -> HttpResponse:
    """Return an answer with which htmx reloads the page as soon as a version is no longer validated."""
    response = HttpResponse(status=HTTPStatus.NO_CONTENT)
    if row.state != ModelVersion.State.VALIDATING:
        response["HX-Refresh"] = "true"
    return response


def _show_version(
    request: Request, row: ModelVersion, tab: str, *contexts: Context, status: int = 200
) -> HttpResponse:
    """Show one version tab; `contexts` replace its own variables, to show a refused form again."""
    endpoint = access.get_endpoint(request.user, row.model.name)
    head = head_context(request, row, endpoint, tab)
    contexts = contexts or tab_contexts(request, row, endpoint, tab)
    return render_page(request, "registry/version.html", head, *contexts, status=status)


@form_page
def promote(request: Request, name: str, number: int) -> HttpResponse:
    """Request a version's promotion; a refused form is shown again with its entries."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    if request.method != "POST":
        return redirect("version", name, number)
    form = PromotionForm(request.POST)
    promotion = form.apply(lambda values: promotions.request(row, **values, by=request.user))
    if promotion is None:
        row = access.get_version(request.user, name, number)
        endpoint = access.get_endpoint(request.user, name)
        contexts = overview_contexts(request, row, endpoint, promotion_form=form)
        return _show_version(request, row, "overview", *contexts, status=form.status)
    notify(request, "Promotion requested. The gates are being evaluated.")
    return redirect("approval", promotion.pk)


@form_page
def write_card(request: Request, name: str, number: int) -> HttpResponse:
    """Save a version's card; a refused form is shown again with its text."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    here = url("version", name, number, tab="card")
    if request.method != "POST":
        return redirect(here)
    form = CardForm(request.POST)
    saved = form.apply(
        lambda values: registry.write_card(row, values["card"], seen=values["seen"] or None, by=request.user)
    )
    if saved is None:
        row.refresh_from_db(fields=["card"])
        stale = form.is_stale(row.card_digest)
        context = card_context(request, row, form, stale=stale)
        return _show_version(request, row, "card", context, status=form.status)
    notify(request, "The card is saved.")
    return redirect(here)


@action
def describe(request: Request, name: str, number: int) -> HttpResponse:
    """Queue the job that reads a version's layers from its file again."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    job = registration.queue_description(row, by=request.user)
    notify(request, f"Job {job.pk} reads the layers. Reload this page when it is done.")
    return redirect(url("version", name, number, tab="model"))


@start_page
def smaller(request: Request, name: str, number: int) -> HttpResponse:
    """Queue the job that quantizes or casts a version, and show that job."""
    row = access.get_version(request.user, name, number, Action.WRITE)
    if request.method == "POST":
        job = make_smaller(row, request.POST.get("mode", ""), "mode", by=request.user)
        notify(request, f"Job {job.pk} makes the smaller model, which then becomes a new version of {name}.")
        return redirect("job", job.pk)
    mode = request.GET.get("mode", "")
    entry = require_smaller_format(row, mode, "mode", by=request.user)
    seconds = usual_seconds_of_smaller(row, mode)
    start = Start(
        heading=f"{entry.verb} {row} to {entry.label}",
        about=f"A job makes a copy and compares it with {row} on the same test rows. Then the copy becomes "
        f"the newest version of {name}. Nothing is served until it is promoted; {row} does not change.",
        figures=[
            ("Runs", "one comparison, no training"),
            ("Expected time", duration(seconds) if seconds is not None else "no estimate yet"),
        ],
        fields={"mode": [mode]},
        back=url("version", name, number),
    )
    return show_start(request, start)


@action
def predict(request: Request, name: str, number: int) -> HttpResponse:
    """Send the form's input to the prediction server and show its answer."""
    row = access.get_version(request.user, name, number)
    endpoint = access.get_endpoint(request.user, name)
    if not is_loaded(row, endpoint):
        raise NotFound(f"v{number} is not served: promote it first.")
    answer = answer_context(request.POST, row, request.FILES)
    if is_partial(request):
        return render_page(request, "registry/answer.html", answer)
    form = replace(tryout.form_context(row), text=answer.sent_text)
    return _show_version(request, row, "try", TryTab(loaded=True), form, answer)


urls = [
    path("models/<slug:name>/versions/<int:number>", version, name="version"),
    path("models/<slug:name>/versions/<int:number>/promote", promote, name="version_promote"),
    path("models/<slug:name>/versions/<int:number>/card", write_card, name="version_card"),
    path("models/<slug:name>/versions/<int:number>/describe", describe, name="version_describe"),
    path("models/<slug:name>/versions/<int:number>/smaller", smaller, name="version_smaller"),
    path("models/<slug:name>/versions/<int:number>/predict", predict, name="version_predict"),
]
