"""Lists projects, and manages their members and settings."""

from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.people import people as actions
from jobs.errors import BadInput, Conflict, Forbidden, NotFound, TrainyardError
from jobs.messages.sandbox import Level
from jobs.models import Credential, Project, Role, User
from jobs.queries.code import installation
from jobs.queries.data import credentials
from jobs.queries.people import projects as queries
from jobs.queries.people import quotas
from jobs.queries.people.login_states import LoginState, login_states
from jobs.queries.people.people import get_account
from jobs.queries.people.projects import ProjectView
from jobs.spec.data.credentials import LABELS
from webapp import scope
from webapp.forms.code.settings import NetworkForm
from webapp.forms.people.people import MemberForm, ProjectForm, ProjectSettingsForm
from webapp.forms.people.quotas import QuotaRow, QuotasForm
from webapp.pages.people.logins import LoginLinkMade
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render_page,
)
from webapp.template_context import Context
from webapp.templatetags.problem_labels import message_of

ROLE_HELP = {
    Role.VIEWER: "sees everything in the project",
    Role.MEMBER: "also creates experiments, data sets and models, and requests promotions",
    Role.TRAINER: "like a member, and runs jobs with code that users have uploaded",
    Role.APPROVER: "sees everything, decides promotion requests and rolls back",
    Role.ADMIN: "may do everything in the project and manages it",
}


@dataclass(frozen=True)
class ProjectsPage(Context):
    """The projects that the user may see."""

    rows: list[ProjectView]


@page
def projects(request: Request) -> HttpResponse:
    """List the projects that the user may see."""
    return render_page(
        request, "people/projects/list.html", ProjectsPage(rows=queries.projects_with_counts(request.user))
    )


@dataclass(frozen=True)
class NewProjectPage(Context):
    """The form for a new project."""

    form: ProjectForm
    crumbs: Crumbs


@form_page
def project_new(request: Request) -> HttpResponse:
    """Create a project."""
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            project = actions.create_project(**form.cleaned_data, by=request.user)
        except (BadInput, Conflict) as error:
            form.add_problems(error)
        else:
            scope.choose(request, project)
            notify(request, f"Project {project.name} is created. Invite its people here.")
            return redirect("project_settings", project.slug)
    context = NewProjectPage(form=form, crumbs=crumbs(("Projects", reverse("projects")), "New"))
    status = 422 if request.method == "POST" else 200
    return render_page(request, "people/projects/new.html", context, status=status)


@page
def project_enter(request: Request, project: str) -> HttpResponse:
    """Make a project the current one, which pages without a project in their address use."""
    chosen = access.get_project(request.user, project)
    scope.choose(request, chosen)
    return redirect("experiments", chosen.slug)


@form_page
def project_settings(request: Request, project: str) -> HttpResponse:
    """Show members and settings; project administrators may change them."""
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


class Member(NamedTuple):
    """A row of the table of people."""

    user: User
    role: Role
    login: LoginState


class RefusedMember(NamedTuple):
    """A member whose role could not be changed, and the reason."""

    username: str
    message: str


@dataclass(frozen=True)
class ProjectSettingsPage(Context):
    """A project's people, rule of approval, quotas, credentials and settings."""

    project: Project
    form: ProjectSettingsForm
    member_form: MemberForm
    quotas: list[QuotaRow]
    quota_form: QuotasForm | None
    network_form: NetworkForm | None
    sandbox_minimum: Level
    members: list[Member]
    may_manage: bool
    may_write: bool
    credentials: QuerySet[Credential]
    credential_labels: dict[str, str]
    roles: list[tuple[Role, str]]
    crumbs: Crumbs
    refused: RefusedMember | None
    made: LoginLinkMade | None
    shows_quotas: bool


def settings_page(
    request: Request,
    row: Project,
    *,
    status: int = 200,
    form: ProjectSettingsForm | None = None,
    member_form: MemberForm | None = None,
    quota_form: QuotasForm | None = None,
    network_form: NetworkForm | None = None,
    refused: RefusedMember | None = None,
    made: LoginLinkMade | None = None,
) -> HttpResponse:
    """Show a project's settings. A refused form is shown again with its entries and errors.

    Args:
        request: the user's.
        row: the project.
        status: of the response.
        form, member_form, quota_form, network_form: a refused form.
        refused: a member who could not be changed.
        made: a login link, which is shown this once.
    """
    is_admin = request.user.is_superuser
    quota_rows = QuotasForm.rows(quotas.quotas_out(row))
    context = ProjectSettingsPage(
        project=row,
        form=form
        or ProjectSettingsForm(
            initial={"name": row.name, "single_person": row.single_person}, is_admin=is_admin
        ),
        member_form=member_form or MemberForm(),
        quotas=quota_rows,
        quota_form=quota_form or (QuotasForm.of(row) if is_admin else None),
        network_form=network_form or (NetworkForm.of(row) if is_admin else None),
        sandbox_minimum=installation.sandbox_minimum(),
        members=_members_of(row),
        may_manage=access.can(request.user, row, Action.MANAGE),
        may_write=access.can(request.user, row, Action.WRITE),
        credentials=credentials.credentials_of_project(row),
        credential_labels=LABELS,
        roles=list(ROLE_HELP.items()),
        crumbs=crumbs(("Projects", reverse("projects")), row.name),
        refused=refused,
        made=made,
        # Out of the way, unless one has an error or is nearly used up.
        shows_quotas=quota_form is not None or any(row.is_nearly_full for row in quota_rows),
    )
    return render_page(request, "people/projects/settings.html", context, status=status)


def _members_of(project: Project) -> list[Member]:
    members = list(queries.members_of(project))
    logins = login_states([member.user for member in members])
    return [Member(member.user, Role(member.role), logins[member.user_id]) for member in members]


@form_page
def set_quotas(request: Request, project: str) -> HttpResponse:
    """Set the project's quotas; for the installation's administrators."""
    row = access.get_project(request.user, project)
    access.require_admin(request.user)
    # A reload of the page of the invalid form, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    form = QuotasForm(request.POST)
    if form.apply(lambda values: form.save(row, values, by=request.user)) is None:
        return settings_page(request, row, status=form.status, quota_form=form)
    notify(request, "Quotas saved.")
    return redirect("project_settings", row.slug)


def _member_refused(request: Request, row: Project, username: str, error: TrainyardError) -> HttpResponse:
    """Show the settings again, with the error message in the member's row."""
    return settings_page(request, row, status=error.status, refused=RefusedMember(username, error.message))


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
    entries = form.cleaned_data
    try:
        person = actions.find_person(entries["user"])
        actions.set_role(row, person, Role(entries["role"]), by=request.user)
    except NotFound as error:
        form.add_error("user", error.message)
        return settings_page(request, row, status=422, member_form=form)
    except Conflict as error:
        return _member_refused(request, row, entries["user"], error)
    notify(request, f"{person.username} is {entries['role']} of {row.name}.")
    return redirect("project_settings", row.slug)


@form_page
def remove_member(request: Request, project: str, username: str) -> HttpResponse:
    """Remove a member from the project."""
    row = access.get_project(request.user, project, Action.MANAGE)
    # A reload of the page of the error, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    try:
        person = get_account(username)
        actions.remove_member(row, person, by=request.user)
    except NotFound as error:  # removed meanwhile: there is no row in which to show it
        notify(request, message_of(error), level="error")
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
