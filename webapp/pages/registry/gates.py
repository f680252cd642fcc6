"""Shows the rules for a model's gates with their history, and lets approvers change them."""

from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import gate_rules
from jobs.answers.registry.gates import GatesOut
from jobs.errors import BadInput, StaleState
from jobs.models import RegisteredModel
from jobs.queries.registry import gate_rules as queries
from jobs.queries.registry import versions
from jobs.spec.gates import GateRules
from jobs.spec.sections import measures
from webapp.forms.registry.gates import GatesForm, row_count
from webapp.pages.shortcuts import Crumbs, Request, crumbs, form_page, notify, redirect, render_page
from webapp.template_context import Context


@form_page
def gates(request: Request, name: str) -> HttpResponse:
    """Show the rules; save them as a new revision, or add a row to the form (`more=floors`)."""
    is_post = request.method == "POST"
    model = access.get_model(request.user, name, Action.APPROVE if is_post else Action.VIEW)
    current = queries.gates_out(model)
    task = versions.task_of_model(model)
    metrics = measures.gate_metrics_for(task) if task is not None else list(measures.TEST_METRICS)
    more = request.POST.get("more", "")
    data = request.POST.copy() if is_post else None
    if data is not None and more in ("floors", "slices"):
        data[f"{more}-rows"] = str(row_count(data, more) + 1)
    form = GatesForm(rules=current.rules, revision=current.revision, metrics=metrics, data=data)
    stale = False
    if data is not None and not more and form.is_valid() and form.rules is not None:
        try:
            _save_rules(request, model, form, form.rules)
        except BadInput as error:
            for problem in error.problems:
                form.add(problem)
        except StaleState:
            stale = True
            # The answer shows the newer revision: saving again then replaces it knowingly.
            data["revision"] = str(queries.gates_out(model).revision)
        else:
            return redirect("model_gates", name)
    status = HTTPStatus.CONFLICT if stale else HTTPStatus.OK
    if is_post and not more and not stale:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    return render_page(
        request, "registry/gates.html", _gates_context(request, model, form, stale=stale), status=status
    )


def _save_rules(request: Request, model: RegisteredModel, form: GatesForm, rules: GateRules) -> None:
    entries = form.main.cleaned_data
    before = queries.revision_number(queries.current_revision(model))
    saved = gate_rules.change_rules(
        model, rules, comment=entries["comment"], seen=entries["revision"], by=request.user
    )
    number = queries.revision_number(saved)
    if number == before:
        notify(request, "The gates are as they were; nothing was saved.", level="info")
    else:
        notify(request, f"Saved as revision {number}. Requests made from now on are judged by it.")


@dataclass(frozen=True)
class GatesPage(Context):
    """The rules for a model's gates, their history and the form that changes them."""

    model: RegisteredModel
    current: GatesOut
    rules: GateRules
    form: GatesForm
    stale: bool
    may_edit: bool
    history: list[GatesOut]
    crumbs: Crumbs


def _gates_context(request: Request, model: RegisteredModel, form: GatesForm, *, stale: bool) -> GatesPage:
    current = queries.gates_out(model)
    name = model.name
    return GatesPage(
        model=model,
        current=current,
        rules=current.rules,
        form=form,
        stale=stale,
        may_edit=access.can(request.user, model.project, Action.APPROVE),
        history=queries.gates_history(model),
        crumbs=crumbs(("Models", reverse("models")), (name, reverse("model", args=[name])), "Gates"),
    )


urls = [path("models/<slug:name>/gates", gates, name="model_gates")]
