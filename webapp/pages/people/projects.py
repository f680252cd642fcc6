"""Lists projects, and manages their members and settings."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.people import people as actions
from jobs.errors import BadInput, Conflict, Forbidden, NotFound, TrainyardError
from jobs.models import Project, Role
from jobs.queries.code import installation
from jobs.queries.data import credentials
from jobs.queries.people import projects as queries
from jobs.queries.people import quotas
from jobs.spec.data.credentials import LABELS
from webapp.context import SESSION_KEY
from webapp.forms.code.settings import NetworkForm
from webapp.forms.people.people import MemberForm, ProjectForm, ProjectSettingsForm
from webapp.forms.people.quotas import QuotasForm
from webapp.pages.shortcuts import Request, crumbs, form_page, notify, page, redirect, render

ROLE_HELP = {
    Role.VIEWER: "sees everything in the project",
    Role.MEMBER: "also creates experiments, data sets and models, and requests promotions",
    Role.TRAINER: "like a member, and runs jobs with code that users have uploaded",
    Role.APPROVER: "sees everything, decides promotion requests and rolls back",
    Role.ADMIN: "may do everything in the project and manages it",
}


@page
def projects(request: Request) -> HttpResponse:
    """List the projects that the user may see."""
    return render(request, "people/projects/list.html", {"rows": queries.projects_with_counts(request.user)})


@form_page
def project_new(request: Request) -> HttpResponse:
    """Create a project."""
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = actions.create_project(**form.cleaned_data, by=request.user)
        except (BadInput, Conflict) as error:
            form.add_problems(error)
        else:
            request.session[SESSION_KEY] = made.slug
            notify(request, f"Project {made.name} is created. Add its members here.")
            return redirect("project_settings", made.slug)
    context = {"form": form, "crumbs": crumbs(("Projects", reverse("projects")), "New")}
    return render(
        request, "people/projects/new.html", context, status=422 if request.method == "POST" else 200
    )


@page
def project_enter(request: Request, project: str) -> HttpResponse:
    """Make a project the current one, which pages without a project in their address use."""
    chosen = access.get_project(request.user, project)
    request.session[SESSION_KEY] = chosen.slug
    return redirect("experiments", chosen.slug)


@form_page
def project_settings(request: Request, project: str) -> HttpResponse:
    """Show members and settings; administrators of the project may change them."""
    row = access.get_project(request.user, project)
    if request.method != "POST":
        return settings_page(request, row)
    form = ProjectSettingsForm(request.POST, is_admin=request.user.is_superuser)
    if not form.is_valid():
        return settings_page(request, row, status=422, form=form)
    try:
        actions.change_project(row, by=request.user, **form.cleaned_data)
    except Forbidden as error:
        # The right to manage the project is missing for all fields, not for this one.
        if error.code != "not_independent":
            raise
        form.add_error("single_person", error.message)
        return settings_page(request, row, status=error.status, form=form)
    notify(request, "Settings saved.")
    return redirect("project_settings", row.slug)


def settings_page(request: Request, row: Project, *, status: int = 200, **instead: Any) -> HttpResponse:
    """Show the settings of a project; `instead` overrides context values, such as an invalid form."""
    context: dict[str, Any] = {
        "project": row,
        "form": ProjectSettingsForm(
            initial={"name": row.name, "single_person": row.single_person},
            is_admin=request.user.is_superuser,
        ),
        "member_form": MemberForm(),
        "quotas": QuotasForm.rows(quotas.quotas_out(row)),
        "quota_form": QuotasForm.of(row) if request.user.is_superuser else None,
        "network_form": NetworkForm.of(row) if request.user.is_superuser else None,
        "sandbox_minimum": installation.sandbox_minimum(),
        "members": queries.members_of(row),
        "may_manage": access.can(request.user, row, Action.MANAGE),
        "may_write": access.can(request.user, row, Action.WRITE),
        "credentials": credentials.credentials_of_project(row),
        "credential_labels": LABELS,
        "roles": list(ROLE_HELP.items()),
        "crumbs": crumbs(("Projects", reverse("projects")), row.name),
    }
    return render(request, "people/projects/settings.html", context | instead, status=status)


@form_page
def set_quotas(request: Request, project: str) -> HttpResponse:
    """Set the quotas of the project; for administrators of the installation."""
    row = access.get_project(request.user, project)
    access.require_admin(request.user)
    # A reload of the page of the invalid form, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    form = QuotasForm(request.POST)
    if form.apply(lambda given: form.save(row, given, by=request.user)) is None:
        return settings_page(request, row, status=form.status, quota_form=form)
    notify(request, "Quotas saved.")
    return redirect("project_settings", row.slug)


def _member_refused(request: Request, row: Project, username: str, error: TrainyardError) -> HttpResponse:
    """Show the settings again, with the error message in the row of the member."""
    refused = {"username": username, "message": error.message}
    return settings_page(request, row, status=error.status, refused=refused)


@form_page
def set_role(request: Request, project: str) -> HttpResponse:
    """Add a member or change a role."""
    row = access.get_project(request.user, project, Action.MANAGE)
    # A reload of the page of the invalid form, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return settings_page(request, row, status=422, member_form=form)
    wanted = form.cleaned_data
    try:
        person = actions.find_person(wanted["user"])
        actions.set_role(row, person, Role(wanted["role"]), by=request.user)
    except NotFound as error:
        form.add_error("user", error.message)
        return settings_page(request, row, status=422, member_form=form)
    except Conflict as error:
        return _member_refused(request, row, wanted["user"], error)
    notify(request, f"{person.username} is {wanted['role']} of {row.name}.")
    return redirect("project_settings", row.slug)


@form_page
def remove_member(request: Request, project: str, username: str) -> HttpResponse:
    """Remove a member from the project."""
    row = access.get_project(request.user, project, Action.MANAGE)
    # A reload of the page of the error, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    try:
        person = actions.find_person(username)
        actions.remove_member(row, person, by=request.user)
    except NotFound as error:  # removed meanwhile: there is no row in which to show it
        notify(request, error.message, level="error")
        return redirect("project_settings", row.slug)
    except Conflict as error:
        return _member_refused(request, row, username, error)
    notify(request, f"{person.username} is no longer a member of {row.name}.")
    return redirect("project_settings", row.slug) if request.user != person else redirect("projects")


urls = [
    path("projects", projects, name="projects"),
    path("projects/new", project_new, name="project_new"),
    path("p/<slug:project>/", project_enter, name="project_enter"),
    path("p/<slug:project>/settings", project_settings, name="project_settings"),
    path("p/<slug:project>/quotas", set_quotas, name="project_set_quotas"),
    path("p/<slug:project>/members", set_role, name="project_set_role"),
    path("p/<slug:project>/members/<str:username>/remove", remove_member, name="project_remove_member"),
]
