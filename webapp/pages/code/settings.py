"""Shows and changes the settings of the installation. For its administrators."""

from django.conf import settings as configured
from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.code import installation_settings as actions
from jobs.messages.sandbox import LEVELS, Level
from jobs.queries.code import installation, sandboxes
from webapp.forms.code.settings import NetworkForm, SandboxForm
from webapp.pages.people.projects import settings_page as project_page
from webapp.pages.shortcuts import Request, form_page, notify, redirect, render


@form_page
def settings(request: Request) -> HttpResponse:
    """Show the settings, and change the sandbox minimum."""
    access.require_admin(request.user)
    if request.method != "POST":
        return _page(request, SandboxForm.of(installation.sandbox_minimum()))
    form = SandboxForm(request.POST)
    changed = form.apply(
        lambda given: actions.change_sandbox_minimum(
            Level(given["sandbox_minimum"]), seen=Level(given["seen"]), by=request.user
        )
    )
    if changed is None:
        return _page(request, form, status=form.status)
    notify(request, "Settings saved.")
    return redirect("settings")


def _page(request: Request, form: SandboxForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "levels": [(level, info.summary) for level, info in LEVELS.items()],
        "strong_enough": [level for level in Level if level.reaches(installation.sandbox_minimum())],
        "has_former_minimum": installation.has_former_minimum(),
        "workers": sandboxes.sandbox_offers(),
        "connected": installation.projects_with_network(),
        "allowed_hosts": sorted(f"{host}:{port}" for host, port in configured.TRAINYARD_FETCH_ALLOW),
        "data_roots": sorted(map(str, configured.TRAINYARD_DATA_ROOTS)),
    }
    return render(request, "code/settings.html", context, status=status)


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
        lambda given: actions.change_network(row, given["network"], seen=given["seen"], by=request.user)
    )
    if changed is None:
        return project_page(request, row, status=form.status, network_form=form)
    notify(request, "Network saved.")
    return redirect("project_settings", row.slug)


urls = [
    path("settings", settings, name="settings"),
    path("p/<slug:project>/network", set_network, name="project_set_network"),
]
