"""Shows and changes the installation's settings. For administrators."""

from dataclasses import dataclass

from django.conf import settings as configured
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.code import installation_settings as actions
from jobs.messages.sandbox import LEVELS, Level
from jobs.models import Project
from jobs.queries.code import installation, sandboxes
from jobs.queries.code.sandboxes import Offer
from webapp.forms.code.settings import NetworkForm, SandboxForm
from webapp.pages.people.projects import settings_page as project_page
from webapp.pages.shortcuts import Request, form_page, notify, redirect, render_page
from webapp.template_context import Context


@form_page
def settings(request: Request) -> HttpResponse:
    """Show the settings, and change the sandbox minimum."""
    access.require_admin(request.user)
    if request.method != "POST":
        return _show_settings(request, SandboxForm.of(installation.sandbox_minimum()))
    form = SandboxForm(request.POST)
    changed = form.apply(
        lambda values: actions.change_sandbox_minimum(
            Level(values["sandbox_minimum"]), seen=Level(values["seen"]), by=request.user
        )
    )
    if changed is None:
        return _show_settings(request, form, status=form.status)
    notify(request, "Settings saved.")
    return redirect("settings")


@dataclass(frozen=True)
class SettingsPage(Context):
    """The installation's settings."""

    form: SandboxForm
    levels: list[tuple[Level, str]]
    strong_enough: list[Level]
    has_former_minimum: bool
    workers: list[Offer]
    connected: QuerySet[Project]
    allowed_hosts: list[str]
    data_roots: list[str]


def _show_settings(request: Request, form: SandboxForm, *, status: int = 200) -> HttpResponse:
    context = SettingsPage(
        form=form,
        levels=[(level, info.summary) for level, info in LEVELS.items()],
        strong_enough=[level for level in Level if level.reaches(installation.sandbox_minimum())],
        has_former_minimum=installation.has_former_minimum(),
        workers=sandboxes.sandbox_offers(),
        connected=installation.projects_with_network(),
        allowed_hosts=sorted(f"{host}:{port}" for host, port in configured.TRAINYARD_FETCH_ALLOW),
        data_roots=sorted(map(str, configured.TRAINYARD_DATA_ROOTS)),
    )
    return render_page(request, "code/settings.html", context, status=status)


@form_page
def set_network(request: Request, project: str) -> HttpResponse:
    """Allow code of users in a project to connect to other hosts, or not."""
    row = access.get_project(request.user, project)
    access.require_admin(request.user)
    # A reload of the page of the invalid form, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    form = NetworkForm(request.POST)
    changed = form.apply(
        lambda values: actions.change_network(row, values["network"], seen=values["seen"], by=request.user)
    )
    if changed is None:
        return project_page(request, row, status=form.status, network_form=form)
    notify(request, "Network saved.")
    return redirect("project_settings", row.slug)


urls = [
    path("settings", settings, name="settings"),
    path("p/<slug:project>/network", set_network, name="project_set_network"),
]
