"""Adds and deletes a project's credentials."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.data import credentials as actions
from jobs.models import Project
from webapp.forms.data.credentials import FORMS, KINDS, CredentialForm
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    Tabs,
    action,
    crumbs,
    form_page,
    notify,
    redirect,
    render_page,
    url,
    valid_choice,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class NewCredentialPage(Context):
    """The form for a credential."""

    project: Project
    form: CredentialForm
    kind: str
    tabs: Tabs
    crumbs: Crumbs


@form_page
def credential_new(request: Request, project: str) -> HttpResponse:
    """Save a credential. `?kind=` is its kind."""
    row = access.get_project(request.user, project, Action.MANAGE)
    kind = valid_choice(request.GET.get("kind"), FORMS, "s3")
    form = FORMS[kind](request.POST or None)
    status = 200
    if request.method == "POST":
        saved = form.apply(lambda values: form.save(row, values, by=request.user))
        if saved is not None:
            notify(request, f"Credential {saved.name} is saved.")
            return redirect("project_settings", row.slug)
        status = form.status
    settings_page = reverse("project_settings", args=[row.slug])
    context = NewCredentialPage(
        project=row,
        form=form,
        kind=kind,
        tabs=[(name, label, url("credential_new", row.slug, kind=name)) for name, label in KINDS],
        crumbs=crumbs(("Projects", reverse("projects")), (row.name, settings_page), "New credential"),
    )
    return render_page(request, "data/credential.html", context, status=status)


@action
def credential_delete(request: Request, project: str, name: str) -> HttpResponse:
    """Delete a credential."""
    row = access.get_project(request.user, project, Action.MANAGE)
    actions.delete(row, name, by=request.user)
    notify(request, f"Credential {name} is deleted.")
    return redirect("project_settings", row.slug)


urls = [
    path("p/<slug:project>/credentials/new", credential_new, name="credential_new"),
    path("p/<slug:project>/credentials/<slug:name>/delete", credential_delete, name="credential_delete"),
]
